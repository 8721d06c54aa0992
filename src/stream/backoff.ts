/** When to try again after a cut: quickly at first, then ever more rarely, never in step with everybody else. No clock. */
export interface BackoffOptions {
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  /** So many retries come within `quickMs`: most cuts are over at once. */
  readonly quickTries?: number;
  readonly quickMs?: number;
  /** The bound of the first delay after the quick ones; each further one doubles it, up to the cap. */
  readonly baseMs?: number;
  readonly capMs?: number;
  /** Retries in a row without a success. */
  readonly maxTries?: number;
  /** Time since the first of them was asked for. */
  readonly maxElapsedMs?: number;
}

export const BACKOFF_DEFAULTS = {
  quickTries: 3,
  /** Half of the 100 ms in which the first retry is promised: timers are late. */
  quickMs: 50,
  baseMs: 250,
  capMs: 15_000,
  maxTries: Number.POSITIVE_INFINITY,
  maxElapsedMs: Number.POSITIVE_INFINITY,
} as const;

export class Backoff {
  readonly #options: Required<BackoffOptions>;
  /** Since the last success. */
  #tries = 0;
  #sinceMs: number | undefined;
  /** Since the last success or change of network. */
  #step = 0;

  constructor(options: BackoffOptions) {
    this.#options = { ...BACKOFF_DEFAULTS, ...options };
  }

  /** How long to wait before the next try, or that enough were made. The last one is made when time is just up. */
  next(nowMs: number): Retry {
    const { random, maxTries, maxElapsedMs } = this.#options;
    this.#sinceMs ??= nowMs;
    const leftMs = this.#sinceMs + maxElapsedMs - nowMs;
    if (this.#tries >= maxTries) return { kind: 'give-up', bound: 'tries', tries: this.#tries };
    if (leftMs <= 0) return { kind: 'give-up', bound: 'time', tries: this.#tries };
    // Full jitter, from zero to the bound: of all ways it spreads a crowd best.
    const delayMs = Math.min(random() * this.#boundMs(), leftMs);
    this.#tries += 1;
    this.#step += 1;
    return { kind: 'wait', delayMs, tries: this.#tries };
  }

  /**
   * The connection is good. Call it when it has answered or moved bytes, not when it opened: a server that accepts
   * and drops would be tried at full speed for ever.
   */
  reset(): void {
    this.#tries = 0;
    this.#step = 0;
    this.#sinceMs = undefined;
  }

  /** What failed before says nothing about the new network: the next tries are quick again. The bounds stay. */
  freshNetwork(): void {
    this.#step = 0;
  }

  #boundMs(): number {
    const { quickTries, quickMs, baseMs, capMs } = this.#options;
    if (this.#step < quickTries) return Math.min(quickMs, capMs);
    return Math.min(baseMs * 2 ** (this.#step - quickTries), capMs);
  }
}

export type Retry =
  | { kind: 'wait'; delayMs: number; tries: number }
  | { kind: 'give-up'; bound: 'tries' | 'time'; tries: number };
