/** Keeps one token good: renewed on a timer before it ends and whenever somebody asks, by one request for all who do. */
import type { Clock } from '../../base/clock.js';
import { createDeferred } from '../../base/deferred.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { refreshBefore } from '../../protocol/lifetimes.js';
import { Backoff } from '../../stream/backoff.js';
import type { FreshToken } from './answer.js';
import { sleepUntil } from './sleep-until.js';
import { unlessAborted } from './unless-aborted.js';

/** A token, and by how much the clock of whoever made it is ahead of ours. */
export interface DatedToken {
  readonly fresh: FreshToken;
  readonly skewMs: number;
}

export interface TokenKeeperOptions {
  readonly clock: Clock;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  readonly trace: (text: string) => void;
  /** Gets another one for the one in hand. */
  readonly renew: (current: Secret) => Promise<DatedToken>;
}

/** However soon a token is due, so much lies between two renewals on the timer. */
const LEAST_PAUSE_MS = 1_000;
/** A token that ends sooner is not worth sending. */
const ON_THE_WAY_MS = 2_000;

export class TokenKeeper {
  readonly #options: TokenKeeperOptions;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #held: Held;
  #renewing: Promise<Secret> | undefined;
  #changed = createDeferred();

  constructor(first: DatedToken, options: TokenKeeperOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#backoff = new Backoff({ random: options.random, quickTries: 0, baseMs: 1_000 });
    this.#held = this.#toHeld(first);
  }

  get expiresAtMs(): number {
    return this.#held.expiresAtMs;
  }

  /** One that is good now. */
  async token(signal?: AbortSignal): Promise<Secret> {
    const { token, dueAtMs } = this.#held;
    if (this.#clock.now() < dueAtMs) return token;
    try {
      return await this.refresh(signal);
    } catch (error) {
      // A server that is away for a moment is no reason to stop while the token is good.
      if (!this.#isUsable() || signal?.aborted || !isPassing(error)) throw error;
      return token;
    }
  }

  refresh(signal?: AbortSignal): Promise<Secret> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return unlessAborted(this.#renewing, signal);
  }

  /** Takes one that came another way. */
  hold(dated: DatedToken): Secret {
    this.#held = this.#toHeld(dated);
    const { resolve } = this.#changed;
    this.#changed = createDeferred();
    resolve();
    return this.#held.token;
  }

  /** Every one that follows, the latest where several came at once. */
  async *tokens(signal: AbortSignal): AsyncGenerator<Secret, void, undefined> {
    let seen = this.#held.token;
    for (;;) {
      const changed = this.#changed.promise;
      if (!this.#held.token.equals(seen)) {
        seen = this.#held.token;
        yield seen;
        continue;
      }
      try {
        await unlessAborted(changed, signal);
      } catch {
        return;
      }
    }
  }

  /** The timer: ends by the signal, or where nothing will renew it any more; who asks for a token next is told why. */
  async keepFresh(signal: AbortSignal): Promise<void> {
    let pauseMs = LEAST_PAUSE_MS;
    for (;;) {
      const atMs = Math.max(this.#held.dueAtMs, this.#clock.now() + pauseMs);
      await sleepUntil(this.#clock, atMs, signal);
      pauseMs = LEAST_PAUSE_MS;
      if (this.#clock.now() < this.#held.dueAtMs) continue;
      try {
        await this.refresh(signal);
        this.#backoff.reset();
      } catch (error) {
        signal.throwIfAborted();
        this.#options.trace(`the token was not renewed: ${String(error)}`);
        if (!isPassing(error)) return;
        const retry = this.#backoff.next(this.#clock.monotonic());
        if (retry.kind === 'wait') pauseMs = Math.max(retry.delayMs, LEAST_PAUSE_MS);
      }
    }
  }

  async #renew(): Promise<Secret> {
    return this.hold(await this.#options.renew(this.#held.token));
  }

  #toHeld({ fresh, skewMs }: DatedToken): Held {
    const { token, expiresAtMs, refreshBeforeMs } = fresh;
    const end = expiresAtMs - skewMs;
    const due =
      refreshBeforeMs === undefined
        ? refreshBefore(this.#clock.now(), end)
        : refreshBeforeMs - skewMs;
    return { token, expiresAtMs: end, dueAtMs: Math.min(due, end) };
  }

  #isUsable(): boolean {
    return this.#clock.now() + ON_THE_WAY_MS < this.#held.expiresAtMs;
  }
}

/** Times are by this machine's clock. */
interface Held {
  readonly token: Secret;
  readonly expiresAtMs: number;
  readonly dueAtMs: number;
}

/** What may be different the next time. */
export function isPassing(error: unknown): boolean {
  return error instanceof AilsdError && error.row.retryable;
}
