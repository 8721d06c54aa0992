/** A program with three pipes: its outputs apart, its input with an end, its end told after the last byte of both. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { Launch, Launcher } from '../isolation/launcher.js';
import { killEscaped } from './escaped.js';
import type { Program, ProgramEnd, ProgramEvents, StreamName } from './program.js';

export interface PipedProgramParts {
  readonly launcher: Launcher;
  readonly launch: Launch;
  /** What it is called in words. */
  readonly name: string;
  /** By which those who left its group are known. */
  readonly mark: string;
  readonly events: ProgramEvents;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Somebody who outlived the program may hold its output open: silent for so long, there is nothing more of the program's. */
const SILENCE_MS = 100;

export class PipedProgram implements Program {
  readonly #parts: PipedProgramParts;
  readonly #child: Child;
  #end: ProgramEnd | undefined;
  #open = 2;
  #isOver = false;
  #watch: NodeJS.Timeout | undefined;

  /** Throws INVALID_REQUEST for more arguments than the kernel takes. What can't be executed ends with 126 or 127. */
  constructor(parts: PipedProgramParts) {
    this.#parts = parts;
    const { launch, events } = parts;
    this.#child = start(launch);
    const { stdin, stdout, stderr } = this.#child;
    for (const [name, stream] of [['stdout', stdout] as const, ['stderr', stderr] as const]) {
      stream.on('data', (bytes: Buffer) => {
        this.#watch?.refresh();
        events.data(name, bytes);
      });
      stream.on('error', () => undefined);
      stream.once('close', () => {
        this.#open -= 1;
        this.#finish();
      });
    }
    // A program that does not read what it is given is no failure of ours.
    stdin.on('error', () => undefined);
    this.#child.once('error', (error) => this.#failed(error));
    this.#child.once('exit', (code, signal) => {
      this.#exited(signal === null ? { exitCode: code ?? 0 } : { signal });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  write(bytes: Uint8Array): void {
    const { stdin } = this.#child;
    const taken = (): void => this.#parts.events.taken(bytes.length);
    if (stdin.writable) stdin.write(bytes, taken);
    else queueMicrotask(taken);
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  hold(stream: StreamName): void {
    this.#child[stream].pause();
  }

  release(stream: StreamName): void {
    this.#child[stream].resume();
    this.#watch?.refresh();
  }

  /** It has none. */
  resize(): void {}

  async signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#end !== undefined || this.pid === undefined) return;
    await this.#parts.launcher.signal(this.pid, signal);
  }

  async kill(): Promise<void> {
    const { launcher, mark } = this.#parts;
    if (this.pid !== undefined) await launcher.signal(this.pid, 'SIGKILL');
    if (launcher.report.kind === 'none') await killEscaped(mark);
  }

  /** What it left behind in its group ends with it; in a sandbox of namespaces that has happened already. */
  #exited(end: ProgramEnd): void {
    this.#end = end;
    const { launcher } = this.#parts;
    const { pid } = this;
    if (launcher.report.kind === 'none' && pid !== undefined)
      launcher.signal(pid, 'SIGKILL').catch(() => undefined);
    if (this.#open === 0) this.#finish();
    else this.#watch = setTimeout(() => this.#silent(), SILENCE_MS);
  }

  /** A stream that is held back is not silent. */
  #silent(): void {
    const { stdout, stderr } = this.#child;
    for (const stream of [stdout, stderr]) if (!stream.isPaused()) stream.destroy();
    if (this.#open > 0) this.#watch = setTimeout(() => this.#silent(), SILENCE_MS);
  }

  /** It was not started. The words are the program's, as a shell's would be. */
  #failed(error: Error): void {
    if (this.#end !== undefined || this.#child.pid !== undefined) return;
    const code = errorCode(error);
    const { events, name } = this.#parts;
    const why = code === 'ENOENT' ? 'not found' : code === 'EACCES' ? 'not executable' : code;
    events.data('stderr', Buffer.from(`ailsd: ${name}: ${why}\n`));
    this.#end = { exitCode: code === 'ENOENT' ? 127 : 126 };
    this.#open = 0;
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver || this.#end === undefined || this.#open > 0) return;
    this.#isOver = true;
    clearTimeout(this.#watch);
    this.#parts.events.ended(this.#end);
  }
}

function start({ file, args, env, cwd }: Launch): Child {
  try {
    return spawn(file, [...args], { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  } catch (cause) {
    if (errorCode(cause) === 'E2BIG')
      throw new AilsdError('INVALID_REQUEST', 'the arguments and variables are too long', {
        details: { field: 'argv' },
        cause,
      });
    throw new AilsdError('BACKEND_UNAVAILABLE', 'no process can be started', { cause });
  }
}
