/** `/relay/{id}/…`: a sandbox's own routes under the broker's address, for callers with the sandbox's own token. */
import type { Clock } from '../../../base/clock.js';
import type { Secret } from '../../../base/secret.js';
import { allows, type Capability } from '../../../protocol/capabilities.js';
import { CLOSES } from '../../../protocol/closes.js';
import { shape } from '../../../protocol/components.js';
import { AilsdError } from '../../../protocol/errors.js';
import { MESSAGE_MAX_BYTES, UNAUTHENTICATED_MESSAGE_MAX_BYTES } from '../../../protocol/frames.js';
import { AUTH_SECONDS } from '../../../protocol/routes/dataplane.js';
import type { Route } from '../../../protocol/routes/route.js';
import { buildPath, ROUTES, type RouteName } from '../../../protocol/routes.js';
import { hasAuthorization } from '../../http/bearer.js';
import type { Call, RouteCode } from '../../http/call.js';
import type { UpgradeCall, UpgradeCode } from '../../http/upgrade.js';
import type { Socket } from '../../http/websocket.js';
import type { Provider } from '../../providers/provider.js';
import type { Db } from '../../store/db.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';
import { noSandbox } from '../sandboxes/find.js';
import { stillStarting } from '../sandboxes/wake.js';
import { unreachable } from './address.js';
import { authFrame, seeFrame } from './auth-frames.js';
import type { Bridge } from './bridge.js';
import { type HttpRelay, knownQuery, type RelayLimits } from './http-relay.js';
import { checkSandboxToken, type Holder, stillCounts } from './sandbox-token.js';
import type { SocketRelay } from './socket-relay.js';
import { Waiting } from './waiting.js';

export interface DataplaneRelayParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: SandboxKeys;
  readonly providers: readonly Provider[];
  readonly http: HttpRelay;
  readonly sockets: SocketRelay;
  readonly limits: RelayLimits;
}

/** The relay's route and the sandbox's. */
const HTTP = {
  relayedExec: 'exec',
  relayedListSandboxCommands: 'listSandboxCommands',
  relayedGetSandboxCommand: 'getSandboxCommand',
  relayedGetSandboxCommandLogs: 'getSandboxCommandLogs',
  relayedEndSandboxCommand: 'endSandboxCommand',
  relayedUploadFile: 'uploadFile',
  relayedDownloadFile: 'downloadFile',
  relayedReadFile: 'readFile',
  relayedWriteFile: 'writeFile',
  relayedDeleteFile: 'deleteFile',
  relayedListShells: 'listShells',
  relayedEndShell: 'endShell',
  relayedReadShellLog: 'readShellLog',
} as const satisfies Partial<Record<RouteName, RouteName>>;

const SOCKETS = {
  relayedShellSocket: 'shellSocket',
  relayedShellSocketByThread: 'shellSocketByThread',
  relayedExecSocket: 'execSocket',
  relayedSyncSocket: 'syncSocket',
  relayedTunnelSocket: 'tunnelSocket',
} as const satisfies Partial<Record<RouteName, RouteName>>;

type DataplaneName = (typeof HTTP)[keyof typeof HTTP] | (typeof SOCKETS)[keyof typeof SOCKETS];

export function dataplaneRoutes(parts: DataplaneRelayParts): Partial<Record<RouteName, RouteCode>> {
  const entries = Object.entries(HTTP).map(([name, at]): [string, RouteCode] => [
    name,
    (call) => relayHttp(parts, call, at),
  ]);
  return Object.fromEntries(entries);
}

export function dataplaneUpgrades(
  parts: DataplaneRelayParts,
): Partial<Record<RouteName, UpgradeCode>> {
  const waiting = new Waiting();
  const entries = Object.entries(SOCKETS).map(([name, at]): [string, UpgradeCode] => [
    name,
    (call) =>
      hasAuthorization(call.exchange.request)
        ? byHeader(parts, call, at)
        : byFirstFrame(parts, call, at, waiting),
  ]);
  return Object.fromEntries(entries);
}

async function relayHttp(parts: DataplaneRelayParts, call: Call, at: DataplaneName) {
  const { exchange } = call;
  // A HEAD comes the way of its GET.
  const route: Route = ROUTES[at];
  const token = call.bearer();
  const holder = await admit(parts, call, route, token);
  const query = route.query === undefined ? {} : knownQuery(call, shape(route.query));
  return parts.http.relay(exchange, {
    baseUrl: endpointsOf(holder).httpUrl,
    method: exchange.request.method ?? 'GET',
    path: pathAt(call, at),
    query,
    isEndless: query['follow'] !== undefined,
    token: checksTokens(parts, holder) ? token : undefined,
    answerMs: at === 'exec' ? parts.limits.commandMs : parts.limits.answerMs,
    hasBody: route.method !== 'WS' && route.request !== undefined,
  });
}

/** A token in the header is judged before the upgrade: a refusal is an answer. */
async function byHeader(parts: DataplaneRelayParts, call: UpgradeCall, at: DataplaneName) {
  const token = call.bearer();
  const holder = await admit(parts, call, ROUTES[at], token);
  const look = looker(parts, call, at, holder);
  const { wsUrl } = endpointsOf(holder);
  const target = {
    wsUrl,
    path: pathAt(call, at),
    token: checksTokens(parts, holder) ? token : undefined,
  };
  const bridge = await parts.sockets.join(call, target, look);
  if (!checksTokens(parts, holder)) watch(parts, call, bridge, look.current);
}

/** A browser can send no header: then the first frame says who it is, before anything of the sandbox is touched. */
async function byFirstFrame(
  parts: DataplaneRelayParts,
  call: UpgradeCall,
  at: DataplaneName,
  waiting: Waiting,
): Promise<void> {
  const admitted = waiting.admit(call.exchange.origin.address);
  const timer = new AbortController();
  try {
    const { client, token, early } = await firstFrame(parts.clock, call, timer.signal);
    try {
      const holder = await admit(parts, call, ROUTES[at], token);
      const isChecked = checksTokens(parts, holder);
      const target = { wsUrl: endpointsOf(holder).wsUrl, path: pathAt(call, at), token: undefined };
      const sandbox = await parts.sockets.dial(call, target);
      const look = looker(parts, call, at, holder);
      const bridge = parts.sockets.bridge(call, client, look);
      bridge.join(sandbox);
      client.allowMessages(MESSAGE_MAX_BYTES);
      sandbox.handOver(bridge.sandboxEvents);
      client.handOver(bridge.clientEvents);
      if (isChecked) sandbox.send(authFrame(token));
      else {
        client.send(authOk(holder));
        watch(parts, call, bridge, look.current);
      }
      for (const message of early) bridge.clientEvents.message(message);
      sandbox.resume();
      client.resume();
    } catch (thrown) {
      const error = thrown instanceof AilsdError ? thrown : undefined;
      client.resume();
      client.close(CLOSES[error?.row.close ?? 'internal']);
    }
  } finally {
    timer.abort();
    admitted();
  }
}

interface FirstFrame {
  readonly client: Socket;
  readonly token: Secret;
  /** What came in the same piece as the frame, and is the sandbox's; after that nothing is read. */
  readonly early: (string | Uint8Array)[];
}

/** Rejects when the client has gone; one that says nothing, or something else first, is closed and counts as gone. */
function firstFrame(clock: Clock, call: UpgradeCall, signal: AbortSignal): Promise<FirstFrame> {
  return new Promise((resolve, reject) => {
    call.accept((client) => {
      client.allowMessages(UNAUTHENTICATED_MESSAGE_MAX_BYTES);
      const refuse = (): void => client.close(CLOSES.missingToken);
      clock.sleep(AUTH_SECONDS * 1_000, signal).then(refuse, () => undefined);
      let first: FirstFrame | undefined;
      return {
        message: (message) => {
          if (first !== undefined) {
            first.early.push(message);
            return;
          }
          const seen = typeof message === 'string' ? seeFrame(message) : undefined;
          if (seen?.kind !== 'auth') return refuse();
          client.pause();
          first = { client, token: seen.token, early: [] };
          resolve(first);
        },
        closed: () => reject(new AilsdError('TOKEN_MISSING', 'no token came')),
      };
    });
  });
}

/** Judges every further token on the connection; the sandbox hears of those that count. */
function looker(parts: DataplaneRelayParts, call: UpgradeCall, at: DataplaneName, first: Holder) {
  let holder = first;
  const look = (text: string, bridge: Bridge): string | undefined | Promise<string | undefined> => {
    const seen = seeFrame(text);
    if (seen.kind !== 'auth') return text;
    return (async () => {
      try {
        const fresh = await admit(parts, call, ROUTES[at], seen.token);
        if (fresh.sub !== first.sub) throw new AilsdError('UNAUTHENTICATED', 'another caller');
        holder = fresh;
        if (checksTokens(parts, fresh)) return text;
        bridge.tellClient(authOk(fresh));
      } catch (thrown) {
        const error = thrown instanceof AilsdError ? thrown : undefined;
        bridge.end(CLOSES[error?.row.close ?? 'internal']);
      }
      return undefined;
    })();
  };
  return Object.assign(look, { current: (): Holder => holder });
}

/** Where nobody else looks: the connection ends with its token, and when the token is ended. */
function watch(
  { db, clock }: DataplaneRelayParts,
  { exchange }: UpgradeCall,
  bridge: Bridge,
  current: () => Holder,
): void {
  const { signal } = exchange;
  const look = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(WATCH_MS, signal);
      const holder = current();
      if (holder.expiresAtMs <= clock.now()) return bridge.end(CLOSES.tokenExpired);
      if (!(await stillCounts(db, holder))) return bridge.end(CLOSES.invalidToken);
    }
  };
  look().catch(() => {
    // The store is away, and with it the word on who may: fail closed. Or the caller has gone.
    if (!signal.aborted) bridge.end(CLOSES.tryLater);
  });
}

const WATCH_MS = 1_000;

/**
 * CAPABILITY_DENIED without what the route needs. Frames pass unread, so that where the sandbox does not judge them itself
 * a socket takes what its strongest frame takes.
 */
async function admit(
  parts: DataplaneRelayParts,
  call: Call,
  route: Route,
  token: Secret,
): Promise<Holder> {
  const sandboxId = call.parameter('sandbox_id');
  // By its form alone, which everybody knows: of one that could be ours nothing is said without a token for it.
  if (!OUR_ID.test(sandboxId)) throw noSandbox();
  const holder = await checkSandboxToken(parts, sandboxId, token);
  call.exchange.note({ sandbox_id: holder.sandbox.id, sub: holder.sub, jti: holder.jti });
  const isChecked = checksTokens(parts, holder);
  const writes = route.method === 'WS' && !isChecked ? route.writes : undefined;
  const needed = writes ?? route.capability;
  if (needed !== undefined && !allows(holder.capabilities, needed))
    throw new AilsdError('CAPABILITY_DENIED', `this needs the capability ${needed}`, {
      details: { capability: needed },
    });
  checkAnyOf(holder, route.capabilities);
  return holder;
}

function checkAnyOf({ capabilities }: Holder, needed: readonly Capability[] | undefined): void {
  const [first] = needed ?? [];
  if (first === undefined || needed?.some((one) => allows(capabilities, one))) return;
  throw new AilsdError('CAPABILITY_DENIED', `this needs the capability ${first}`, {
    details: { capability: first },
  });
}

const OUR_ID = /^sb_[0-9a-z]{26}$/;

function checksTokens({ providers }: DataplaneRelayParts, { sandbox }: Holder): boolean {
  return providers.find(({ name }) => name === sandbox.provider)?.flags.validatesTokens ?? false;
}

function endpointsOf({ sandbox: { state, endpoints } }: Holder) {
  if (state === 'provisioning') throw stillStarting();
  if (state !== 'active' || endpoints === undefined) throw unreachable('it is suspended');
  return endpoints;
}

function pathAt(call: Call, at: DataplaneName): string {
  const { path = '', command_id = '', shell_id = '' } = call.parameters;
  return buildPath(at, { path, command_id, shell_id });
}

function authOk({ expiresAtMs, capabilities }: Holder): string {
  const expires_at = new Date(expiresAtMs).toISOString();
  return JSON.stringify({ type: 'auth_ok', expires_at, scopes: capabilities });
}
