/** Whether the other side is still there: asks after a silence, and gives up on it in time. Any frame is a sign of life. No clock. */

export const LIVENESS = {
  /** So long nothing may be heard before a ping asks. */
  quietMs: 5_000,
  /** So long an answer may take; with the silence before it and a tick, less than the 20 s that are promised. */
  answerMs: 12_000,
  /** The same when there is reason to doubt: the machine slept, the network changed. */
  doubtMs: 3_000,
  /** How often to look. */
  tickMs: 1_000,
} as const;

export class Liveness {
  #heardAtMs: number;
  #askedAtMs: number | undefined;
  #answerMs: number = LIVENESS.answerMs;

  constructor(nowMs: number) {
    this.#heardAtMs = nowMs;
  }

  /** Something came. */
  heard(nowMs: number): void {
    this.#heardAtMs = nowMs;
    this.#askedAtMs = undefined;
    this.#answerMs = LIVENESS.answerMs;
  }

  /** The line may be another one than before: ask now, and wait less for the answer. */
  doubt(nowMs: number): void {
    this.#askedAtMs = undefined;
    this.#answerMs = LIVENESS.doubtMs;
    this.#heardAtMs = Math.min(this.#heardAtMs, nowMs - LIVENESS.quietMs);
  }

  /** Called every tick; `ping` means that one must be sent. */
  tick(nowMs: number): 'alive' | 'ping' | 'dead' {
    if (this.#askedAtMs !== undefined) {
      return nowMs - this.#askedAtMs >= this.#answerMs ? 'dead' : 'alive';
    }
    if (nowMs - this.#heardAtMs < LIVENESS.quietMs) return 'alive';
    this.#askedAtMs = nowMs;
    return 'ping';
  }
}
