/** Hands items from producers to a consumer in order, holding no more than it may: fullness is the producer's to see. */
import { onAbort } from './abort.js';

export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #bounds: QueueBounds<T>;
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;
  #size = 0;
  #weight = 0;
  /** Of the item refused last; what `ready` waits to have room for. */
  #refusedWeight = 0;
  #ending: Ending | undefined;
  readonly #arrivals = new Bell();
  readonly #departures = new Bell();

  constructor(bounds: QueueBounds<T>) {
    if (!(bounds.maxItems >= 1 && bounds.maxWeight >= 0)) {
      throw new RangeError('a queue holds at least one item');
    }
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#size;
  }

  get weight(): number {
    return this.#weight;
  }

  /** `full` leaves the item with the caller, to be pushed again after `ready`; `too-heavy` could never be taken. */
  push(item: T): 'taken' | 'full' | 'closed' | 'too-heavy' {
    if (this.#ending !== undefined) return 'closed';
    const weight = this.#bounds.weigh(item);
    if (!Number.isFinite(weight) || weight < 0) {
      throw new RangeError(`an item cannot weigh ${weight}`);
    }
    if (weight > this.#bounds.maxWeight) return 'too-heavy';
    if (!this.#fits(weight)) {
      this.#refusedWeight = weight;
      return 'full';
    }
    const link: Link<T> = { item, weight, next: undefined };
    if (this.#last === undefined) this.#first = link;
    else this.#last.next = link;
    this.#last = link;
    this.#size += 1;
    this.#weight += weight;
    this.#refusedWeight = 0;
    this.#arrivals.ring();
    return 'taken';
  }

  /** Waits until the item refused last would fit. With several producers another may be quicker: push, then wait again. */
  async ready(signal?: AbortSignal): Promise<'ready' | 'closed'> {
    signal?.throwIfAborted();
    while (this.#ending === undefined) {
      if (this.#fits(this.#refusedWeight)) return 'ready';
      await this.#departures.heard(signal);
    }
    return 'closed';
  }

  /** Takes nothing more; what is inside still comes out, then iteration ends. Only the first ending counts. */
  close(): void {
    this.#end({ kind: 'closed' });
  }

  /** As `close`, but iteration then throws the error. */
  fail(error: unknown): void {
    this.#end({ kind: 'failed', error });
  }

  async next(signal?: AbortSignal): Promise<IteratorResult<T, undefined>> {
    signal?.throwIfAborted();
    for (;;) {
      const link = this.#first;
      if (link !== undefined) return { done: false, value: this.#take(link) };
      if (this.#ending?.kind === 'failed') throw this.#ending.error;
      if (this.#ending?.kind === 'closed') return { done: true, value: undefined };
      await this.#arrivals.heard(signal);
    }
  }

  /** Leaving the loop early closes nothing: what is left waits for the next one. */
  async *items(signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const result = await this.next(signal);
      if (result.done) return;
      yield result.value;
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    return this.items();
  }

  #fits(weight: number): boolean {
    return this.#size < this.#bounds.maxItems && this.#weight + weight <= this.#bounds.maxWeight;
  }

  #take(link: Link<T>): T {
    this.#first = link.next;
    if (link.next === undefined) this.#last = undefined;
    this.#size -= 1;
    this.#weight -= link.weight;
    this.#departures.ring();
    return link.item;
  }

  #end(ending: Ending): void {
    this.#ending ??= ending;
    this.#arrivals.ring();
    this.#departures.ring();
  }
}

export interface QueueBounds<T> {
  readonly maxItems: number;
  /** In the unit of `weigh`, which for most is bytes. */
  readonly maxWeight: number;
  /** Finite and not negative, or `push` throws: with anything else the sum would lose its meaning. */
  readonly weigh: (item: T) => number;
}

interface Link<T> {
  readonly item: T;
  readonly weight: number;
  next: Link<T> | undefined;
}

type Ending = { kind: 'closed' } | { kind: 'failed'; error: unknown };

/** Wakes everybody who listens; whoever wakes looks for himself, so a wake-up nobody needed loses nothing. */
class Bell {
  readonly #listeners = new Set<() => void>();

  ring(): void {
    for (const wake of this.#listeners) wake();
  }

  heard(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        this.#listeners.delete(wake);
        stopListening?.();
        resolve();
      };
      this.#listeners.add(wake);
      const stopListening =
        signal &&
        onAbort(signal, () => {
          this.#listeners.delete(wake);
          reject(signal.reason);
        });
    });
  }
}
