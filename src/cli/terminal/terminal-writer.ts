/** Writes to the terminal as fast as it takes, without ever holding up keys and pings: what it does not take at once, a thread waits for. */
import { closeSync, constants, openSync, write, writeSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';

/** Told when what was given with it has been taken by the terminal. */
type Done = () => void;

interface Waiting {
  bytes: Uint8Array;
  readonly done: Done | undefined;
}

export class TerminalWriter implements Disposable {
  readonly #descriptor: number;
  /** The same terminal, opened so that a full one says so and does not wait; absent where that cannot be had. */
  readonly #quick: number | undefined;
  readonly #queue: Waiting[] = [];
  #isBusy = false;
  /** The terminal has gone: everything is taken and nothing shown, so that whoever waits goes on to the end. */
  #isGone = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#quick = openQuick(descriptor);
  }

  get isIdle(): boolean {
    return !this.#isBusy;
  }

  write(bytes: Uint8Array | string, done?: Done): void {
    const waiting = { bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes, done };
    if (!this.#isBusy && this.#tryNow(waiting)) {
      done?.();
      return;
    }
    this.#queue.push(waiting);
    if (!this.#isBusy) this.#continue();
  }

  /** Waits until everything has been taken, or for so long. */
  async drained(limitMs: number): Promise<void> {
    if (!this.#isBusy) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.write('', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** For the last words, whatever is still waiting: they must be out when this returns. */
  writeNow(text: string): void {
    let rest: Uint8Array = Buffer.from(text);
    for (let tries = 0; rest.length > 0 && tries < LAST_TRIES; tries += 1) {
      try {
        rest = rest.subarray(writeSync(this.#quick ?? this.#descriptor, rest));
      } catch (error) {
        if (errorCode(error) !== 'EAGAIN') return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WAIT_MS);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#isGone = true;
    if (this.#quick !== undefined) closeSync(this.#quick);
  }

  /** Whether the terminal took all of it at once. */
  #tryNow(waiting: Waiting): boolean {
    if (this.#isGone) return true;
    if (this.#quick === undefined) return false;
    try {
      while (waiting.bytes.length > 0) {
        waiting.bytes = waiting.bytes.subarray(writeSync(this.#quick, waiting.bytes));
      }
      return true;
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** Takes the first in line; the thread that writes it waits as long as the terminal does. */
  #continue(): void {
    const first = this.#queue[0];
    this.#isBusy = first !== undefined;
    if (first === undefined) return;
    const next = (): void => {
      this.#queue.shift();
      first.done?.();
      this.#continue();
    };
    if (this.#isGone || first.bytes.length === 0) {
      setImmediate(next);
      return;
    }
    write(this.#descriptor, first.bytes, (error, written) => {
      if (error === null) first.bytes = first.bytes.subarray(written);
      else this.#failed(error);
      if (!this.#isGone && (first.bytes.length > 0 ? !this.#tryNow(first) : false))
        this.#continue();
      else next();
    });
  }

  #failed(error: unknown): boolean {
    const code = errorCode(error);
    if (code === 'EAGAIN' || code === 'EINTR') return false;
    this.#isGone = true;
    return true;
  }
}

/** Together half a second: a terminal that takes nothing for so long is not going to. */
const LAST_TRIES = 100;
const LAST_WAIT_MS = 5;

function openQuick(descriptor: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined;
  }
}
