/** Writes bytes to one of our own streams as they are and in order, without ever holding up signals and pings. */
import { fstatSync, writev } from 'node:fs';
import { errorCode } from '../../base/error-code.js';

interface Waiting {
  bytes: Uint8Array;
  readonly descriptor: number;
  readonly done: () => void;
}

/** Chunks that are handed to the system at once. */
const BATCH = 64;
const FULL_WAIT_MS = 5;

export class OutputWriter {
  readonly #queue: Waiting[] = [];
  readonly #failed: (descriptor: number, error: unknown) => void;
  readonly #gone = new Set<number>();
  #isBusy = false;

  /** Told of a stream that takes nothing any more: what is written to it from then on counts as taken. */
  constructor(failed: (descriptor: number, error: unknown) => void) {
    this.#failed = failed;
  }

  /** `done` is called when the system has taken it. */
  write(descriptor: number, bytes: Uint8Array, done: () => void): void {
    this.#queue.push({ bytes, descriptor, done });
    if (!this.#isBusy) this.#next();
  }

  #next(): void {
    const [first] = this.#queue;
    this.#isBusy = first !== undefined;
    if (first === undefined) return;
    const { descriptor } = first;
    if (this.#gone.has(descriptor)) {
      this.#queue.shift();
      first.done();
      setImmediate(() => this.#next());
      return;
    }
    const end = this.#queue.findIndex((one) => one.descriptor !== descriptor);
    const batch = this.#queue.slice(0, Math.min(end === -1 ? BATCH : end, BATCH));
    const chunks = batch.map(({ bytes }) => bytes);
    writev(descriptor, chunks, (error, written) => this.#wrote(descriptor, error, written));
  }

  #wrote(descriptor: number, error: unknown, written: number): void {
    const code = errorCode(error);
    if (code === 'EAGAIN') {
      // A pipe that somebody else who holds it has told not to wait.
      setTimeout(() => this.#next(), FULL_WAIT_MS);
      return;
    }
    if (error !== null && code !== 'EINTR') {
      this.#gone.add(descriptor);
      this.#failed(descriptor, error);
    }
    let left = error === null ? written : 0;
    for (let [first] = this.#queue; first !== undefined; [first] = this.#queue) {
      if (first.descriptor !== descriptor || left < first.bytes.length) {
        if (left > 0) first.bytes = first.bytes.subarray(left);
        break;
      }
      left -= first.bytes.length;
      this.#queue.shift();
      first.done();
    }
    this.#next();
  }
}

/** Whether two of our streams lead to the same place: then the order between them is to be kept. */
export function isSamePlace(one: number, other: number): boolean {
  try {
    const [a, b] = [fstatSync(one), fstatSync(other)];
    return a.dev === b.dev && a.ino === b.ino && a.rdev === b.rdev;
  } catch {
    return false;
  }
}
