/** Puts a server together: store, issuer, tokens, HTTP. The only file that knows them all; it decides nothing. */
import { webcrypto } from 'node:crypto';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { Scope } from '../base/scope.js';
import type { Secret } from '../base/secret.js';
import { AilsdError } from '../protocol/errors.js';
import type { RandomFill } from '../protocol/ids.js';
import { type Broker, createBroker } from './broker/broker.js';
import type { RelaySettings } from './broker/relay/relay.js';
import { isLoopbackHost, type ServerConfig } from './config.js';
import { createApp } from './http/app.js';
import { health, readiness } from './http/health.js';
import { Metrics } from './http/metrics.js';
import { openApi } from './http/openapi.js';
import { RateLimits } from './http/rate-limits.js';
import { bodyMaxBytes, openHttpServer } from './http/server.js';
import { createUpgrades } from './http/upgrade.js';
import { whoami } from './http/whoami.js';
import { createIssuer, type Issuer } from './issuer/issuer.js';
import { loginRoutes } from './issuer/logins-route.js';
import { nameFinder } from './issuer/names.js';
import { openLocalProvider } from './providers/local/local-provider.js';
import type { Provider } from './providers/provider.js';
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
  /** What makes sandboxes, the first by default; closed with the server. Absent: `local`, where there is a program for it. */
  readonly providers?: readonly Provider[] | undefined;
  /** The program that runs sandboxes on this host. */
  readonly daemonProgram?: string | undefined;
  readonly relay?: RelaySettings | undefined;
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** A login for a user who runs this server for themselves: its refresh token. */
  logIn(userId: string, lifeSeconds: number): Promise<Secret>;
}

/** Returns when it serves. Disposing lets requests in flight finish, then closes what they stood on. */
export async function openServer(parts: ServerParts): Promise<RunningServer> {
  const { config, clock, logger } = parts;
  const report = (name: string, error: unknown): void => logger.error(name, { error });
  const scope = new Scope({ clock, report, closeTimeoutMs: CLOSE_TIMEOUT_MS });
  try {
    const db = scope.use(await openStore(config.store, { logger }));
    await migrate(db);
    const providers = parts.providers ?? (await localProviders(parts));
    for (const provider of providers) scope.use(provider);
    let issuer: Issuer | undefined;
    let broker: Broker | undefined;
    // Closed after the door, before the store.
    scope.defer(() => issuer?.[Symbol.asyncDispose]());
    scope.defer(() => broker?.[Symbol.asyncDispose]());
    const { host, port } = config.listen;
    const { trustedProxies } = config;
    const metrics = new Metrics(clock);
    const onEnd = metrics.requestEnded;
    const http = scope.use(
      await openHttpServer({ host, port, trustedProxies, clock, logger, random, onEnd }),
    );
    metrics.readFrom({ openSockets: () => http.upgraded });
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
    const verify = createAccessTokenVerifier({ issuer: url, audience, jwks, clock, logger });
    broker = await createBroker({
      db,
      providers,
      clock,
      logger,
      random,
      config: { ...config.broker, limits: sandboxLimits(config) },
      url,
      metrics,
      verify,
      sandboxAuthSecret: config.sandboxAuthSecret,
      relay: parts.relay,
    });
    const caller = {
      verify,
      verifySandbox: broker.verifySandbox,
      rates: new RateLimits({
        principalPerMinute: config.broker.requestsPerMinute,
        addressPerMinute: config.broker.addressRequestsPerMinute,
        clock,
      }),
    };
    const draining = new AbortController();
    const app = createApp({
      ...caller,
      routes: {
        getHealth: health,
        getReadiness: readiness(() => db.query('SELECT 1'), draining.signal),
        getMetrics: metrics.route,
        getOpenApi: openApi(),
        whoami: whoami(nameFinder(db)),
        ...loginRoutes(db),
        ...broker.routes,
      },
    });
    const owner = issuer;
    http.serve(
      (exchange) => {
        if (!owner.owns(exchange.path, exchange.request.headers.accept)) return app(exchange);
        exchange.presetHeaders();
        return owner.handle(exchange.request, exchange.response);
      },
      {
        isHttps: url.startsWith('https:'),
        upgrade: createUpgrades({ ...caller, upgrades: broker.upgrades, origins: [url] }),
        bodyMaxBytes,
      },
    );
    broker.start();
    return {
      url,
      port: http.port,
      logIn: (userId, lifeSeconds) => owner.logIn(userId, lifeSeconds),
      async [Symbol.asyncDispose]() {
        draining.abort(new AilsdError('BACKEND_UNAVAILABLE', 'the server is ending'));
        // Whoever sends callers here gets the time to notice.
        await clock.sleep(config.drainSeconds * 1_000);
        await scope[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

const CLOSE_TIMEOUT_MS = 6_000;

/** What one sandbox may have, whatever makes it. */
function sandboxLimits({ local }: ServerConfig) {
  const { memoryBytes: memory_bytes, pids } = local;
  return { memory_bytes, pids, disk_bytes: 10 * 1024 ** 3, shells: 64, commands: 256 };
}

async function localProviders(parts: ServerParts): Promise<readonly Provider[]> {
  const { config, clock, daemonProgram } = parts;
  if (daemonProgram === undefined) return [];
  const { dir, isolation, memoryBytes, pids } = config.local;
  const node = process.execPath;
  const limits = { memoryBytes, pids };
  return [await openLocalProvider({ dir, isolation, daemonProgram, node, clock, limits })];
}

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
