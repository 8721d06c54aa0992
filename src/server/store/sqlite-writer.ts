/**
 * The one writer of a SQLite handle. Writes of one turn of the event loop share a transaction, and so one wait for the
 * disk; each is acknowledged after that commit, and none fails because of its neighbour. Transactions take turns with them.
 */
import type { Clock } from '../../base/clock.js';
import { createDeferred, type Deferred } from '../../base/deferred.js';
import { AilsdError } from '../../protocol/errors.js';
import type { SqliteEngine } from './sqlite-engine.js';
import { isBusy, toSqliteError } from './sqlite-errors.js';

/** Writes and transactions that may wait; one more is refused. */
export const MAX_QUEUED_WRITES = 10_000;

/** How many writes share a transaction: more would hold up the event loop. */
export const MAX_BATCHED_WRITES = 256;

/** How long to wait for the writers of other handles and processes. */
export const BUSY_TIMEOUT_MS = 10_000;

export interface WriterOptions {
  readonly clock: Clock;
  readonly maxBatch: number;
}

export class SqliteWriter {
  readonly #engine: SqliteEngine;
  readonly #options: WriterOptions;
  readonly #queue: Job[] = [];
  #pump: Promise<void> | undefined;

  constructor(engine: SqliteEngine, options: WriterOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /** `apply` writes at once, and may be called again when what it did was undone. */
  write<T>(apply: () => T): Promise<T> {
    const done = createDeferred<T>();
    this.#enqueue({
      kind: 'write',
      attempt: () => attempt(apply, done),
      reject: done.reject,
    });
    return done.promise;
  }

  /** `perform` finds a transaction begun, and ends it. */
  transaction<T>(perform: () => Promise<T>): Promise<T> {
    const done = createDeferred<T>();
    this.#enqueue({
      kind: 'transaction',
      perform: () => perform().then(done.resolve, done.reject),
      reject: done.reject,
    });
    return done.promise;
  }

  /** Resolves when everything queued is settled. */
  async idle(): Promise<void> {
    while (this.#pump !== undefined) await this.#pump;
  }

  #enqueue(job: Job): void {
    if (this.#queue.length >= MAX_QUEUED_WRITES) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'too many writes are waiting for the database');
    }
    this.#queue.push(job);
    this.#pump ??= this.#run();
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      // What else this turn has to write joins, and what is not about the database goes on.
      await new Promise((resolve) => setImmediate(resolve));
      const [first] = this.#queue;
      if (first?.kind === 'transaction') {
        this.#queue.shift();
        await this.#perform(first);
      } else {
        await this.#commit(this.#takeWrites());
      }
    }
    // In the same step as the look at the queue: nobody can add to it in between and rely on this run.
    this.#pump = undefined;
  }

  #takeWrites(): readonly Write[] {
    const batch: Write[] = [];
    for (const job of this.#queue) {
      if (job.kind !== 'write' || batch.length >= this.#options.maxBatch) break;
      batch.push(job);
    }
    this.#queue.splice(0, batch.length);
    return batch;
  }

  async #perform(job: Transaction): Promise<void> {
    if (!(await this.#begin([job]))) return;
    await job.perform();
    // `perform` ends it; should that have failed, the next BEGIN must not find it open.
    this.#rollback();
  }

  async #commit(batch: readonly Write[]): Promise<void> {
    if (!(await this.#begin(batch))) return;
    const outcomes: Outcome[] = [];
    for (const write of batch) {
      const outcome = write.attempt();
      outcomes.push(outcome);
      // A failed statement is undone alone. A full disk and its like also undo those before it, and end the transaction.
      if (outcome.failed && !this.#engine.inTransaction) return this.#commitApart(batch, outcome);
    }
    try {
      this.#engine.exec('COMMIT');
    } catch (error) {
      this.#rollback();
      return this.#commitApart(batch, {
        failed: true,
        settle: () => batch[0]?.reject(toSqliteError(error)),
      });
    }
    for (const outcome of outcomes) outcome.settle();
  }

  /** Each in its own transaction, so that each has its own fate. A batch of one has had it. */
  async #commitApart(batch: readonly Write[], alone: Outcome): Promise<void> {
    if (batch.length === 1) return alone.settle();
    for (const write of batch) await this.#commit([write]);
  }

  async #begin(jobs: readonly Job[]): Promise<boolean> {
    try {
      await whenFree(() => this.#engine.exec('BEGIN IMMEDIATE'), this.#options.clock);
      return true;
    } catch (error) {
      const told = toSqliteError(error);
      for (const job of jobs) job.reject(told);
      return false;
    }
  }

  #rollback(): void {
    try {
      if (this.#engine.inTransaction) this.#engine.exec('ROLLBACK');
    } catch {
      // Then the next BEGIN fails, and tells those whom it concerns.
    }
  }
}

/**
 * Tries until nobody else holds the lock. SQLite's own waiting would stop the event loop, and with it the very
 * transaction of another handle that holds the lock.
 */
export async function whenFree<T>(step: () => T, clock: Clock): Promise<T> {
  const deadline = clock.monotonic() + BUSY_TIMEOUT_MS;
  for (let delayMs = 1; ; delayMs = Math.min(delayMs * 2, MAX_BUSY_DELAY_MS)) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= deadline) throw error;
    }
    await clock.sleep(delayMs);
  }
}

const MAX_BUSY_DELAY_MS = 16;

type Job = Write | Transaction;

interface Write {
  readonly kind: 'write';
  readonly attempt: () => Outcome;
  readonly reject: (error: unknown) => void;
}

interface Transaction {
  readonly kind: 'transaction';
  readonly perform: () => Promise<void>;
  readonly reject: (error: unknown) => void;
}

/** What a write came to, kept back until it is on disk. */
interface Outcome {
  readonly failed: boolean;
  readonly settle: () => void;
}

function attempt<T>(apply: () => T, done: Deferred<T>): Outcome {
  try {
    const value = apply();
    return { failed: false, settle: () => done.resolve(value) };
  } catch (error) {
    return { failed: true, settle: () => done.reject(toSqliteError(error)) };
  }
}
