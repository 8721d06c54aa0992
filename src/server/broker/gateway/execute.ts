/** `WS /execute?token=` (S0): one message with code; its output as it comes, then the result. Counted and recorded like every call. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../../base/clock.js';
import type { Secret } from '../../../base/secret.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError, errorRow } from '../../../protocol/errors.js';
import { encodeFrame } from '../../../protocol/frame-codec.js';
import { DATA_MAX_BYTES } from '../../../protocol/frames.js';
import { parseRequest } from '../../../protocol/parse.js';
import { executeMessage } from '../../../protocol/shapes/gateway.js';
import type { UpgradeCall, UpgradeCode } from '../../http/upgrade.js';
import type { Socket, SocketEvents } from '../../http/websocket.js';
import type { Db } from '../../store/db.js';
import type { Calls } from '../code/calls.js';
import { toCodeAnswer } from '../code/outcome.js';
import { CODE_TOKEN_SECONDS, type CodeRunner, codeTimeout } from '../code/run-code.js';
import { takeInvite } from '../sharing/take-invite.js';
import type { Guest, InvitedSessions } from './invited.js';
import { readInviteQuery } from './query.js';

export interface GatewayParts {
  readonly db: Db;
  readonly clock: Clock;
  /** `SANDBOX_AUTH_SECRET`. */
  readonly secret: Secret;
  readonly invited: InvitedSessions;
  readonly calls: Calls;
  readonly runner: CodeRunner;
}

/** For the one message to come. */
const MESSAGE_MS = 10_000;
/** A reader that lets more than this pile up is told no more of the output; the result has what fits. */
const BUFFERED_BYTES = 4 * 1024 * 1024;

export function executeByInvite(parts: GatewayParts): UpgradeCode {
  return async (call) => {
    const { exchange } = call;
    const { token } = readInviteQuery(exchange);
    const { db, secret } = parts;
    const { requestId } = exchange;
    const taken = await takeInvite({ db, secret }, { endpoint: 'execute', token, requestId });
    if (taken.kind === 'refused') return refuse(call, taken.code);
    const { claims, origin } = taken;
    exchange.note({ sub: claims.sub, jti: claims.jti });
    const asked = { room: undefined, origin, capability: 'process', requestId } as const;
    const guest = await parts.invited.guestOf(claims.sub, asked);
    if (guest === undefined) return refuse(call, 'UNAUTHENTICATED');
    const message = new OneMessage(call, parts.clock);
    await message.whenOpen;
    const text = await message.text;
    if (text !== undefined) await execute(parts, call, message, guest, text);
  };
}

/** A close is how an invite is refused, so the connection is accepted first. */
export function refuse(call: UpgradeCall, code: AilsdError['code']): void {
  call.exchange.note({ refused: code });
  call.accept((socket) => {
    socket.close(CLOSES[errorRow(code).close]);
    return SILENT;
  });
}

const SILENT: SocketEvents = { message: () => undefined, closed: () => undefined };

export function errorText(error: AilsdError, requestId: string): string {
  const { code, message, row, details } = error;
  const { retryable } = row;
  return JSON.stringify({
    type: 'error',
    ...details,
    code,
    message,
    retryable,
    request_id: requestId,
  });
}

async function execute(
  parts: GatewayParts,
  { exchange }: UpgradeCall,
  { socket }: OneMessage,
  guest: Guest,
  text: string,
): Promise<void> {
  const { requestId } = exchange;
  const parsed = parseRequest(executeMessage, toJson(text));
  if (!parsed.ok) {
    socket.send(errorText(parsed.error, requestId));
    socket.close(CLOSES[parsed.error.row.close]);
    return;
  }
  // Whoever the message says it is from, it is from the invite's bearer.
  const { code, language = 'python', timeout_ms: timeoutMs } = parsed.value;
  const offsets = { stdout: 0, stderr: 0 };
  try {
    const called = await parts.calls.perform(
      {
        via: 'execute',
        tenant: guest.tenant,
        agentId: guest.sub,
        // A run has a name of its own each time: the hour is that of whoever asked for the invite.
        countedAs: guest.origin?.actor ?? guest.origin?.issuedTo ?? guest.sub,
        owner: guest.origin?.issuedTo ?? guest.sub,
        clientId: guest.origin?.clientId ?? 'invite',
        requestId,
        threadId: guest.threadId,
        language,
        codeHash: createHash('sha256').update(code).digest('hex'),
        policy: () => parts.invited.policy(guest),
        open: (policy, signal) => parts.invited.open(guest, policy, CODE_TOKEN_SECONDS, signal),
        signal: exchange.signal,
      },
      (work) =>
        parts.runner.run(work, {
          text: code,
          language,
          timeoutMs: codeTimeout(timeoutMs),
          requestId,
          onOutput: (stream, bytes) => {
            for (let at = 0; at < bytes.length; at += DATA_MAX_BYTES) {
              const data = bytes.subarray(at, at + DATA_MAX_BYTES);
              const offset = offsets[stream];
              offsets[stream] += data.length;
              if (socket.bufferedBytes > BUFFERED_BYTES) continue;
              socket.send(encodeFrame({ type: stream, offset, data }, 'json'));
            }
          },
        }),
    );
    const { outcome, invocationId, sessionId } = called;
    exchange.note({ invocation_id: invocationId, exit_status: outcome.exitStatus });
    const answer = toCodeAnswer(outcome, { invocationId, sessionId });
    socket.send(JSON.stringify({ type: 'result', ...answer }));
    socket.close(CLOSES.done);
  } catch (thrown) {
    exchange.noteError(thrown);
    const error = new AilsdError('BACKEND_UNAVAILABLE', 'the call could not be recorded');
    socket.send(errorText(error, requestId));
    socket.close(CLOSES.tryLater);
  }
}

/** Waits for a message; anything after it is not read. */
class OneMessage {
  readonly whenOpen: Promise<void>;
  /** Undefined: none came in time, or the caller left. */
  readonly text: Promise<string | undefined>;
  #socket: Socket | undefined;

  constructor(call: UpgradeCall, clock: Clock) {
    const timer = new AbortController();
    let settle: (text: string | undefined) => void = () => undefined;
    this.text = new Promise((resolve) => {
      settle = (text) => {
        timer.abort();
        resolve(text);
      };
    });
    this.whenOpen = new Promise((open) => {
      call.accept((socket) => {
        this.#socket = socket;
        const late = (): void => {
          const error = new AilsdError('INVALID_REQUEST', 'no message came', {
            details: { field: 'code' },
          });
          socket.send(errorText(error, call.exchange.requestId));
          socket.close(CLOSES.protocolError);
          settle(undefined);
        };
        clock.sleep(MESSAGE_MS, timer.signal).then(late, () => undefined);
        open();
        return {
          message: (message) => settle(typeof message === 'string' ? message : ''),
          closed: () => settle(undefined),
        };
      });
    });
  }

  get socket(): Socket {
    if (this.#socket === undefined) throw new AilsdError('INTERNAL', 'not open yet');
    return this.#socket;
  }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
