/**
 * A shell's recording as asciicast v2, in a file of bounded size: output, sizes, and who typed when. What was typed is masked: whatever
 * is no password shows in the output anyway. It reads the ring behind the output; of a flood it keeps samples and says so.
 */
import { appendFile, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import type { Ring } from '../../../stream/ring.js';
import type { Party } from './lease.js';
import type { Size } from './sizes.js';

export interface RecordingParts {
  readonly path: string;
  readonly size: Size;
  readonly title: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Takes secrets out of text that is about to be written; may keep some back until it has seen more. */
  readonly redact: Redact;
}

/** Text in, text without secrets out, in the same order; `end` gives what was kept back. */
export interface Redact {
  push(text: string): string;
  end(): string;
}

/** Of one file; the one before it is kept too. */
export const RECORDING_BYTES = 4 * 1024 * 1024;
/** Events are written together. */
const FLUSH_MS = 100;
/** Output of one such time beyond this is left out. */
const SAMPLE_BYTES = 256 * 1024;

export class Recording {
  readonly #parts: RecordingParts;
  readonly #begin: number;
  readonly #decoder = new TextDecoder('utf-8');
  #offset = 0;
  #ring: Ring | undefined;
  #lines: string[] = [];
  #typed: (Party & { readonly atSeconds: string; readonly chunks: Uint8Array[] }) | undefined;
  #lastTyped: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void>;
  #fileBytes = 0;
  #hasFailed = false;

  constructor(parts: RecordingParts) {
    this.#parts = parts;
    this.#begin = parts.clock.monotonic();
    this.#work = this.#open();
  }

  /** There is more output. */
  note(ring: Ring): void {
    this.#ring = ring;
    this.#schedule();
  }

  input({ actor, name }: Party, bytes: Uint8Array): void {
    if (this.#typed?.actor !== actor || this.#typed.name !== name) {
      this.#takeTyped();
      this.#typed = { actor, name, atSeconds: this.#seconds(), chunks: [] };
    }
    this.#typed.chunks.push(bytes);
    this.#schedule();
  }

  resize({ cols, rows }: Size): void {
    this.#event('r', `${cols}x${rows}`);
  }

  /** Writes what is left; the file stays. */
  close(): void {
    clearTimeout(this.#timer);
    this.#takeOutput();
    this.#event('o', this.#parts.redact.end());
    this.#write();
  }

  /** Until everything noted so far is in the file. */
  async flushed(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#takeOutput();
    this.#write();
    await this.#work;
  }

  #seconds(): string {
    return ((this.#parts.clock.monotonic() - this.#begin) / 1_000).toFixed(6);
  }

  /** What one party typed in a row. */
  #takeTyped(): void {
    const typed = this.#typed;
    this.#typed = undefined;
    if (typed === undefined) return;
    const { actor, name, atSeconds, chunks } = typed;
    const who = `input by ${actor} ${name}`;
    if (who !== this.#lastTyped) this.#event('m', who, atSeconds);
    this.#lastTyped = who;
    const text = Buffer.concat(chunks)
      .toString('latin1')
      .replace(/[^\r\n\t\x03\x04]/g, '*');
    this.#event('i', text, atSeconds);
  }

  #event(code: 'o' | 'i' | 'r' | 'm', text: string, at = this.#seconds()): void {
    if (text === '' || this.#hasFailed) return;
    this.#lines.push(`[${at},"${code}",${JSON.stringify(text)}]\n`);
    if (code === 'r') this.#schedule();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#takeOutput();
      this.#write();
    }, FLUSH_MS);
  }

  #takeOutput(): void {
    this.#takeTyped();
    const ring = this.#ring;
    if (ring === undefined || this.#hasFailed) return;
    const { end } = ring;
    const from = Math.max(this.#offset, ring.start, end - SAMPLE_BYTES);
    if (from > this.#offset) this.#event('m', `${from - this.#offset} bytes of output left out`);
    const read = ring.read(from, end - from);
    this.#offset = end;
    if (read.kind !== 'bytes') return;
    this.#event('o', this.#parts.redact.push(this.#decoder.decode(read.bytes, { stream: true })));
  }

  #write(): void {
    const text = this.#lines.join('');
    this.#lines = [];
    if (text === '') return;
    this.#do(async () => {
      const { path } = this.#parts;
      if (this.#fileBytes > RECORDING_BYTES) {
        await rename(path, `${path}.old`);
        await this.#start();
      }
      await appendFile(path, text);
      this.#fileBytes += Buffer.byteLength(text);
    });
  }

  #open(): Promise<void> {
    this.#work = Promise.resolve();
    this.#do(async () => {
      await mkdir(dirname(this.#parts.path), { recursive: true, mode: 0o700 });
      await rm(`${this.#parts.path}.old`, { force: true });
      await this.#start();
    });
    return this.#work;
  }

  async #start(): Promise<void> {
    const { path, size, title, clock } = this.#parts;
    const head = {
      version: 2,
      width: size.cols,
      height: size.rows,
      timestamp: Math.floor(clock.now() / 1_000),
      title,
    };
    await writeFile(path, `${JSON.stringify(head)}\n`, { mode: 0o600 });
    this.#fileBytes = (await stat(path)).size;
  }

  /** A disk that is full ends the recording, not the shell. */
  #do(step: () => Promise<void>): void {
    this.#work = this.#work.then(async () => {
      if (this.#hasFailed) return;
      try {
        await step();
      } catch (error) {
        this.#hasFailed = true;
        this.#parts.logger.warn('the recording ends here', { error });
      }
    });
  }
}
