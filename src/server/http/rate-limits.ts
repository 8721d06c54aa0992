/** How often one caller, and one address, may ask: buckets that fill at a steady rate, in this process's memory alone. */
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Principal } from '../../protocol/principal.js';

export interface RateLimitParts {
  /** Of one caller; 0: no limit. */
  readonly principalPerMinute: number;
  /** Of one address; 0: no limit. */
  readonly addressPerMinute: number;
  readonly clock: Clock;
}

export class RateLimits {
  readonly #principals: Buckets;
  readonly #addresses: Buckets;

  constructor({ principalPerMinute, addressPerMinute, clock }: RateLimitParts) {
    this.#principals = new Buckets(principalPerMinute, clock);
    this.#addresses = new Buckets(addressPerMinute, clock);
  }

  /** An agent draws on its delegator's bucket: what it may do is its delegator's. */
  takeForPrincipal({ tenant, sub }: Principal): void {
    this.#principals.take(`${tenant} ${sub}`);
  }

  takeForAddress(address: string): void {
    this.#addresses.take(address);
  }
}

/** A minute's worth can be used at once. */
export class Buckets {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #clock: Clock;
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: number, clock: Clock) {
    this.#capacity = perMinute;
    this.#perMs = perMinute / 60_000;
    this.#clock = clock;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Throws RATE_LIMITED, with the time until it may be tried again. */
  take(key: string): void {
    if (this.#capacity === 0) return;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key);
    const level = bucket === undefined ? this.#capacity : this.#levelAt(bucket, now);
    if (bucket !== undefined) this.#buckets.delete(key);
    const isAllowed = level >= 1;
    this.#buckets.set(key, { level: isAllowed ? level - 1 : level, atMs: now });
    this.#forget(now);
    if (isAllowed) return;
    throw new AilsdError('RATE_LIMITED', 'too many requests', {
      details: { retry_after_ms: Math.ceil((1 - level) / this.#perMs) },
    });
  }

  #levelAt({ level, atMs }: Bucket, now: number): number {
    return Math.min(this.#capacity, level + (now - atMs) * this.#perMs);
  }

  /** A full bucket says no more than none. Past the bound the one longest unused goes, full or not. */
  #forget(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#buckets.size <= MOST_BUCKETS && this.#levelAt(bucket, now) < this.#capacity) return;
      this.#buckets.delete(key);
    }
  }
}

interface Bucket {
  readonly level: number;
  readonly atMs: number;
}

const MOST_BUCKETS = 50_000;
