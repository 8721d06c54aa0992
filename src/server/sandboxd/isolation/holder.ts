/** The process that keeps a sandbox's namespaces open. As long as it lives they can be entered; when it ends, so does all in them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { AilsdError } from '../../../protocol/errors.js';
import type { Account } from './account.js';
import { holderCommand, READY, worldArguments } from './bubblewrap-arguments.js';
import { join } from './entering.js';
import type { SandboxPlace } from './launcher.js';
import { sendSignal } from './processes.js';
import type { Programs } from './programs.js';

export interface HolderOptions {
  readonly programs: Programs;
  readonly account: Account;
  readonly limitFiles: readonly string[];
  readonly place: SandboxPlace;
}

export class Holder {
  /** The host's pid of the first process inside. */
  readonly firstPid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, firstPid: number) {
    this.#child = child;
    this.firstPid = firstPid;
  }

  static async start(options: HolderOptions): Promise<Holder> {
    const { programs, account, place } = options;
    const world = await worldArguments(place, account);
    const bwrap = [programs.bwrap, '--info-fd', `${INFO_FD}`, '--args', `${ARGUMENTS_FD}`];
    const argv = [...bwrap, '--', ...holderCommand(programs, account)];
    const { file, args } = join(options, ARGUMENTS_FD, argv);
    const child = spawn(file, [...args], {
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    });
    const [, output, errors, info, given] = child.stdio;
    if (!(isReadable(output) && isReadable(errors) && isReadable(info) && isWritable(given))) {
      throw new Error('a process was spawned without its pipes');
    }
    given.on('error', () => undefined);
    given.end(world.map((word) => `${word}\0`).join(''));
    const complaint = readUntil(errors, () => false);
    const said = readUntil(output, (text) => text.includes(`${READY}\n`));
    const told = readUntil(info, (text) => text.includes('}'));
    const failed = once(child, 'error').then(([error]) => Promise.reject(error));
    await Promise.race([Promise.all([said, told]), failed]);
    failed.catch(() => undefined);
    const firstPid = /"child-pid":\s*(\d+)/.exec(await told)?.[1];
    if (!(await said).includes(READY) || firstPid === undefined) {
      child.kill('SIGKILL');
      throw new AilsdError('PROVIDER_UNAVAILABLE', 'the sandbox could not be isolated', {
        internal: (await complaint).trim(),
      });
    }
    // Whoever waits for the daemon to end should not wait for these.
    for (const stream of [output, errors, info]) stream.resume();
    return new Holder(child, Number(firstPid));
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The kernel ends everything inside with its first process, and that one is gone only after all the others are. */
  async end(signal: AbortSignal): Promise<void> {
    if (!this.isAlive) return;
    const ended = once(this.#child, 'exit', { signal });
    sendSignal(this.firstPid, 'SIGKILL');
    await ended;
  }
}

const INFO_FD = 3;
const ARGUMENTS_FD = 4;
const MAX_TEXT = 16_384;

/** What it said until that was enough or it ended; of more than 16 KiB the beginning. */
function readUntil(stream: Readable, isEnough: (text: string) => boolean): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      if (text.length < MAX_TEXT) text += chunk;
      if (isEnough(text)) resolve(text);
    });
    stream.on('error', () => resolve(text));
    stream.on('close', () => resolve(text));
  });
}

function isReadable(stream: Readable | Writable | null | undefined): stream is Readable {
  return stream !== null && stream !== undefined && 'setEncoding' in stream;
}

function isWritable(stream: Readable | Writable | null | undefined): stream is Writable {
  return stream !== null && stream !== undefined && 'end' in stream;
}
