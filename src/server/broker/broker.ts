/** The broker's one door: wires its parts, and gives the routes they serve and the work that goes on behind them. */
import { Scope } from '../../base/scope.js';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { newId } from '../../protocol/ids.js';
import type { RouteName } from '../../protocol/routes.js';
import type { RouteCode } from '../http/call.js';
import type { VerifySandbox } from '../http/caller.js';
import type { Metrics } from '../http/metrics.js';
import type { VerifyToken } from '../http/principal.js';
import type { UpgradeCode } from '../http/upgrade.js';
import { numberOf, textOf } from '../store/row.js';
import { ServerSecrets } from '../store/server-secrets.js';
import { readAccessFile } from './access/access-file.js';
import { AccessDelivery } from './access/delivery.js';
import { type CodeSettings, createCodeExecution } from './code/code.js';
import { adminRoutes } from './faces/admin.js';
import { auditRoutes } from './faces/audit.js';
import type { FaceParts } from './faces/face-parts.js';
import { internalRoutes } from './faces/internal.js';
import { placeFinder } from './faces/place.js';
import { sandboxLogRoutes } from './faces/sandbox-logs.js';
import { sandboxRoutes } from './faces/sandboxes.js';
import { sessionRoutes } from './faces/sessions.js';
import { sharingRoutes } from './faces/sharing.js';
import { threadRoutes } from './faces/threads.js';
import { whyRoutes } from './faces/why.js';
import { Reaper } from './life/reaper.js';
import { Starter, type StarterParts } from './life/start.js';
import { StartWatch } from './life/watch.js';
import type { BrokerParts, Replica } from './parts.js';
import { createRelay, type RelaySettings } from './relay/relay.js';
import { Negotiator } from './sessions/negotiate.js';
import { openInviteSecret } from './sharing/invites.js';
import { tidy } from './sharing/tidy.js';
import { createMint, openSandboxKeys } from './tokens/mint.js';
import { verifySandbox } from './tokens/opaque.js';

export interface Broker extends AsyncDisposable {
  readonly routes: Readonly<Partial<Record<RouteName, RouteCode>>>;
  readonly upgrades: Readonly<Partial<Record<RouteName, UpgradeCode>>>;
  /** Who a sandbox is that asks about an opaque token. */
  readonly verifySandbox?: VerifySandbox | undefined;
  /** Begins the work that goes on by itself: leases, deliveries, what has to be destroyed. */
  start(): void;
}

export interface CreateBrokerParts extends BrokerParts {
  readonly metrics?: Metrics | undefined;
  /** Of access tokens that come on a live connection through the relay; absent: none is taken there. */
  readonly verify?: VerifyToken | undefined;
  readonly relay?: RelaySettings | undefined;
  readonly code?: CodeSettings | undefined;
}

/** Nothing goes on by itself until `start`. Disposing ends what goes on; what it leaves undone, other replicas find. */
export async function createBroker(parts: CreateBrokerParts): Promise<Broker> {
  const { db, clock, logger, providers, random, url } = parts;
  const report = (name: string, error: unknown): void => logger.error(name, { error });
  const scope = new Scope({ clock, report, closeTimeoutMs: CLOSE_TIMEOUT_MS });
  const replica: Replica = {
    holder: newId('request', random).replace(/^req_/, 'replica_'),
    serverId: await findServerId(db, random),
    signal: scope.signal,
  };
  const keys = await openSandboxKeys(db, random);
  const access = { db, keys, url, providers, clock, logger, metrics: parts.metrics };
  const delivery = scope.use(new AccessDelivery(access));
  const starterParts: StarterParts = {
    ...parts,
    replica,
    readAccess: (id) => readAccessFile(access, id),
    inBackground: (name, work) => scope.run(name, work),
  };
  const starter = new Starter(starterParts);
  const watch = new StartWatch(parts, replica, starter);
  const mint = createMint({ keys, random });
  const inviteSecret = await openInviteSecret(db, random, parts.sandboxAuthSecret);
  const reaper = new Reaper(starterParts, starter, parts.metrics);
  const negotiator = new Negotiator({ broker: parts, replica, starter, watch, mint });
  const faces: FaceParts = {
    broker: parts,
    replica,
    negotiator,
    refresh: { db, keys, mint, delivery },
    place: placeFinder(url, providers),
  };
  const { metrics, verify = nobody } = parts;
  metrics?.readFrom({ sandboxesByState: () => countByState(db) });
  const waking = { broker: parts, replica, starter, watch };
  const relay = createRelay({ ...waking, keys, mint, verify, metrics, settings: parts.relay });
  const code = createCodeExecution({
    ...waking,
    negotiator,
    mint,
    keys,
    inviteSecret,
    scope,
    relay: parts.relay,
    settings: parts.code,
  });
  return {
    routes: {
      ...sessionRoutes(faces),
      ...threadRoutes(faces),
      ...sharingRoutes({ broker: parts, keys, mint, delivery, inviteSecret }),
      ...whyRoutes(parts, replica),
      ...internalRoutes({ db, keys }),
      ...sandboxRoutes(waking),
      ...sandboxLogRoutes(parts),
      ...adminRoutes(parts, replica),
      ...auditRoutes(db),
      ...relay.routes,
      ...code.routes,
    },
    upgrades: { ...relay.upgrades, ...code.upgrades },
    verifySandbox: (assertion) => verifySandbox({ db, keys }, assertion),
    start() {
      scope.run('reap', (signal) => reaper.run(signal));
      scope.run('deliver access', (signal) => delivery.run(signal));
      scope.run('tidy', (signal) => tidy(parts, signal));
      code.start();
    },
    [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
  };
}

const CLOSE_TIMEOUT_MS = 5_000;

async function nobody(): Promise<never> {
  throw new AilsdError('UNAUTHENTICATED', 'nobody is known here');
}

async function countByState(db: BrokerParts['db']): Promise<Readonly<Record<string, number>>> {
  const rows = await db.query(
    'SELECT state, COUNT(*) AS held FROM sandboxes WHERE ended_at IS NULL GROUP BY state',
  );
  return Object.fromEntries(rows.map((row) => [textOf(row, 'state'), numberOf(row, 'held')]));
}

/** All replicas of a store are one server, whatever provider it is named to. */
async function findServerId(db: BrokerParts['db'], random: BrokerParts['random']): Promise<string> {
  const fresh = () => new Secret(newId('request', random).replace(/^req_/, 'server_'));
  return (await new ServerSecrets(db).ensure('server-id', fresh)).reveal();
}
