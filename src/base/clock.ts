/** Time as an argument: the system's for programs, a hand-driven one for tests and simulations. */
import { onAbort } from './abort.js';

export interface Clock {
  /** Milliseconds since 1970. People set it, so it may jump: for stamps, never for measuring. */
  now(): number;
  /** Milliseconds since some beginning; never goes back. */
  monotonic(): number;
  /** Rejects with the signal's reason when that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    let left = ms;
    for (; left > MAX_TIMER_MS; left -= MAX_TIMER_MS) await timer(MAX_TIMER_MS, signal);
    await timer(left, signal);
  },
};

/** What fits `setTimeout`, about 25 days; a longer time would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return abortableWait(signal, (wake) => {
    const handle = setTimeout(wake, ms);
    return () => clearTimeout(handle);
  });
}

/** Stands still until it is advanced. */
export class ManualClock implements Clock {
  readonly #begin: number;
  #elapsed = 0;
  /** By due time; of the same time, who slept first is first. */
  readonly #sleepers: Sleeper[] = [];

  constructor(nowMs = 0) {
    this.#begin = nowMs;
  }

  now(): number {
    return this.#begin + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  /** How many sleep: zero says that nothing was left waiting. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return abortableWait(signal, (wake) => {
      const sleeper = { dueMs: this.#elapsed + (ms > 0 ? ms : 0), wake };
      const later = this.#sleepers.findIndex((other) => other.dueMs > sleeper.dueMs);
      this.#sleepers.splice(later === -1 ? this.#sleepers.length : later, 0, sleeper);
      return () => this.#sleepers.splice(this.#sleepers.indexOf(sleeper), 1);
    });
  }

  /** Wakes each sleeper at its own time, and lets it go on until it waits again, before the next one's turn. */
  async advance(ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0) throw new RangeError(`time does not advance by ${ms} ms`);
    const until = this.#elapsed + ms;
    await turn();
    for (let next = this.#sleepers[0]; next !== undefined; next = this.#sleepers[0]) {
      if (next.dueMs > until) break;
      this.#sleepers.shift();
      this.#elapsed = next.dueMs;
      next.wake();
      await turn();
    }
    this.#elapsed = until;
  }
}

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** A turn of the event loop: after it, everything that could go on without the outside has. */
function turn(): Promise<void> {
  return new Promise((resolve) => (globalThis.setImmediate ?? setTimeout)(resolve));
}

/** `start` arranges for `wake` to be called, and returns what calls that off. */
function abortableWait(
  signal: AbortSignal | undefined,
  start: (wake: () => void) => () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const callOff = start(() => {
      stopListening?.();
      resolve();
    });
    const stopListening =
      signal &&
      onAbort(signal, () => {
        callOff();
        reject(signal.reason);
      });
  });
}
