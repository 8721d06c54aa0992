/** A store with people and clients in it, and issuers over it on real sockets: what every story here begins with. */
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { systemClock } from '../../../../src/base/clock.js';
import { createLogger, type Logger } from '../../../../src/base/logger.js';
import { Secret } from '../../../../src/base/secret.js';
import { DEFAULT_TENANT } from '../../../../src/protocol/claims.js';
import { LOGIN_SCOPES, type Scope } from '../../../../src/protocol/scopes.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../../src/protocol/shapes/issuer.js';
import { settleOrigin, TrustedProxies } from '../../../../src/server/http/forwarded.js';
import { createIssuer, type IssuerParts } from '../../../../src/server/issuer/issuer.js';
import { Clients, type NewClient } from '../../../../src/server/store/clients.js';
import type { Db } from '../../../../src/server/store/db.js';
import { migrate } from '../../../../src/server/store/migrations.js';
import { openStore } from '../../../../src/server/store/open-store.js';
import { Users } from '../../../../src/server/store/users.js';
import { hashClientSecret } from '../../../../src/server/tokens/client-secret.js';
import { hashPassword } from '../../../../src/server/tokens/password.js';
import { temporaryFolder } from '../../../support/cli.js';

export const AUDIENCE = 'https://broker.example';
export const PASSWORD = 'correct horse battery staple';
export const AGENT = { clientId: 'agent', secret: 'agent-secret-of-a-good-length' } as const;

export interface WorldOptions {
  /** A store that exists; else a fresh SQLite file. */
  readonly storeUrl?: string | undefined;
  readonly replicas?: number | undefined;
  /** Networks whose `X-Forwarded-For` is believed; without any, the issuer stands at the socket by itself. */
  readonly proxies?: readonly string[] | undefined;
  readonly issuer?: Partial<IssuerParts> | undefined;
}

export interface World extends AsyncDisposable {
  readonly db: Db;
  /** The public URL, which is the first replica's. */
  readonly url: string;
  /** Every replica's own address. */
  readonly replicas: readonly string[];
  /** What the issuers wrote. */
  readonly log: string[];
  /** What they were asked, as `METHOD path`. */
  readonly requests: string[];
  addUser(name: string, scopes?: readonly Scope[]): Promise<string>;
  addClient(client: Partial<NewClient> & { readonly clientId: string }): Promise<void>;
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const folder = temporaryFolder();
  const closers: (() => unknown)[] = [() => folder[Symbol.dispose]()];
  const close = async () => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    const open = async () => {
      const opened = await openStore(options.storeUrl ?? join(folder.path, 'store.db'));
      closers.push(() => opened[Symbol.asyncDispose]());
      return opened;
    };
    const db = await open();
    await migrate(db);
    await seed(db);
    const log: string[] = [];
    const requests: string[] = [];
    const logger = createLogger({
      write: (line) => log.push(line),
      clock: systemClock,
      level: 'debug',
    });
    const replicas: string[] = [];
    for (let count = options.replicas ?? 1; count > 0; count--) {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      closers.push(() => closeServer(server));
      replicas.push(`http://127.0.0.1:${portOf(server)}`);
      const url = replicas[0] ?? '';
      closers.push(await serve(server, { db: await open(), url, logger, requests, options }));
    }
    return {
      db,
      url: replicas[0] ?? '',
      replicas,
      log,
      requests,
      addUser: (name, scopes) => addUser(db, name, scopes),
      addClient: (client) => addClient(db, client),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function serve(
  server: Server,
  parts: {
    readonly db: Db;
    readonly url: string;
    readonly logger: Logger;
    readonly requests: string[];
    readonly options: WorldOptions;
  },
): Promise<() => Promise<void>> {
  const proxies = new TrustedProxies(parts.options.proxies ?? []);
  const issuer = await createIssuer({
    db: parts.db,
    url: parts.url,
    audience: AUDIENCE,
    clock: systemClock,
    logger: parts.logger,
    trustProxy: parts.options.proxies !== undefined,
    ...parts.options.issuer,
  });
  server.on('request', (request, response) => {
    if (parts.options.proxies !== undefined) settleOrigin(request, proxies);
    const path = request.url?.split('?', 1)[0] ?? '/';
    parts.requests.push(`${request.method} ${path}`);
    if (!issuer.owns(path, request.headers.accept)) {
      response.writeHead(404).end();
      return;
    }
    issuer.handle(request, response).catch((error: unknown) => {
      parts.logger.error('a request failed', { error });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  return async () => {
    await issuer[Symbol.asyncDispose]();
  };
}

/** One hash for all: making one is slow on purpose. */
let hashed: Promise<Secret> | undefined;

async function addUser(
  db: Db,
  name: string,
  scopes: readonly Scope[] = LOGIN_SCOPES,
): Promise<string> {
  hashed ??= hashPassword(new Secret(PASSWORD));
  const id = `usr_${name}`;
  await new Users(db).add({ id, tenant: DEFAULT_TENANT, name, scopes, passwordHash: await hashed });
  return id;
}

async function addClient(
  db: Db,
  client: Partial<NewClient> & { readonly clientId: string },
): Promise<void> {
  await new Clients(db).add({
    tenant: DEFAULT_TENANT,
    name: client.clientId,
    kind: 'confidential',
    redirectUris: [],
    grants: [],
    allowedScopes: LOGIN_SCOPES,
    ...client,
  });
}

async function seed(db: Db): Promise<void> {
  await addUser(db, 'ada');
  await addClient(db, {
    clientId: CLI_CLIENT_ID,
    name: 'ailsd command line',
    kind: 'public',
    redirectUris: ['http://127.0.0.1/callback'],
    grants: [
      GRANT_TYPES.deviceCode,
      GRANT_TYPES.authorizationCode,
      GRANT_TYPES.refreshToken,
      GRANT_TYPES.tokenExchange,
    ],
  });
  await addClient(db, {
    clientId: AGENT.clientId,
    name: 'An agent',
    secretHash: hashClientSecret(new Secret(AGENT.secret)),
    grants: [GRANT_TYPES.clientCredentials, GRANT_TYPES.tokenExchange],
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
