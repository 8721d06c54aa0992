/** Keeps what was sent until the other side has it, so that a cut loses nothing. No I/O, no clock. */
import { checkOffset } from './offset.js';
import { Ring, type RingRead } from './ring.js';

export class Outbox {
  /** Only acknowledged bytes are ever evicted from it: `append` sees to that. */
  readonly #ring: Ring;
  #acked: number;

  constructor(boundBytes: number, start = 0) {
    this.#ring = new Ring(boundBytes, start);
    this.#acked = this.#ring.start;
  }

  /** Offset of the oldest byte that is not acknowledged. */
  get start(): number {
    return this.#acked;
  }

  /** Offset of the next byte to be appended. */
  get end(): number {
    return this.#ring.end;
  }

  /** How much may be appended; to send a chunk larger than the bound, split it by this. */
  get roomBytes(): number {
    return this.#ring.capacityBytes - (this.end - this.start);
  }

  /** Memory taken so far; at most the bound. */
  get allocatedBytes(): number {
    return this.#ring.allocatedBytes;
  }

  /** Takes all of the chunk or none of it. */
  append(bytes: Uint8Array): 'taken' | 'full' {
    if (bytes.length > this.roomBytes) return 'full';
    this.#ring.append(bytes);
    return 'taken';
  }

  /** The other side has everything before this offset. */
  ack(offset: number): Acked {
    if (checkOffset(offset) > this.end) return { kind: 'ahead', end: this.end };
    if (offset < this.#acked) return { kind: 'stale', start: this.#acked };
    const bytes = offset - this.#acked;
    this.#acked = offset;
    return { kind: 'acked', bytes };
  }

  /** What to send next on a connection that has everything before this offset; no bytes when that is all. */
  pendingFrom(offset: number, maxBytes: number): RingRead {
    if (checkOffset(offset) < this.#acked) return { kind: 'gone', start: this.#acked };
    return this.#ring.read(offset, maxBytes);
  }
}

export type Acked =
  /** How many bytes it freed: none when it was a repetition. */
  | { kind: 'acked'; bytes: number }
  /**
   * Overtaken by a later ack, as may happen between an old connection and a new one: harmless, and on a reconnect
   * sending goes on from `start`. If the other side did forget, its inbox will call that a gap.
   */
  | { kind: 'stale'; start: number }
  /** For bytes that never were: the other side speaks of another stream. */
  | { kind: 'ahead'; end: number };
