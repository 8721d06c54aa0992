/** The most recent bytes of a stream, by offset: a reader that was away goes on where it was, if that is still here. */
import { checkByteCount } from '../base/bytes.js';
import { checkOffset } from './offset.js';

export class Ring {
  readonly capacityBytes: number;
  /** The byte at an offset is at `offset % capacityBytes` for as long as it is kept; blocks are made when first needed. */
  readonly #blocks: (Uint8Array | undefined)[] = [];
  #start: number;
  #end: number;
  #allocatedBytes = 0;

  constructor(capacityBytes: number, start = 0) {
    if (checkOffset(capacityBytes) === 0) throw new RangeError('a ring holds at least one byte');
    this.capacityBytes = capacityBytes;
    this.#start = checkOffset(start);
    this.#end = start;
  }

  /** Offset of the oldest byte still here. */
  get start(): number {
    return this.#start;
  }

  /** Offset of the next byte to come. */
  get end(): number {
    return this.#end;
  }

  /** Memory taken so far; at most the capacity. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Copies the bytes in; the oldest make room. Of a chunk larger than the ring its end is kept. */
  append(bytes: Uint8Array): void {
    const end = checkOffset(this.#end + bytes.length);
    const kept = bytes.length > this.capacityBytes ? bytes.subarray(-this.capacityBytes) : bytes;
    let from = 0;
    while (from < kept.length) {
      const position = (end - kept.length + from) % this.capacityBytes;
      const index = Math.floor(position / BLOCK_BYTES);
      const block = this.#block(index);
      const at = position - index * BLOCK_BYTES;
      const to = Math.min(kept.length, from + block.length - at);
      block.set(kept.subarray(from, to), at);
      from = to;
    }
    this.#end = end;
    this.#start = Math.max(this.#start, end - this.capacityBytes);
  }

  /**
   * Up to `maxBytes` from an offset on, as a copy of the caller's own; none when the reader has caught up. Throws a
   * RangeError for a number that is no offset or no number of bytes.
   */
  read(from: number, maxBytes: number): RingRead {
    const wanted = checkByteCount(maxBytes);
    if (checkOffset(from) < this.#start) return { kind: 'gone', start: this.#start };
    if (from > this.#end) return { kind: 'ahead', end: this.#end };
    const bytes = new Uint8Array(Math.min(wanted, this.#end - from));
    let done = 0;
    while (done < bytes.length) {
      const position = (from + done) % this.capacityBytes;
      const index = Math.floor(position / BLOCK_BYTES);
      const block = this.#block(index);
      const at = position - index * BLOCK_BYTES;
      const part = block.subarray(at, at + bytes.length - done);
      bytes.set(part, done);
      done += part.length;
    }
    return { kind: 'bytes', offset: from, bytes };
  }

  #block(index: number): Uint8Array {
    const known = this.#blocks[index];
    if (known !== undefined) return known;
    const length = Math.min(BLOCK_BYTES, this.capacityBytes - index * BLOCK_BYTES);
    this.#allocatedBytes += length;
    const block = new Uint8Array(length);
    this.#blocks[index] = block;
    return block;
  }
}

export type RingRead =
  | { kind: 'bytes'; offset: number; bytes: Uint8Array<ArrayBuffer> }
  /** Evicted: the oldest byte still here is at `start`. */
  | { kind: 'gone'; start: number }
  /** Never written: whoever asks has seen another stream. */
  | { kind: 'ahead'; end: number };

/** Small enough for a thousand quiet streams, large enough that copying is all the work there is. */
const BLOCK_BYTES = 16_384;
