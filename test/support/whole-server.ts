/** A whole server in this process, issuer, broker and all, with a provider of the test's, and access tokens that its own key signed. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.js';
import { createLogger } from '../../src/base/logger.js';
import { openServer, type ServerParts } from '../../src/server/compose.js';
import { readConfig } from '../../src/server/config.js';
import { IssuerKeys } from '../../src/server/store/keys.js';
import { openStore } from '../../src/server/store/open-store.js';
import { signRs256 } from '../server/tokens/forge.js';
import { temporaryFolder } from './cli.js';
import { FolderProvider } from './folder-provider.js';

export interface WholeServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly provider: FolderProvider;
  readonly log: string[];
  /** As a path or URL. */
  readonly store: string;
  token(claims?: TokenClaims): string;
  /** Ends it, and resolves when it has ended. */
  stop(): Promise<void>;
}

export interface TokenClaims {
  readonly sub?: string;
  readonly scope?: string;
  readonly tenant?: string;
}

export interface WholeServerOptions {
  readonly store?: string;
  /** As in `server.json`. */
  readonly file?: Readonly<Record<string, unknown>>;
  readonly relay?: ServerParts['relay'];
  readonly logLevel?: 'info' | 'error';
  readonly provider?: (folder: string) => FolderProvider;
  /** Another way to the same store, for the keys, where `store` is not to be trusted. */
  readonly directStore?: string;
}

const ALL = 'read:sandbox write:sandbox exec:sandbox attach:sandbox';

export async function wholeServer(options: WholeServerOptions = {}): Promise<WholeServer> {
  const folder = temporaryFolder();
  const log: string[] = [];
  const logger = createLogger({
    write: (line) => log.push(line),
    clock: systemClock,
    level: options.logLevel ?? 'info',
  });
  const file = {
    listen: '127.0.0.1:0',
    ...(options.store !== undefined && { store: options.store }),
    ...options.file,
  };
  const config = readConfig({ folder: folder.path, file, variables: {} });
  const cloud = join(folder.path, 'cloud');
  const provider = options.provider?.(cloud) ?? new FolderProvider(cloud);
  const parts = { config, clock: systemClock, logger, providers: [provider], relay: options.relay };
  const server = await openServer(parts);
  const key = await signingKey(options.directStore ?? config.store);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    const stopping = stopped ?? Promise.resolve(server[Symbol.asyncDispose]());
    stopped = stopping;
    return stopping;
  };
  return {
    url: server.url,
    port: server.port,
    provider,
    log,
    store: config.store,
    stop,
    token: ({ sub = 'usr_alice', scope = ALL, tenant = 'default' } = {}) => {
      const iat = Math.floor(Date.now() / 1000);
      const claims = {
        iss: server.url,
        aud: server.url,
        sub,
        scope,
        tenant,
        client_id: 'test-client',
        principal: 'user',
        iat,
        exp: iat + 900,
        jti: `tok_${sub}`,
      };
      return signRs256({ alg: 'RS256', typ: 'at+jwt', kid: key.kid }, claims, key.privateKey);
    },
    async [Symbol.asyncDispose]() {
      await stop();
      folder[Symbol.dispose]();
    },
  };
}

async function signingKey(store: string): Promise<{ kid: string; privateKey: KeyObject }> {
  await using db = await openStore(store);
  const [key] = await new IssuerKeys(db).list('signing');
  if (key === undefined) throw new Error('the issuer has made no key');
  const privateKey = createPrivateKey({ key: JSON.parse(key.material.reveal()), format: 'jwk' });
  return { kid: key.kid, privateKey };
}
