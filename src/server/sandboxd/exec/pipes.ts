/**
 * Real pipes for a program's three streams. Node's own are sockets: a program can't open `/dev/stdout` on one, and bash takes a socket as
 * input for a sign that it was started from afar and reads its user's files. So they are made as FIFOs and lose their name at once.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

/** One end for each side; each is a descriptor to be closed once. */
export interface Pipe {
  readonly program: number;
  readonly ours: number;
}

export interface Pipes {
  readonly stdin: Pipe;
  readonly stdout: Pipe;
  readonly stderr: Pipe;
}

const MAKER = '/usr/bin/mkfifo';
/** Made by one call, which takes as long as a command. */
const BATCH = 96;
const PER_PROGRAM = 3;
const REFILL_AT = BATCH / 3;

export class PipeStore implements AsyncDisposable {
  readonly #folder: string;
  #names: string[] = [];
  #made = 0;
  #making: Promise<void> | undefined;
  #isUseless = false;

  /** `folder`: for names alone; what is in it is removed. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** `undefined`: there are none to be had here. */
  async take(): Promise<Pipes | undefined> {
    while (this.#names.length < PER_PROGRAM && !this.#isUseless) await this.#refill();
    const names = this.#names.splice(0, PER_PROGRAM);
    if (this.#names.length < REFILL_AT) this.#refill();
    return openAll(names);
  }

  /** What is being made is waited for: it would be made into a folder that goes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isUseless = true;
    this.#names = [];
    await this.#making;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #refill(): Promise<void> {
    if (this.#isUseless) return Promise.resolve();
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #make(): Promise<void> {
    try {
      if (this.#made === 0) rmSync(this.#folder, { recursive: true, force: true });
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const names = Array.from({ length: BATCH }, () => join(this.#folder, `${this.#made++}`));
      // Whoever has one by its descriptor may open it again, under whichever account.
      const child = spawn(MAKER, ['-m', '666', '--', ...names], { env: {}, stdio: 'ignore' });
      const [code] = await once(child, 'exit');
      if (code !== 0) this.#isUseless = true;
      else if (!this.#isUseless) this.#names.push(...names);
    } catch {
      this.#isUseless = true;
    }
  }
}

/** Of those that no program was given. */
export function closePipes(pipes: Pipes | undefined): void {
  for (const { program, ours } of Object.values(pipes ?? {})) {
    closeSync(program);
    closeSync(ours);
  }
}

function openAll([input, output, errors]: readonly string[]): Pipes | undefined {
  if (input === undefined || output === undefined || errors === undefined) return undefined;
  const opened: number[] = [];
  try {
    const stdin = openPipe(input, 'in', opened);
    const stdout = openPipe(output, 'out', opened);
    return { stdin, stdout, stderr: openPipe(errors, 'out', opened) };
  } catch {
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}

/** Ours never wait; the program's do, as it expects of a pipe. */
function openPipe(name: string, way: 'in' | 'out', opened: number[]): Pipe {
  const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants;
  // With somebody at both ends nobody waits for the other to open it.
  const both = openSync(name, O_RDWR | O_NONBLOCK);
  try {
    const reading = openSync(name, way === 'in' ? O_RDONLY : O_RDONLY | O_NONBLOCK);
    opened.push(reading);
    const writing = openSync(name, way === 'in' ? O_WRONLY | O_NONBLOCK : O_WRONLY);
    opened.push(writing);
    return way === 'in' ? { program: reading, ours: writing } : { program: writing, ours: reading };
  } finally {
    unlinkSync(name);
    closeSync(both);
  }
}
