/** What was seen, as asciicast v2 (one JSON line for each piece of output), without tokens, in a file of the user's alone. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Clock } from '../../base/clock.js';
import { errorCode } from '../../base/error-code.js';
import type { Size } from '../../client/shell/shell-words.js';
import { AilsdError } from '../../protocol/errors.js';
import { TokenRedactor } from '../../protocol/token-redactor.js';

export interface RecordOptions {
  readonly path: string;
  readonly size: Size;
  readonly term: string | undefined;
  readonly clock: Clock;
  /** The disk is full, say: the recording ends there, the session does not. */
  readonly failed: (error: AilsdError) => void;
}

export class Recorder implements Disposable {
  readonly #options: RecordOptions;
  readonly #beginMs: number;
  /** A character may come in two pieces. */
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #redactor = new TokenRedactor();
  #file: number | undefined;

  constructor(options: RecordOptions) {
    this.#options = options;
    this.#beginMs = options.clock.monotonic();
    this.#file = create(options.path);
    const { size, term, clock } = options;
    const header = {
      version: 2,
      width: size.cols,
      height: size.rows,
      timestamp: Math.floor(clock.now() / 1000),
      ...(term === undefined ? {} : { env: { TERM: term } }),
    };
    this.#line(header);
  }

  output(bytes: Uint8Array): void {
    this.#output(this.#decoder.decode(bytes, { stream: true }));
  }

  screen(text: string): void {
    this.#output(text);
  }

  resized({ cols, rows }: Size): void {
    this.#event('r', `${cols}x${rows}`);
  }

  [Symbol.dispose](): void {
    this.#output(this.#decoder.decode());
    const rest = this.#redactor.end();
    if (rest !== '') this.#event('o', rest);
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** Without what looks like a token; what may go on as one is kept back until more comes. */
  #output(text: string): void {
    const safe = this.#redactor.push(text);
    if (safe !== '') this.#event('o', safe);
  }

  #event(kind: 'o' | 'r', data: string): void {
    const seconds = (this.#options.clock.monotonic() - this.#beginMs) / 1000;
    this.#line([Number(seconds.toFixed(6)), kind, data]);
  }

  #line(value: unknown): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, `${JSON.stringify(value)}\n`);
    } catch (error) {
      closeSync(this.#file);
      this.#file = undefined;
      this.#options.failed(notWritten(this.#options.path, error));
    }
  }
}

/** Never over something that is there. */
function create(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      throw new AilsdError('ALREADY_EXISTS', `the recording ${path} is there already`, {
        details: { path },
        hint: 'name another file, or move that one away',
      });
    }
    throw notWritten(path, error);
  }
}

function notWritten(path: string, error: unknown): AilsdError {
  const why = errorCode(error) ?? 'unknown';
  return new AilsdError('OUTPUT_FAILED', `the recording ${path} cannot be written (${why})`, {
    cause: error,
    details: { path },
    hint: 'check the folder and the space on its disk',
  });
}
