/** The process's own streams, written synchronously and without loading Node's stream machinery. */

import { fstatSync, writeSync } from 'node:fs';
import { errorCode } from '../base/error-code.js';
import { AilsdError } from '../protocol/errors.js';

/** One standard stream to write to. */
export interface Sink {
  write(text: string): void;
  /** As they are. */
  writeBytes(bytes: Uint8Array): void;
  readonly isTerminal: boolean;
  /** Columns of the terminal; where there is none, what a page of text is usually wrapped to. */
  readonly columns: number;
}

export interface Io {
  /** Data: what a script reads. */
  readonly out: Sink;
  /** Talk: what a person reads. */
  readonly err: Sink;
  /** Whether standard input is a terminal. */
  readonly inputIsTerminal: boolean;
}

/** Thrown when the reader of a stream has gone; the program ends quietly on it. */
export class ReaderGone extends Error {}

export function processIo(): Io {
  return {
    out: new DescriptorSink(1),
    err: new DescriptorSink(2),
    get inputIsTerminal() {
      return isTerminal(0);
    },
  };
}

const PLAIN_COLUMNS = 80;
const MOST_COLUMNS = 120;

class DescriptorSink implements Sink {
  readonly #descriptor: 1 | 2;
  #terminal: boolean | undefined;

  constructor(descriptor: 1 | 2) {
    this.#descriptor = descriptor;
  }

  get isTerminal(): boolean {
    this.#terminal ??= isTerminal(this.#descriptor);
    return this.#terminal;
  }

  get columns(): number {
    if (!this.isTerminal) return PLAIN_COLUMNS;
    const stream = this.#descriptor === 1 ? process.stdout : process.stderr;
    return Math.min(stream.columns || PLAIN_COLUMNS, MOST_COLUMNS);
  }

  write(text: string): void {
    this.writeBytes(Buffer.from(text));
  }

  writeBytes(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(this.#descriptor, rest));
      } catch (error) {
        if (this.#settle(error) === 'give up') return;
      }
    }
  }

  /** A full pipe is waited for. Talk that nobody can hear is dropped: it must not change how the command ends. */
  #settle(error: unknown): 'try again' | 'give up' {
    const code = errorCode(error);
    if (code === 'EAGAIN') {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_WAIT_MS);
      return 'try again';
    }
    if (this.#descriptor === 2) return 'give up';
    if (code === 'EPIPE' || code === 'EBADF') throw new ReaderGone();
    throw new AilsdError('OUTPUT_FAILED', `standard output cannot be written (${String(code)})`, {
      cause: error,
    });
  }
}

const FULL_PIPE_WAIT_MS = 5;

/** Asks for the kind of file first: only a character device (on Windows, anything) is worth loading `tty` for. */
function isTerminal(descriptor: 0 | 1 | 2): boolean {
  try {
    if (process.platform !== 'win32' && !fstatSync(descriptor).isCharacterDevice()) return false;
  } catch {
    return false;
  }
  return process.getBuiltinModule('node:tty').isatty(descriptor);
}
