/** One WebSocket of a sandbox: says who it is first and again when its token ends, then its frames go to an endpoint. */
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import type { Secret } from '../../../base/secret.js';
import type { Capability } from '../../../protocol/capabilities.js';
import { CLOSES, type Close } from '../../../protocol/closes.js';
import { AilsdError } from '../../../protocol/errors.js';
import {
  decodeFrame,
  encodeFrame,
  SUBPROTOCOLS,
  type Wire,
} from '../../../protocol/frame-codec.js';
import {
  type ControlFrame,
  type ControlSchema,
  type DataFrame,
  type DataType,
  type FrameSet,
  MESSAGE_MAX_BYTES,
} from '../../../protocol/frames.js';
import { AUTH_SECONDS } from '../../../protocol/routes/dataplane.js';
import { toAilsdError } from '../../http/errors.js';
import type { Socket, SocketEvents } from '../../http/websocket.js';
import type { Access, Admission } from '../access/access.js';
import { type Identity, isSamePerson } from '../access/identity.js';
import type { Endpoint, EndpointSession, Peer } from './endpoint.js';
import { errorFrameOf, tokenOf } from './first-frame.js';

/** Any endpoint; which frames it takes is between it and its codec. */
export type AnyEndpoint = Endpoint<FrameSet<ControlSchema, DataType>>;
type AnyFrame = ControlFrame | DataFrame;

export interface ConnectionParts {
  readonly socket: Socket;
  readonly access: Access;
  readonly endpoint: AnyEndpoint;
  /** What the route asks for; without it every frame is refused. */
  readonly capability: Capability;
  readonly connectionId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told once it is known who is there. */
  readonly onIdentity: (identity: Identity) => void;
  readonly onClosed: () => void;
}

/** Waiting to be sent to a peer that does not read; then its own frames wait too. */
const UNREAD_MAX_BYTES = 4 * 1024 * 1024;
/** More messages than that in a second wait for the next one. */
const MESSAGES_PER_SECOND = 20_000;
/** Nothing heard for so long, not even the answer to a ping: the line is dead. */
export const SILENCE_MS = 45_000;
/** The same of one that has much to read: whoever stops reading answers no ping either, and may come back. */
export const STALL_MS = 150_000;

export class Connection implements SocketEvents, Peer {
  readonly #parts: ConnectionParts;
  readonly #wire: Wire;
  #identity: Identity | undefined;
  #revision = 0;
  #session: EndpointSession<AnyFrame> | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #isClosing = false;
  readonly #holds = new Set<Hold>();
  /** Messages that came in one piece with one that takes its time. */
  #queue: (string | Uint8Array)[] = [];
  #heardAt: number;
  #secondBegan: number;
  #messages = 0;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#wire = parts.socket.protocol === SUBPROTOCOLS.binary ? 'binary' : 'json';
    this.#heardAt = parts.clock.monotonic();
    this.#secondBegan = this.#heardAt;
  }

  get identity(): Identity {
    if (this.#identity === undefined) throw new Error('nobody has said who they are');
    return this.#identity;
  }

  get bufferedBytes(): number {
    return this.#parts.socket.bufferedBytes;
  }

  get isClosed(): boolean {
    return this.#isClosing || this.#parts.socket.isClosed;
  }

  /** With a token from the request's header, or with none: then the first frame must bring it. */
  begin(token: Secret | undefined): void {
    if (token === undefined) {
      const late = (): void => this.close(CLOSES.missingToken);
      this.#deadline = setTimeout(late, AUTH_SECONDS * 1_000);
    } else this.#admit(token);
  }

  message(message: string | Uint8Array): void {
    if (this.#isClosing) return;
    this.#heardAt = this.#parts.clock.monotonic();
    if (this.#identity === undefined) this.#first(message);
    else if (this.#holds.has('busy')) this.#queue.push(message);
    else {
      this.#pace();
      this.#take(message);
    }
  }

  alive(): void {
    this.#heardAt = this.#parts.clock.monotonic();
  }

  drained(): void {
    if (this.#holds.has('unread') && this.bufferedBytes < UNREAD_MAX_BYTES / 2)
      this.#free('unread');
    this.#session?.drained?.();
  }

  closed(code: number): void {
    this.#isClosing = true;
    clearTimeout(this.#deadline);
    this.#queue = [];
    this.#session?.closed(code);
    this.#parts.onClosed();
  }

  /** Looks at it from time to time: its token may have ended, its line may be dead. */
  check(nowMs: number): void {
    const identity = this.#identity;
    if (identity === undefined || this.#isClosing) return;
    const { clock, socket } = this.#parts;
    const ending = this.#endingOf(identity, nowMs);
    const silentMs = clock.monotonic() - this.#heardAt;
    if (ending !== undefined) this.close(ending);
    else if (silentMs > this.#patienceMs && this.#holds.size === 0) socket.cut();
  }

  ping(): void {
    this.#parts.socket.ping();
  }

  send(frame: AnyFrame): void {
    this.#parts.socket.send(encodeFrame(frame, this.#wire));
    if (this.bufferedBytes > UNREAD_MAX_BYTES) this.#hold('unread');
  }

  hold(): void {
    this.#hold('session');
  }

  release(): void {
    this.#free('session');
  }

  leave(): void {
    this.close(CLOSES.done);
  }

  close(close: Close): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    clearTimeout(this.#deadline);
    this.#holds.clear();
    this.#parts.socket.resume();
    this.#parts.socket.close(close);
  }

  #first(message: string | Uint8Array): void {
    const token = tokenOf(message);
    if (token.kind === 'none') this.close(CLOSES.missingToken);
    else if (token.kind === 'bad') this.close(CLOSES.invalidToken);
    else this.#admit(token.token);
  }

  get #patienceMs(): number {
    const isBehind = this.bufferedBytes > 0 || this.#session?.isBehind?.() === true;
    return isBehind ? STALL_MS : SILENCE_MS;
  }

  /** Why a token that counted does no longer. */
  #endingOf({ expiresAtMs, jti, token }: Identity, nowMs: number): Close | undefined {
    const { access } = this.#parts;
    if (expiresAtMs <= nowMs) return CLOSES.tokenExpired;
    if (access.isEnded(jti)) return CLOSES.invalidToken;
    if (this.#revision === access.revision) return undefined;
    const again = access.admit(token);
    this.#revision = access.revision;
    return again.kind === 'valid' ? undefined : closeFor(again);
  }

  #admit(token: Secret): void {
    const admission = this.#parts.access.admit(token);
    const before = this.#identity;
    if (admission.kind !== 'valid') this.close(closeFor(admission));
    else if (before !== undefined && !isSamePerson(before, admission.identity))
      this.close(CLOSES.invalidToken);
    else this.#welcome(admission.identity);
  }

  #welcome(identity: Identity): void {
    const { access, endpoint, socket, onIdentity, connectionId } = this.#parts;
    clearTimeout(this.#deadline);
    this.#identity = identity;
    this.#revision = access.revision;
    onIdentity(identity);
    const { expiresAtMs, capabilities } = identity;
    const welcome = {
      type: 'auth_ok',
      session_id: connectionId,
      expires_at: new Date(expiresAtMs).toISOString(),
      scopes: capabilities,
    };
    this.send(welcome);
    if (this.#session !== undefined) this.#session.identified?.();
    else {
      socket.allowMessages(MESSAGE_MAX_BYTES);
      this.#session = endpoint.open(this);
    }
  }

  #take(message: string | Uint8Array): void {
    const decoded = decodeFrame(this.#parts.endpoint.frames, message);
    if (decoded.ok) this.#dispatch(decoded.frame, message);
    else if (decoded.error.code === 'PAYLOAD_TOO_LARGE') this.close(CLOSES.tooBig);
    else this.send(errorFrameOf(decoded.error));
  }

  #dispatch(frame: AnyFrame, message: string | Uint8Array): void {
    if (frame.type === 'auth') this.#again(message);
    else if (frame.type === 'ping') this.#pong(frame);
    else this.#work(frame);
  }

  #pong(ping: AnyFrame): void {
    const id = 'id' in ping && typeof ping.id === 'number' ? { id: ping.id } : {};
    const pong = { type: 'pong', ...id };
    this.send(pong);
  }

  /** A fresh token on a live connection. */
  #again(message: string | Uint8Array): void {
    const token = tokenOf(message);
    if (token.kind === 'token') this.#admit(token.token);
    else this.close(CLOSES.invalidToken);
  }

  #work(frame: AnyFrame): void {
    const { capability } = this.#parts;
    try {
      if (frame.type !== 'close' && !this.identity.allowed.has(capability))
        throw new AilsdError('CAPABILITY_DENIED', `this needs ${capability}`, {
          details: { capability },
        });
      const working = this.#session?.take(frame);
      if (working === undefined) return;
      this.#hold('busy');
      working.catch((thrown: unknown) => this.#fail(thrown)).finally(() => this.#afterWork());
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #afterWork(): void {
    this.#holds.delete('busy');
    while (!this.#holds.has('busy') && !this.#isClosing) {
      const message = this.#queue.shift();
      if (message === undefined) break;
      this.#take(message);
    }
    if (this.#holds.size === 0 && !this.#isClosing) this.#parts.socket.resume();
  }

  #fail(thrown: unknown): void {
    const error = toAilsdError(thrown);
    if (error.code === 'INTERNAL') this.#parts.logger.error('a frame failed', { error: thrown });
    if (!this.#isClosing) this.send(errorFrameOf(error));
  }

  #pace(): void {
    const now = this.#heardAt;
    if (now - this.#secondBegan >= 1_000) {
      this.#secondBegan = now;
      this.#messages = 0;
    }
    this.#messages += 1;
    if (this.#messages <= MESSAGES_PER_SECOND || this.#holds.has('pace')) return;
    this.#hold('pace');
    setTimeout(() => this.#free('pace'), this.#secondBegan + 1_000 - now);
  }

  #hold(reason: Hold): void {
    this.#holds.add(reason);
    this.#parts.socket.pause();
  }

  #free(reason: Hold): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.#parts.socket.resume();
  }
}

type Hold = 'busy' | 'session' | 'unread' | 'pace';

function closeFor({ kind }: Admission): Close {
  if (kind === 'expired') return CLOSES.tokenExpired;
  return kind === 'unknown' ? CLOSES.tryLater : CLOSES.invalidToken;
}
