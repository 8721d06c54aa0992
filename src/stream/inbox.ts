/** Delivers every byte of a stream once and in order, whatever the connection did. No I/O, no clock. */
import { checkOffset } from './offset.js';

export class Inbox {
  #next: number;

  /** A reader that begins at a snapshot begins at the snapshot's offset. */
  constructor(next = 0) {
    this.#next = checkOffset(next);
  }

  /** Offset of the next byte to deliver, and so what a reconnect resumes from. */
  get next(): number {
    return this.#next;
  }

  /**
   * Takes a chunk that may repeat bytes already delivered, down to nothing fresh at all; a hole before it is the
   * caller's to mend, by asking again from `expected`. The fresh bytes are a view of the chunk.
   */
  accept(offset: number, chunk: Uint8Array): Accepted {
    if (checkOffset(offset) > this.#next) return { kind: 'gap', expected: this.#next };
    const fresh = chunk.subarray(this.#next - offset);
    this.#next = checkOffset(this.#next + fresh.length);
    return { kind: 'fresh', bytes: fresh };
  }
}

export type Accepted = { kind: 'fresh'; bytes: Uint8Array } | { kind: 'gap'; expected: number };
