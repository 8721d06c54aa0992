/** One replica of a broker on a real socket over a store that others share, and callers that speak to it like any client. */
import { webcrypto } from 'node:crypto';
import { type Clock, systemClock } from '../../../../src/base/clock.js';
import { createLogger } from '../../../../src/base/logger.js';
import type { Secret } from '../../../../src/base/secret.js';
import { DEFAULT_TENANT } from '../../../../src/protocol/claims.js';
import { AilsdError } from '../../../../src/protocol/errors.js';
import type { Principal } from '../../../../src/protocol/principal.js';
import { LOGIN_SCOPES } from '../../../../src/protocol/scopes.js';
import { type Broker, createBroker } from '../../../../src/server/broker/broker.js';
import type { CodeSettings } from '../../../../src/server/broker/code/code.js';
import type { BrokerConfig } from '../../../../src/server/broker/parts.js';
import type { RelaySettings } from '../../../../src/server/broker/relay/relay.js';
import { createApp } from '../../../../src/server/http/app.js';
import type { VerifyToken } from '../../../../src/server/http/principal.js';
import { bodyMaxBytes, openHttpServer } from '../../../../src/server/http/server.js';
import { createUpgrades } from '../../../../src/server/http/upgrade.js';
import type { Provider } from '../../../../src/server/providers/provider.js';
import type { Db } from '../../../../src/server/store/db.js';

export const BROKER_CONFIG: BrokerConfig = {
  idleTimeoutSeconds: 900,
  hardTtlSeconds: 28_800,
  sweepSeconds: 1,
  provisionSeconds: 30,
  limits: { memory_bytes: 0, pids: 0, disk_bytes: 0, shells: 8, commands: 8 },
};

export interface ReplicaOptions {
  readonly db: Db;
  readonly provider: Provider;
  readonly config?: Partial<BrokerConfig> | undefined;
  readonly clock?: Clock | undefined;
  /** False: nothing is reaped or delivered by itself. */
  readonly jobs?: boolean | undefined;
  readonly log?: ((line: string) => void) | undefined;
  readonly relay?: RelaySettings | undefined;
  /** Whom an access token speaks for; absent: whoever it says. */
  readonly verify?: VerifyToken | undefined;
  readonly port?: number | undefined;
  readonly code?: CodeSettings | undefined;
  /** `SANDBOX_AUTH_SECRET`. */
  readonly inviteSecret?: Secret | undefined;
}

export interface Replica extends AsyncDisposable {
  readonly url: string;
  readonly broker: Broker;
}

export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const clock = options.clock ?? systemClock;
  const logger = createLogger({ write: options.log ?? (() => undefined), clock, level: 'info' });
  const random = (bytes: Uint8Array<ArrayBuffer>) => webcrypto.getRandomValues(bytes);
  const limits = { connections: 2_000, connectionsPerAddress: 2_000 };
  const http = await openHttpServer({
    host: '127.0.0.1',
    port: options.port ?? 0,
    trustedProxies: [],
    clock,
    logger,
    random,
    limits,
  });
  const url = `http://127.0.0.1:${http.port}`;
  const broker = await createBroker({
    db: options.db,
    providers: [options.provider],
    clock,
    logger,
    random,
    config: { ...BROKER_CONFIG, ...options.config },
    url,
    relay: options.relay,
    verify: options.verify ?? verify,
    code: options.code,
    sandboxAuthSecret: options.inviteSecret,
  });
  if (options.jobs !== false) broker.start();
  const caller = { verify: options.verify ?? verify, verifySandbox: broker.verifySandbox };
  http.serve(createApp({ ...caller, routes: broker.routes }), {
    isHttps: false,
    upgrade: createUpgrades({ ...caller, upgrades: broker.upgrades, origins: [url] }),
    bodyMaxBytes,
  });
  return {
    url,
    broker,
    async [Symbol.asyncDispose]() {
      await http[Symbol.asyncDispose]();
      await broker[Symbol.asyncDispose]();
    },
  };
}

/** A token that says who it is: what the issuer's tokens prove is tested where those are. */
export function tokenOf(principal: Partial<Principal> & { readonly sub: string }): string {
  return Buffer.from(JSON.stringify(principal)).toString('base64url');
}

async function verify(token: Secret): Promise<Principal> {
  try {
    return {
      kind: 'user',
      tenant: DEFAULT_TENANT,
      clientId: 'test-client',
      scopes: LOGIN_SCOPES,
      expiresAt: Number.MAX_SAFE_INTEGER,
      jti: 'access',
      ...JSON.parse(Buffer.from(token.reveal(), 'base64url').toString()),
    };
  } catch {
    throw new AilsdError('UNAUTHENTICATED', 'that is no token');
  }
}
