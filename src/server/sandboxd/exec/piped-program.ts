/** A program with three pipes: its outputs apart, its input with an end, its end told after the last byte of both. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { Launch, Launcher } from '../isolation/launcher.js';
import { killEscaped } from './escaped.js';
import { InputEnd } from './input-end.js';
import type { Pipes } from './pipes.js';
import type { Program, ProgramEnd, ProgramEvents, StreamName } from './program.js';

export interface PipedProgramParts {
  readonly launcher: Launcher;
  readonly launch: Launch;
  /** Its streams; without them they are sockets. */
  readonly pipes: Pipes | undefined;
  /** What it is called in words. */
  readonly name: string;
  /** By which those who left its group are known. */
  readonly mark: string;
  readonly events: ProgramEvents;
}

interface Started {
  readonly child: ChildProcess;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** Somebody who outlived the program may hold its output open: silent for so long, there is nothing more of the program's. */
const SILENCE_MS = 100;

export class PipedProgram implements Program {
  readonly #parts: PipedProgramParts;
  readonly #child: ChildProcess;
  readonly #streams: Omit<Started, 'child'>;
  #end: ProgramEnd | undefined;
  #open = 2;
  #isOver = false;
  #watch: NodeJS.Timeout | undefined;
  #inputEnd: InputEnd | undefined;

  /** Throws INVALID_REQUEST for more arguments than the kernel takes. What can't be executed ends with 126 or 127. */
  constructor(parts: PipedProgramParts) {
    this.#parts = parts;
    const { launch, pipes, events } = parts;
    const { child, ...streams } = start(launch, pipes);
    this.#child = child;
    this.#streams = streams;
    const { stdin, stdout, stderr } = streams;
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
    const { stdin } = this.#streams;
    const taken = (): void => this.#parts.events.taken(bytes.length);
    if (stdin.writable) stdin.write(bytes, taken);
    else queueMicrotask(taken);
  }

  endInput(): void {
    const { stdin } = this.#streams;
    const { pipes } = this.#parts;
    if (pipes !== undefined && !stdin.destroyed && this.#end === undefined)
      this.#inputEnd ??= InputEnd.of(pipes.stdin.ours);
    stdin.end();
  }

  hold(stream: StreamName): void {
    this.#streams[stream].pause();
  }

  release(stream: StreamName): void {
    this.#streams[stream].resume();
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
    this.#streams.stdin.destroy();
    this.#inputEnd?.[Symbol.dispose]();
    const { launcher } = this.#parts;
    const { pid } = this;
    if (launcher.report.kind === 'none' && pid !== undefined)
      launcher.signal(pid, 'SIGKILL').catch(() => undefined);
    if (this.#open === 0) this.#finish();
    else this.#watch = setTimeout(() => this.#silent(), SILENCE_MS);
  }

  /** A stream that is held back is not silent. */
  #silent(): void {
    const { stdout, stderr } = this.#streams;
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
    this.#inputEnd?.[Symbol.dispose]();
    for (const stream of Object.values(this.#streams)) stream.destroy();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver || this.#end === undefined || this.#open > 0) return;
    this.#isOver = true;
    clearTimeout(this.#watch);
    this.#parts.events.ended(this.#end);
  }
}

function start(launch: Launch, pipes: Pipes | undefined): Started {
  if (pipes === undefined) {
    const child = spawnOrThrow(launch, ['pipe', 'pipe', 'pipe']);
    const { stdin, stdout, stderr } = child;
    if (stdin === null || stdout === null || stderr === null)
      throw new Error('a process was spawned without its pipes');
    return { child, stdin, stdout, stderr };
  }
  const { stdin, stdout, stderr } = pipes;
  try {
    const child = spawnOrThrow(launch, [stdin.program, stdout.program, stderr.program]);
    return {
      child,
      stdin: new Socket({ fd: stdin.ours, readable: false, writable: true }),
      stdout: new Socket({ fd: stdout.ours, readable: true, writable: false }),
      stderr: new Socket({ fd: stderr.ours, readable: true, writable: false }),
    };
  } catch (error) {
    for (const { ours } of Object.values(pipes)) closeSync(ours);
    throw error;
  } finally {
    for (const { program } of Object.values(pipes)) closeSync(program);
  }
}

function spawnOrThrow({ file, args, env, cwd }: Launch, stdio: ('pipe' | number)[]): ChildProcess {
  try {
    return spawn(file, [...args], { env, cwd, detached: true, stdio });
  } catch (cause) {
    if (errorCode(cause) === 'E2BIG')
      throw new AilsdError('INVALID_REQUEST', 'the arguments and variables are too long', {
        details: { field: 'argv' },
        cause,
      });
    throw new AilsdError('BACKEND_UNAVAILABLE', 'no process can be started', { cause });
  }
}
