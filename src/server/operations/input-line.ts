/** Standard input as the server program uses it: one line that says what to do, then silence until the parent is gone. */
import type { Readable } from 'node:stream';
import { createDeferred } from '../../base/deferred.js';
import { AilsdError } from '../../protocol/errors.js';

const LINE_MAX_BYTES = 64 * 1024;

export class InputLine {
  readonly #stream: Readable;
  readonly #line = createDeferred<string>();
  readonly #ended = createDeferred();
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #hasLine = false;

  constructor(stream: Readable) {
    this.#stream = stream;
    // A parent that dies may leave an error instead of an end.
    stream
      .on('data', (chunk: Buffer) => this.#take(chunk))
      .on('end', () => this.#end())
      .on('close', () => this.#end())
      .on('error', () => this.#end());
  }

  /** The first line; the end of the stream counts as its end. */
  line(): Promise<string> {
    return this.#line.promise;
  }

  /** Resolves when nobody is at the other end any more. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  close(): void {
    this.#stream.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#hasLine) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (chunk.includes(NEWLINE)) this.#finish();
    else if (this.#length > LINE_MAX_BYTES) {
      this.#hasLine = true;
      this.#line.reject(new AilsdError('USAGE', 'standard input is too long'));
    }
  }

  #end(): void {
    if (!this.#hasLine) this.#finish();
    this.#ended.resolve();
  }

  #finish(): void {
    this.#hasLine = true;
    const bytes = Buffer.concat(this.#chunks, this.#length);
    const end = bytes.indexOf(NEWLINE);
    this.#line.resolve(bytes.toString('utf8', 0, end === -1 ? bytes.length : end));
  }
}

const NEWLINE = 0x0a;
