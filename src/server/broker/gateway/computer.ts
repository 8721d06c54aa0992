/** `WS /computer?token=&room=&elevated=` (S0): the shells of a room's sandbox, in their own frames. Counted and recorded as one call. */
import { createHash } from 'node:crypto';
import { onAbort } from '../../../base/abort.js';
import { createDeferred } from '../../../base/deferred.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError } from '../../../protocol/errors.js';
import { SANDBOX_TOKEN_SECONDS } from '../../../protocol/lifetimes.js';
import type { UpgradeCall, UpgradeCode } from '../../http/upgrade.js';
import type { Socket } from '../../http/websocket.js';
import type { Work } from '../code/calls.js';
import { NOTHING, type Outcome } from '../code/outcome.js';
import { authFrame, seeFrame } from '../relay/auth-frames.js';
import type { Bridge } from '../relay/bridge.js';
import type { SocketRelay } from '../relay/socket-relay.js';
import { takeInvite } from '../sharing/take-invite.js';
import { errorText, type GatewayParts, refuse } from './execute.js';
import type { Guest } from './invited.js';
import { readInviteQuery } from './query.js';

export interface ComputerParts extends GatewayParts {
  readonly sockets: SocketRelay;
}

/** A shell is no piece of code: the row names the hash of nothing. */
const NO_CODE = createHash('sha256').update('').digest('hex');
/** Told to programs in a shell that an elevated invite opened. */
const ELEVATED_VARIABLE = 'AILSD_ELEVATED';

export function computerByInvite(parts: ComputerParts): UpgradeCode {
  return async (call) => {
    const { exchange } = call;
    const { requestId } = exchange;
    const query = readInviteQuery(exchange);
    const shown = { endpoint: 'computer', requestId, ...query } as const;
    const taken = await takeInvite({ db: parts.db, secret: parts.secret }, shown);
    if (taken.kind === 'refused') return refuse(call, taken.code);
    const { claims, origin, room, isElevated } = taken;
    exchange.note({ sub: claims.sub, jti: claims.jti, thread_id: room, elevated: isElevated });
    const asked = { room, origin, capability: 'shell', requestId } as const;
    const guest = await parts.invited.guestOf(claims.sub, asked);
    if (guest === undefined) return refuse(call, 'UNAUTHENTICATED');
    const client = await accepted(call);
    await serve(parts, call, client, guest, isElevated);
  };
}

/** Paused: nothing of it is read before there is somebody to read it. */
function accepted(call: UpgradeCall): Promise<Socket> {
  return new Promise((resolve) => {
    call.accept((socket) => {
      socket.pause();
      resolve(socket);
      return { message: () => undefined, closed: () => undefined };
    });
  });
}

async function serve(
  parts: ComputerParts,
  call: UpgradeCall,
  client: Socket,
  guest: Guest,
  isElevated: boolean,
): Promise<void> {
  const { exchange } = call;
  const { requestId } = exchange;
  try {
    const { outcome } = await parts.calls.perform(
      {
        via: 'computer',
        tenant: guest.tenant,
        agentId: guest.sub,
        countedAs: guest.origin?.actor ?? guest.sub,
        owner: guest.origin?.issuedTo ?? guest.sub,
        clientId: guest.origin?.clientId ?? 'invite',
        requestId,
        threadId: guest.threadId,
        codeHash: NO_CODE,
        policy: () => parts.invited.policy(guest),
        open: (policy, signal) =>
          parts.invited.open(guest, policy, SANDBOX_TOKEN_SECONDS.max, signal),
        signal: exchange.signal,
      },
      (work) => connect(parts, call, client, guest, isElevated, work),
    );
    if (outcome.exitStatus === 'ok' || client.isClosed) return;
    const code = outcome.exitStatus === 'cap_exceeded' ? 'QUOTA_EXCEEDED' : 'PROVIDER_UNAVAILABLE';
    end(client, outcomeError(code, outcome), requestId);
  } catch (thrown) {
    exchange.noteError(thrown);
    const error = new AilsdError('BACKEND_UNAVAILABLE', 'the call could not be recorded');
    end(client, error, requestId);
  }
}

function outcomeError(code: 'QUOTA_EXCEEDED' | 'PROVIDER_UNAVAILABLE', outcome: Outcome) {
  const { message = '', breach } = outcome;
  const details = breach && {
    dimension: breach.dimension,
    resets_at: new Date(breach.resetsAtMs).toISOString(),
  };
  return new AilsdError(code, message, { ...(details && { details }) });
}

function end(client: Socket, error: AilsdError, requestId: string): void {
  client.send(errorText(error, requestId));
  client.resume();
  client.close(CLOSES[error.row.close]);
}

/** Until either end leaves. The outcome is that of the visit: what was typed and shown is the shell's own. */
async function connect(
  parts: ComputerParts,
  call: UpgradeCall,
  client: Socket,
  guest: Guest,
  isElevated: boolean,
  { opened, signal }: Work,
): Promise<Outcome> {
  const { clock } = parts;
  const { sandbox, minted } = opened;
  const begin = clock.monotonic();
  const target = { wsUrl: sandbox.endpoints.wsUrl, path: '/v1/shell/ws', token: minted.token };
  const socket = await parts.sockets.dial(call, target);
  let shownBytes = 0;
  const over = createDeferred();
  const bridge = parts.sockets.bridge(call, client, (text, joined) =>
    look(text, joined, isElevated),
  );
  bridge.join(socket);
  const { clientEvents, sandboxEvents } = bridge;
  socket.handOver({
    ...sandboxEvents,
    message: (message) => {
      shownBytes += message.length;
      sandboxEvents.message(message);
    },
    closed: (code, reason) => {
      sandboxEvents.closed(code, reason);
      over.resolve();
    },
  });
  client.handOver({
    ...clientEvents,
    closed: (code, reason) => {
      clientEvents.closed(code, reason);
      over.resolve();
    },
  });
  const left = new AbortController();
  const leave = onAbort(signal, () => {
    bridge.end(CLOSES.goingAway);
    over.resolve();
  });
  renewToken(parts, guest, socket, minted.refreshBeforeMs - minted.issuedAtMs, left.signal).catch(
    () => {
      if (!left.signal.aborted) bridge.end(CLOSES.invalidToken);
    },
  );
  socket.resume();
  client.resume();
  try {
    await over.promise;
  } finally {
    leave();
    left.abort();
  }
  const durationMs = clock.monotonic() - begin;
  const stdout = { text: '', bytes: shownBytes, isTruncated: false };
  return { exitStatus: 'ok', exitCode: 0, durationMs, stdout, stderr: NOTHING };
}

/** An invite is shown once: a token in a frame is nothing that could count here. */
function look(text: string, bridge: Bridge, isElevated: boolean): string | undefined {
  const seen = seeFrame(text);
  if (seen.kind === 'other') return text;
  if (seen.kind === 'auth') {
    bridge.end(CLOSES.invalidToken);
    return undefined;
  }
  const { env } = seen.frame;
  // What is no list of variables is the sandbox's to refuse.
  if (env !== undefined && (typeof env !== 'object' || env === null || Array.isArray(env)))
    return text;
  const variables = Object.fromEntries(
    Object.entries(env ?? {}).filter(([name]) => name !== ELEVATED_VARIABLE),
  );
  if (isElevated) variables[ELEVATED_VARIABLE] = '1';
  return JSON.stringify({ ...seen.frame, env: variables });
}

/** A shell outlives any token: the sandbox gets a fresh one in time, for as long as the tenant and the session allow it. */
async function renewToken(
  parts: ComputerParts,
  guest: Guest,
  socket: Socket,
  everyMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await parts.clock.sleep(everyMs, signal);
    const policy = await parts.invited.policy(guest);
    const opened = await parts.invited.open(guest, policy, SANDBOX_TOKEN_SECONDS.max, signal);
    socket.send(authFrame(opened.minted.token));
  }
}
