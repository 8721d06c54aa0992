/** Flow control by credit: a sender runs at most a window ahead of what its reader has consumed. No I/O, no clock. */
import { checkOffset } from './offset.js';
import type { Acked } from './outbox.js';

export class SendWindow {
  readonly windowBytes: number;
  #sent: number;
  #acked: number;

  constructor(windowBytes: number, start = 0) {
    this.windowBytes = checkOffset(windowBytes);
    this.#sent = checkOffset(start);
    this.#acked = start;
  }

  /** Offset of the next byte to send on this connection. */
  get sent(): number {
    return this.#sent;
  }

  get acked(): number {
    return this.#acked;
  }

  /** How many bytes may be sent before the next ack; never negative. */
  get available(): number {
    return this.windowBytes - (this.#sent - this.#acked);
  }

  get isBlocked(): boolean {
    return this.available === 0;
  }

  /** Notes bytes as sent: all of them, or none when they are more than is available. */
  send(bytes: number): 'sent' | 'blocked' {
    if (checkOffset(bytes) > this.available) return 'blocked';
    this.#sent = checkOffset(this.#sent + bytes);
    return 'sent';
  }

  /** The reader has consumed everything before this offset. */
  ack(offset: number): Acked {
    if (checkOffset(offset) > this.#sent) return { kind: 'ahead', end: this.#sent };
    if (offset < this.#acked) return { kind: 'stale', start: this.#acked };
    const bytes = offset - this.#acked;
    this.#acked = offset;
    return { kind: 'acked', bytes };
  }

  /** A new connection, or a jump to a snapshot: nothing is under way, and the reader is at this offset. */
  restart(offset: number): void {
    this.#sent = checkOffset(offset);
    this.#acked = offset;
  }
}

export interface ReceiveWindowOptions {
  /** An ack is due once this much was consumed since the last; a fraction of the sender's window keeps it moving. */
  readonly ackEveryBytes: number;
  /** However little it was, an ack is due after this long; it is what frees a sender whose window is smaller. */
  readonly maxDelayMs: number;
}

/** The reader's half: says when what was consumed is worth an ack. Times are the caller's, of one monotonic clock. */
export class ReceiveWindow {
  readonly #options: ReceiveWindowOptions;
  #consumed: number;
  #acked: number;
  #dueAtMs: number | undefined;

  constructor(options: ReceiveWindowOptions, start = 0) {
    this.#options = options;
    this.#consumed = checkOffset(start);
    this.#acked = start;
  }

  /** When an ack is due: a time already reached means now; `undefined`, that none is owed. */
  get dueAtMs(): number | undefined {
    return this.#dueAtMs;
  }

  /** Everything before this offset was used up, not only received: a slow reader slows its sender by this. */
  consume(offset: number, nowMs: number): void {
    if (checkOffset(offset) <= this.#consumed) return;
    this.#consumed = offset;
    const isMuch = offset - this.#acked >= this.#options.ackEveryBytes;
    const dueAtMs = isMuch ? nowMs : nowMs + this.#options.maxDelayMs;
    this.#dueAtMs = Math.min(this.#dueAtMs ?? dueAtMs, dueAtMs);
  }

  isDue(nowMs: number): boolean {
    return this.#dueAtMs !== undefined && this.#dueAtMs <= nowMs;
  }

  /** The offset to acknowledge, taken as told: also without being due, when a frame leaves anyway. */
  take(): number {
    this.#acked = this.#consumed;
    this.#dueAtMs = undefined;
    return this.#acked;
  }
}
