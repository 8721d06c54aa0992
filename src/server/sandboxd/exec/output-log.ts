/**
 * One output of a command by offset: the latest bytes in memory, what does not fit there in a file, both bounded. Counts and hashes
 * everything, also what is past the limit and kept nowhere.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { Ring } from '../../../stream/ring.js';

export interface OutputLogParts {
  /** Made when memory is not enough. */
  readonly path: string;
  /** What is kept and sent; the rest is counted. */
  readonly limitBytes: number;
  /** `all`: whatever is within the limit stays. `unread`: what was released may go, and what was not holds the program back. */
  readonly keeps: 'all' | 'unread';
  /** Something that was waited for has happened: there is room. */
  readonly onRoom: () => void;
}

export type LogRead =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** It takes a moment; empty when it has gone meanwhile. */
  | { readonly kind: 'stored'; readonly bytes: Promise<Uint8Array> }
  | { readonly kind: 'gone'; readonly start: number };

/** Of each output; taken as it is needed. */
export const RING_BYTES = 2 * 1024 * 1024;
/** What has to stay and lies in memory alone: beyond the first it goes to the file, beyond the second the program waits for that. */
const SPILL_BYTES = 1024 * 1024;
const FULL_BYTES = 1536 * 1024;
const WRITE_BYTES = 256 * 1024;
/** Of each output; more is never kept. */
export const FILE_BYTES = 64 * 1024 * 1024;
/** A program that is held back may be read from once or twice more. */
const MARGIN_BYTES = 1024 * 1024;

export class OutputLog {
  readonly #parts: OutputLogParts;
  #ring: Ring;
  #limitBytes: number;
  #totalBytes = 0;
  #hash: Hash | undefined;
  /** Released by the reader. */
  #released = 0;
  /** The file holds from the first to before the second; an offset's place in it is its remainder. */
  #fileStart = 0;
  #saved = 0;
  #file: FileHandle | undefined;
  #saving: Promise<void> | undefined;
  #isBroken = false;
  #isAbandoned = false;

  constructor(parts: OutputLogParts, ring = new Ring(RING_BYTES)) {
    this.#parts = parts;
    this.#ring = ring;
    this.#limitBytes = parts.limitBytes;
  }

  /** One that a daemon before us wrote to its end. */
  static stored(
    path: string,
    stored: { readonly start: number; readonly end: number; readonly bytes: number },
  ): OutputLog {
    const { start, end, bytes } = stored;
    const parts = { path, limitBytes: end, keeps: 'all', onRoom: () => undefined } as const;
    const log = new OutputLog(parts, new Ring(1, end));
    log.#fileStart = start;
    log.#saved = end;
    log.#totalBytes = bytes;
    return log;
  }

  /** Offset of the oldest byte that can be read. */
  get start(): number {
    const isJoined = this.#fileStart < this.#saved && this.#saved >= this.#ring.start;
    return isJoined ? this.#fileStart : this.#ring.start;
  }

  /** Offset of the oldest byte in memory. */
  get memoryStart(): number {
    return this.#ring.start;
  }

  /** Offset after the last byte that was kept. */
  get end(): number {
    return this.#ring.end;
  }

  /** All that the program wrote. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  get isTruncated(): boolean {
    return this.#totalBytes > this.end;
  }

  /** Whether the program is to be held back. */
  get isFull(): boolean {
    const { keeps } = this.#parts;
    if (keeps === 'all' && this.#isBroken) return false;
    if (this.end - Math.max(this.#saved, this.#needed) >= FULL_BYTES) return true;
    return keeps === 'unread' && this.end - this.#needed >= FILE_BYTES - MARGIN_BYTES;
  }

  /** In hexadecimal, of everything that was written. */
  digest(): string {
    return (this.#hash ?? createHash('sha256')).copy().digest('hex');
  }

  /** Returns what of it was kept. */
  append(bytes: Uint8Array): Uint8Array {
    this.#totalBytes += bytes.length;
    this.#hash ??= createHash('sha256');
    this.#hash.update(bytes);
    const kept = bytes.subarray(0, Math.max(0, this.#limitBytes - this.end));
    this.#ring.append(kept);
    if (this.#isAbandoned) this.#released = this.end;
    this.#catchUp();
    this.#spill();
    return kept;
  }

  /** The reader has everything before this. */
  release(offset: number): void {
    const wasFull = this.isFull;
    this.#released = Math.max(this.#released, Math.min(offset, this.end));
    this.#catchUp();
    if (wasFull && !this.isFull) this.#parts.onRoom();
  }

  /** There is no reader any more: the latest is kept, and nothing holds the program back. Until one is found again. */
  abandon(isAbandoned: boolean): void {
    this.#isAbandoned = isAbandoned;
    if (isAbandoned) this.release(this.end);
  }

  read(from: number, maxBytes: number): LogRead {
    if (from >= this.#ring.start) {
      const read = this.#ring.read(Math.min(from, this.end), maxBytes);
      return read.kind === 'bytes' ? read : { kind: 'gone', start: this.start };
    }
    if (from < this.start) return { kind: 'gone', start: this.start };
    return { kind: 'stored', bytes: this.#readFile(from, maxBytes) };
  }

  /** Up to so many from the oldest on that is there. */
  async readFrom(from: number, maxBytes: number): Promise<Uint8Array> {
    const read = this.read(Math.max(from, this.start), maxBytes);
    if (read.kind === 'gone') return NOTHING;
    return read.bytes;
  }

  get memoryBytes(): number {
    return this.#ring.allocatedBytes;
  }

  get fileBytes(): number {
    return this.#saved - this.#fileStart;
  }

  /** After the last byte: what has to stay goes to the file, and memory is given back. */
  async shrink(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving;
    this.#catchUp();
    while (this.#saved < this.end && !this.#isBroken) await this.#save();
    await this.close();
    if (!this.#isBroken) this.#ring = new Ring(1, this.end);
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  /** What a daemon after us can read; `undefined`: nothing. */
  get stored(): { start: number; end: number; bytes: number } | undefined {
    const { totalBytes: bytes, end } = this;
    return this.#saved === end && end > 0 ? { start: this.#fileStart, end, bytes } : undefined;
  }

  /** Nothing of it can be read after this. */
  async remove(): Promise<void> {
    this.#ring = new Ring(1, this.end);
    this.#fileStart = this.#saved = this.end;
    await this.close();
    await rm(this.#parts.path, { force: true });
  }

  /** The first byte that has to stay. */
  get #needed(): number {
    return this.#parts.keeps === 'all' ? 0 : this.#released;
  }

  /** What need not stay need not be saved; what was to be saved and is gone can't be. */
  #catchUp(): void {
    const from = Math.max(this.#needed, this.#ring.start);
    if (from <= this.#saved || this.#saving !== undefined) return;
    this.#saved = from;
    this.#fileStart = from;
  }

  #spill(): void {
    if (this.#saving !== undefined || this.#isBroken) return;
    if (this.end - this.#saved < SPILL_BYTES) return;
    this.#saving = this.#save().finally(() => {
      this.#saving = undefined;
      this.#catchUp();
      this.#spill();
      if (!this.isFull) this.#parts.onRoom();
    });
  }

  /** The next piece, as far as the file goes before it begins anew. */
  async #save(): Promise<void> {
    const from = this.#saved;
    const at = from % FILE_BYTES;
    const read = this.#ring.read(from, Math.min(WRITE_BYTES, FILE_BYTES - at));
    if (read.kind !== 'bytes') {
      this.#isBroken = true;
      return;
    }
    const { bytes } = read;
    this.#fileStart = Math.max(this.#fileStart, from + bytes.length - FILE_BYTES);
    try {
      this.#file ??= await open(this.#parts.path, 'w', 0o600);
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(
          bytes,
          done,
          bytes.length - done,
          at + done,
        );
        done += bytesWritten;
      }
      this.#saved = from + bytes.length;
    } catch {
      // No room on the disk, or no folder any more. What is in memory is all there will be.
      this.#isBroken = true;
      if (this.#parts.keeps === 'all') this.#limitBytes = this.end;
    }
  }

  async #readFile(from: number, maxBytes: number): Promise<Uint8Array> {
    const at = from % FILE_BYTES;
    const length = Math.min(maxBytes, this.#saved - from, FILE_BYTES - at);
    const bytes = new Uint8Array(length);
    try {
      await using file = await open(this.#parts.path, 'r');
      const { bytesRead } = await file.read(bytes, 0, length, at);
      return from < this.#fileStart ? NOTHING : bytes.subarray(0, bytesRead);
    } catch {
      return NOTHING;
    }
  }
}

const NOTHING = new Uint8Array(0);
