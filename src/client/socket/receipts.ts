/** Tells a sender how much of its stream was dealt with: soon after much, and a little later after little. */
import type { Clock } from '../../base/clock.js';
import { ReceiveWindow } from '../../stream/window.js';

/** Acks move the sender's window; one for every eighth of it is often enough. */
const ACKS = { ackEveryBytes: 32 * 1024, maxDelayMs: 50 } as const;

export class Receipts {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #send: (offset: number) => void;
  readonly #window: ReceiveWindow;
  #isAwaited = false;

  /** `start` is where the stream goes on; the signal aborts when there is nobody to tell any more. */
  constructor(clock: Clock, signal: AbortSignal, send: (offset: number) => void, start: number) {
    this.#clock = clock;
    this.#signal = signal;
    this.#send = send;
    this.#window = new ReceiveWindow(ACKS, start);
  }

  consumed(offset: number): void {
    const nowMs = this.#clock.monotonic();
    this.#window.consume(offset, nowMs);
    if (this.#window.isDue(nowMs)) this.flush();
    else this.#later(nowMs);
  }

  flush(): void {
    this.#send(this.#window.take());
  }

  /** One timer for however many small pieces. */
  #later(nowMs: number): void {
    const { dueAtMs } = this.#window;
    if (this.#isAwaited || dueAtMs === undefined) return;
    this.#isAwaited = true;
    this.#clock.sleep(Math.max(0, dueAtMs - nowMs), this.#signal).then(
      () => {
        this.#isAwaited = false;
        const thenMs = this.#clock.monotonic();
        if (this.#window.isDue(thenMs)) this.flush();
        else this.#later(thenMs);
      },
      () => undefined,
    );
  }
}
