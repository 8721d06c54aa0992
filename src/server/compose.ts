/** Puts a server together: store, issuer, tokens, HTTP. The only file that knows them all; it decides nothing. */
import { webcrypto } from 'node:crypto';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { Scope } from '../base/scope.js';
import { AilsdError } from '../protocol/errors.js';
import type { RandomFill } from '../protocol/ids.js';
import { isLoopbackHost, type ServerConfig } from './config.js';
import { createApp } from './http/app.js';
import { health, readiness } from './http/health.js';
import { openHttpServer } from './http/server.js';
import { whoami } from './http/whoami.js';
import { createIssuer, type Issuer } from './issuer/issuer.js';
import type { Db } from './store/db.js';
import { IssuerKeys } from './store/keys.js';
import { migrate } from './store/migrations.js';
import { openStore } from './store/open-store.js';
import { createAccessTokenVerifier } from './tokens/access-token.js';
import type { JwksSource } from './tokens/jwks-cache.js';
import { publishedKeys } from './tokens/signing-keys.js';

export interface ServerParts {
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

/** Returns when it serves. Disposing lets requests in flight finish, then closes what they stood on. */
export async function openServer({ config, clock, logger }: ServerParts): Promise<RunningServer> {
  const report = (name: string, error: unknown): void => logger.error(name, { error });
  const scope = new Scope({ clock, report, closeTimeoutMs: CLOSE_TIMEOUT_MS });
  try {
    const db = scope.use(await openStore(config.store, { logger }));
    await migrate(db);
    let issuer: Issuer | undefined;
    // Closed after the door, before the store.
    scope.defer(() => issuer?.[Symbol.asyncDispose]());
    const { host, port } = config.listen;
    const { trustedProxies } = config;
    const http = scope.use(
      await openHttpServer({ host, port, trustedProxies, clock, logger, random }),
    );
    const url = config.url ?? loopbackUrl(host, http.port);
    const audience = config.audience ?? url;
    issuer = await createIssuer({
      db,
      url,
      audience,
      clock,
      logger,
      trustProxy: trustedProxies.length > 0,
      ...(config.deviceCodeSeconds && { deviceCodeSeconds: config.deviceCodeSeconds }),
      ...(config.upstream && { upstream: config.upstream }),
    });
    const jwks = ownKeys(db);
    const app = createApp({
      verify: createAccessTokenVerifier({ issuer: url, audience, jwks, clock, logger }),
      routes: { getHealth: health, getReadiness: readiness(() => db.query('SELECT 1')), whoami },
    });
    const owner = issuer;
    http.serve(
      (exchange) => {
        if (!owner.owns(exchange.path)) return app(exchange);
        exchange.presetHeaders();
        return owner.handle(exchange.request, exchange.response);
      },
      { isHttps: url.startsWith('https:') },
    );
    return {
      url,
      port: http.port,
      [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
    };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

const CLOSE_TIMEOUT_MS = 6_000;

const random: RandomFill = (bytes) => webcrypto.getRandomValues(bytes);

/** The issuer's table is near: it may be asked often, and a new key counts at its first use. */
function ownKeys(db: Db): JwksSource {
  const keys = new IssuerKeys(db);
  return {
    gapMs: 250,
    fetch: async () => publishedKeys(await keys.list('signing'), await db.now()),
  };
}

function loopbackUrl(host: string, port: number): string {
  // As URLs are written: port 80 is left out.
  if (isLoopbackHost(host))
    return new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`).origin;
  throw new AilsdError('CONFIG_INVALID', 'a server that others reach needs to know its URL', {
    details: { field: 'url' },
    hint: 'say it with --url https://…, or listen on 127.0.0.1',
  });
}
