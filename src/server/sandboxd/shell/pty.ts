/** A program in a terminal: its bytes out and in, its size, its signals, and its end, told after its last byte. */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import { withoutInherited } from './inherited.js';
import { type ForkRequest, forkPty, type NativePty, type OnExit, resizePty } from './native-pty.js';
import { foregroundGroup, sendSignal, sessionMembers } from './process-table.js';

export interface PtyEvents {
  data(bytes: Uint8Array): void;
  /** Comes once, after all data. */
  exit(exit: PtyExit): void;
}

export interface PtyExit {
  readonly exitCode: number;
  /** Its number; 0 for a program that ended by itself. */
  readonly signal: number;
}

/** Input that the program does not read is kept up to here; then the sender is to be held back. */
export const INPUT_QUEUE_BYTES = 256 * 1024;
const RETRY_MS = 5;
const READ_BYTES = 64 * 1024;

export class Pty {
  readonly pid: number;
  readonly #native: NativePty;
  readonly #events: PtyEvents;
  readonly #stream: ReadStream;
  /** Our own hold on the slave: without it, what was not read when the program ends is lost. */
  readonly #slave: number;
  #input: Uint8Array[] = [];
  #inputBytes = 0;
  #retry: NodeJS.Timeout | undefined;
  #exit: PtyExit | undefined;
  #onRoom: (() => void) | undefined;

  constructor(request: ForkRequest, events: PtyEvents) {
    const program = withoutInherited(request, masters);
    this.#events = events;
    this.#native = fork({ ...request, ...program }, (exitCode, signal) => {
      this.#ended({ exitCode, signal });
    });
    this.#slave = openSync(this.#native.path, constants.O_RDWR | constants.O_NOCTTY);
    this.pid = this.#native.pid;
    masters.add(this.#native.fd);
    this.#stream = new ReadStream(this.#native.fd);
    this.#stream.on('data', (chunk) => this.#read(chunk));
    // The end is told by the process, not by the line.
    this.#stream.on('error', () => undefined);
  }

  get exit(): PtyExit | undefined {
    return this.#exit;
  }

  get inputBytes(): number {
    return this.#inputBytes;
  }

  /** Takes all of it; `full` asks to be given nothing more until `onRoom` is called. */
  write(bytes: Uint8Array, onRoom: () => void): 'taken' | 'full' {
    if (this.#exit !== undefined || bytes.length === 0) return 'taken';
    this.#input.push(bytes);
    this.#inputBytes += bytes.length;
    if (this.#retry === undefined) this.#flush();
    if (this.#inputBytes < INPUT_QUEUE_BYTES) return 'taken';
    this.#onRoom = onRoom;
    return 'full';
  }

  /** Reads nothing more: soon the program's own writing halts. */
  pause(): void {
    if (this.#exit === undefined) this.#stream.pause();
  }

  resume(): void {
    if (this.#exit === undefined) this.#stream.resume();
  }

  resize(cols: number, rows: number): void {
    if (this.#exit === undefined) resizePty(this.#native.fd, cols, rows);
  }

  /** To whoever is in the foreground, as a key would; before a shell has said who that is, to its own group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#exit !== undefined) return;
    sendSignal(-(foregroundGroup(this.pid) ?? this.pid), signal);
  }

  /** To every process of the session. */
  signalAll(signal: NodeJS.Signals): void {
    if (this.#exit !== undefined) return;
    for (const pid of sessionMembers(this.pid)) sendSignal(pid, signal);
  }

  #read(chunk: unknown): void {
    if (chunk instanceof Uint8Array && this.#exit === undefined) this.#events.data(chunk);
  }

  /** A write that would wait is refused by the kernel instead; then there is nothing to do but to ask again. */
  #flush(): void {
    this.#retry = undefined;
    for (let first = this.#input[0]; first !== undefined; first = this.#input[0]) {
      const written = this.#exit === undefined ? tryWrite(this.#native.fd, first) : first.length;
      this.#inputBytes -= written;
      if (written === first.length) {
        this.#input.shift();
        continue;
      }
      this.#input[0] = first.subarray(written);
      this.#retry = setTimeout(() => this.#flush(), RETRY_MS);
      break;
    }
    if (this.#onRoom === undefined || this.#inputBytes > INPUT_QUEUE_BYTES / 2) return;
    const tell = this.#onRoom;
    this.#onRoom = undefined;
    tell();
  }

  /** Nobody can write any more; what was written is in the stream's buffer, if it was paused, and then in the kernel's. */
  #ended(exit: PtyExit): void {
    const { fd } = this.#native;
    const last: Uint8Array[] = [];
    this.#stream.pause();
    // Reading from it by hand also tells its listeners, which would have every byte twice.
    this.#stream.removeAllListeners('data');
    for (let chunk: unknown = this.#stream.read(); chunk instanceof Uint8Array; ) {
      last.push(chunk);
      chunk = this.#stream.read();
    }
    for (let chunk = tryRead(fd); chunk.length > 0; chunk = tryRead(fd)) last.push(chunk);
    this.#exit = exit;
    masters.delete(fd);
    this.#stream.destroy();
    closeSync(this.#slave);
    clearTimeout(this.#retry);
    this.#flush();
    for (const chunk of last) this.#events.data(chunk);
    this.#events.exit(exit);
  }
}

/** Of every terminal this process holds. */
const masters = new Set<number>();

/** A host has only so many terminals and processes. */
function fork(request: ForkRequest, onExit: OnExit): NativePty {
  try {
    return forkPty(request, onExit);
  } catch (cause) {
    throw new AilsdError('BACKEND_UNAVAILABLE', 'there is no terminal to be had', {
      details: { retry_after_ms: 1_000 },
      internal: cause instanceof Error ? cause.message : '',
      cause,
    });
  }
}

function tryWrite(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    // A program that is just ending takes nothing: as if it had read it.
    return errorCode(error) === 'EAGAIN' ? 0 : bytes.length;
  }
}

function tryRead(fd: number): Uint8Array {
  const bytes = new Uint8Array(READ_BYTES);
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, READ_BYTES, null));
  } catch {
    return bytes.subarray(0, 0);
  }
}
