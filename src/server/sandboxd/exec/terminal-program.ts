/** A program with a terminal: one output, and an end of input that is a key. */
import type { Launch, Launcher } from '../isolation/launcher.js';
import { signalName } from '../shell/outcome.js';
import { Pty } from '../shell/pty.js';
import type { Size } from '../shell/sizes.js';
import { killEscaped } from './escaped.js';
import type { Program, ProgramEvents } from './program.js';

export interface TerminalProgramParts {
  readonly launcher: Launcher;
  readonly launch: Launch;
  readonly size: Size;
  readonly mark: string;
  readonly events: ProgramEvents;
}

/** Ctrl-D. */
const END_OF_INPUT = new Uint8Array([4]);

export class TerminalProgram implements Program {
  readonly #parts: TerminalProgramParts;
  readonly #pty: Pty;
  /** Given to the terminal while that has no room; told as taken when it has. */
  #untold = 0;

  constructor(parts: TerminalProgramParts) {
    this.#parts = parts;
    const { launch, size, events } = parts;
    this.#pty = new Pty(
      { ...launch, ...size },
      {
        data: (bytes) => events.data('stdout', bytes),
        exit: ({ exitCode, signal }) =>
          events.ended(signal === 0 ? { exitCode } : { signal: signalName(signal) }),
      },
    );
  }

  get pid(): number {
    return this.#pty.pid;
  }

  write(bytes: Uint8Array): void {
    this.#untold += bytes.length;
    if (this.#pty.write(bytes, () => this.#tell()) === 'taken') queueMicrotask(() => this.#tell());
  }

  endInput(): void {
    this.#pty.write(END_OF_INPUT, () => undefined);
  }

  hold(): void {
    this.#pty.pause();
  }

  release(): void {
    this.#pty.resume();
  }

  resize(cols: number, rows: number): void {
    this.#pty.resize(cols, rows);
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    this.#pty.signal(signal);
  }

  async kill(): Promise<void> {
    this.#pty.signalAll('SIGKILL');
    if (this.#parts.launcher.report.kind === 'none') await killEscaped(this.#parts.mark);
  }

  #tell(): void {
    const bytes = this.#untold;
    this.#untold = 0;
    if (bytes > 0) this.#parts.events.taken(bytes);
  }
}
