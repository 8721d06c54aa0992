/** The user's terminal, handed to a program elsewhere: every key raw, every byte as it is; given back as it was on every ending. */
import { spawnSync } from 'node:child_process';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Size } from '../../client/shell/shell-words.js';
import { AilsdError } from '../../protocol/errors.js';
import { SIZE_MAX } from '../../protocol/frame-fields.js';

/** Where nobody tells of a new size, it is looked at. */
const SIZE_POLL_MS = 250;
const USUAL_SIZE: Size = { cols: 80, rows: 24 };

export interface RawTerminalListener {
  keys(bytes: Uint8Array): void;
  resized(size: Size): void;
}

export class RawTerminal implements Disposable {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #listener: RawTerminalListener;
  /** Undoes what was done to the screen; called before the terminal is given back, and must not wait. */
  readonly #repair: () => void;
  readonly #poll: NodeJS.Timeout | undefined;
  #isRaw = false;
  #isClosed = false;
  #size: Size;

  constructor(listener: RawTerminalListener, repair: () => void) {
    const { stdin, stdout } = process;
    if (!stdin.isTTY || !stdout.isTTY) throw notATerminal();
    this.#input = stdin;
    this.#output = stdout;
    this.#listener = listener;
    this.#repair = repair;
    this.#size = terminalSize(this.#output);
    // Before anything is changed: from here on every way out passes here.
    process.prependListener('exit', this.#giveBack);
    process.prependListener('uncaughtException', this.#giveBack);
    process.prependListener('unhandledRejection', this.#giveBack);
    stdout.on('resize', this.#look);
    if (process.platform === 'win32') this.#poll = setInterval(this.#look, SIZE_POLL_MS);
    stdin.on('data', this.#take);
    // A terminal that hangs up is a signal too; the stream's own error says nothing more.
    stdin.on('error', ignore);
    stdout.on('error', ignore);
    this.#enter();
    stdin.resume();
  }

  get size(): Size {
    return this.#size;
  }

  /** Stops reading keys: there is no room for them. */
  pause(): void {
    this.#input.pause();
  }

  resume(): void {
    if (!this.#isClosed) this.#input.resume();
  }

  /** As Ctrl-Z does; returns when the user has brought us back. */
  async suspend(): Promise<void> {
    this.#repair();
    this.#leave();
    this.#input.pause();
    await new Promise<void>((resolve) => {
      process.once('SIGCONT', () => resolve());
      process.kill(process.pid, 'SIGSTOP');
    });
    this.#enter();
    this.#input.resume();
    this.#look();
  }

  [Symbol.dispose](): void {
    this.#giveBack();
    process.off('exit', this.#giveBack);
    process.off('uncaughtException', this.#giveBack);
    process.off('unhandledRejection', this.#giveBack);
    this.#output.off('resize', this.#look);
    clearInterval(this.#poll);
    this.#input.off('data', this.#take);
    this.#input.pause();
    // What was typed and not read is for nobody: neither for the shell elsewhere nor for the one below.
    this.#input.unref();
  }

  readonly #giveBack = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#repair();
    this.#leave();
  };

  #enter(): void {
    this.#input.setRawMode(true);
    this.#isRaw = true;
    // Node leaves output processing on, which adds a carriage return to every newline of a program that wants none.
    if (process.platform !== 'win32') {
      spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'], timeout: 2_000 });
    }
  }

  #leave(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    try {
      this.#input.setRawMode(false);
    } catch {
      // A terminal that is gone needs nothing.
    }
  }

  readonly #take = (bytes: Buffer): void => this.#listener.keys(bytes);

  readonly #look = (): void => {
    if (process.platform === 'win32') this.#output.getWindowSize();
    const { cols, rows } = terminalSize(this.#output);
    if (cols === this.#size.cols && rows === this.#size.rows) return;
    this.#size = { cols, rows };
    this.#listener.resized(this.#size);
  };
}

export function terminalSize({ columns, rows }: Pick<WriteStream, 'columns' | 'rows'>): Size {
  return { cols: sane(columns, USUAL_SIZE.cols), rows: sane(rows, USUAL_SIZE.rows) };
}

export function notATerminal(): AilsdError {
  return new AilsdError('NOT_A_TERMINAL', 'attach needs a terminal for its input and its output', {
    hint: 'run it in a terminal; in scripts use `ailsd exec THREAD -- COMMAND`',
  });
}

/** A terminal that does not know its size says 0. */
function sane(value: number, otherwise: number): number {
  return value >= 1 ? Math.min(value, SIZE_MAX) : otherwise;
}

function ignore(): void {}
