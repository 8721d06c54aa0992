/** A WebSocket as the server sees it: messages in and out, one close with a code and reason of the protocol's table. */
import { WebSocket } from 'ws';
import { CLOSES, type Close } from '../../protocol/closes.js';

/** What happens on a connection. Nothing comes after `closed`, and `closed` always comes. */
export interface SocketEvents {
  /** Text as text, bytes as bytes of the receiver's own. */
  message(message: string | Uint8Array): void;
  /** 1006: the line was cut. Otherwise what the peer said, or answered to our own close. */
  closed(code: number, reason: string): void;
  /** What was sent has left for the network; only where somebody asks for it. */
  drained?(): void;
  /** The peer answered a ping. */
  alive?(): void;
}

export interface SocketBounds {
  /** The longest message taken; a longer one ends the connection with 1009. */
  readonly messageBytes: number;
  /** How long a peer may take to answer a close before the line is cut. */
  readonly closeTimeoutMs?: number;
}

/** Never more pieces a message: an endless row of empty ones has no size. */
export const FRAGMENTS_MAX = 1_024;
const BUFFERED_CHUNKS_MAX = 16_384;
const CLOSE_TIMEOUT_MS = 5_000;

/** Options for both ends: no compression (it costs latency and hides bombs), and bounds on everything that can pile up. */
export function wsOptions({ messageBytes, closeTimeoutMs = CLOSE_TIMEOUT_MS }: SocketBounds) {
  return {
    perMessageDeflate: false,
    maxPayload: messageBytes,
    maxFragments: FRAGMENTS_MAX,
    maxBufferedChunks: BUFFERED_CHUNKS_MAX,
    closeTimeout: closeTimeoutMs,
  } as const;
}

/** Closes with the protocol's reasons where the library, finding a fault, gives a bare code. */
export class PoliteWebSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    const fault = reason === undefined ? FAULTS.get(code ?? 0) : undefined;
    if (fault === undefined) super.close(code, reason ?? '');
    else super.close(fault.code, fault.reason);
  }
}

/** The library calls too many pieces a policy violation, which for a client would be the end of its token. */
const FAULTS: ReadonlyMap<number, Close> = new Map<number, Close>([
  [1002, CLOSES.protocolError],
  [1007, CLOSES.invalidText],
  [1008, CLOSES.tooBig],
  [1009, CLOSES.tooBig],
]);

export class Socket {
  readonly #ws: WebSocket;
  #events: SocketEvents;
  #isClosed = false;
  readonly #sent = (): void => this.#events.drained?.();

  constructor(ws: WebSocket, events: SocketEvents) {
    this.#ws = ws;
    this.#events = events;
    ws.on('message', (data, isBinary) => {
      const bytes = Array.isArray(data) ? Buffer.concat(data) : data;
      const whole = bytes instanceof ArrayBuffer ? Buffer.from(bytes) : bytes;
      this.#events.message(isBinary ? whole : whole.toString('utf8'));
    });
    ws.on('close', (code, reason) => {
      this.#isClosed = true;
      this.#events.closed(code, reason.toString('utf8'));
    });
    ws.on('pong', () => this.#events.alive?.());
    // Without a listener one bad message would end the process; what follows an error is always a close.
    ws.on('error', () => undefined);
  }

  /** The subprotocol that was agreed; empty for none. */
  get protocol(): string {
    return this.#ws.protocol;
  }

  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes that were sent and have not left this process. */
  get bufferedBytes(): number {
    return this.#ws.bufferedAmount;
  }

  /** Hands further events to somebody else. */
  handOver(events: SocketEvents): void {
    this.#events = events;
  }

  /** Lost in silence when the connection is closing: whoever must know keeps what was not acknowledged. */
  send(message: string | Uint8Array): void {
    if (this.#ws.readyState !== WebSocket.OPEN) return;
    this.#ws.send(message, this.#events.drained === undefined ? undefined : this.#sent);
  }

  /** Asks whether anybody is there; by the protocol's own ping, which every peer answers by itself. */
  ping(): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.ping();
  }

  /** What was sent before still goes out. A peer that does not answer is cut off after a while. */
  close({ code, reason }: Close): void {
    this.#ws.close(code, reason);
  }

  /** At once, without a word. */
  cut(): void {
    this.#ws.terminate();
  }

  /** Reads nothing more until `resume`: the peer's sending then comes to a halt by itself. */
  pause(): void {
    if (!this.#ws.isPaused) this.#ws.pause();
  }

  resume(): void {
    if (this.#ws.isPaused) this.#ws.resume();
  }

  /** From the next message on. The library has no word for it: a version without this field keeps the old bound. */
  allowMessages(bytes: number): void {
    const receiver: unknown = Reflect.get(this.#ws, '_receiver');
    if (typeof receiver !== 'object' || receiver === null || !('_maxPayload' in receiver)) return;
    Reflect.set(receiver, '_maxPayload', bytes);
  }
}
