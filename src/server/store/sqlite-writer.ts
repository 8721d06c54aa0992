/**
 * The one writer of a SQLite handle. Writes and transactions that wait share a commit, and so one wait for the disk: they
 * run one after another, each is acknowledged after that commit, and none fails because of its neighbour.
 */
import type { Clock } from '../../base/clock.js';
import { createDeferred, type Deferred } from '../../base/deferred.js';
import { AilsdError } from '../../protocol/errors.js';
import type { SqliteEngine } from './sqlite-engine.js';
import { isBusy, toSqliteError } from './sqlite-errors.js';

/** Writes and transactions that may wait; one more is refused. */
export const MAX_QUEUED_WRITES = 10_000;

/** How many share a commit: more would hold up the event loop. */
export const MAX_BATCHED_WRITES = 256;

/** How long others may go on joining a commit, while those who are done wait for it. */
export const MAX_BATCH_MS = 20;

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

  /**
   * `perform` finds a savepoint set, and releases it or goes back to it; it may be called again when what it did was
   * undone.
   */
  transaction<T>(perform: () => Promise<T>): Promise<T> {
    const done = createDeferred<T>();
    this.#enqueue({
      kind: 'transaction',
      attempt: () => attemptSoon(perform, done),
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
      await this.#commitTogether();
    }
    // In the same step as the look at the queue: nobody can add to it in between and rely on this run.
    this.#pump = undefined;
  }

  /** What comes to the queue meanwhile joins. */
  async #commitTogether(): Promise<void> {
    const { clock, maxBatch } = this.#options;
    const isBegun = await this.#begin((error) => {
      for (const job of this.#queue.splice(0, maxBatch)) job.reject(error);
    });
    if (!isBegun) return;
    const until = clock.monotonic() + MAX_BATCH_MS;
    const batch: Job[] = [];
    const outcomes: Outcome[] = [];
    do {
      const job = this.#queue.shift();
      if (job === undefined) break;
      batch.push(job);
      const outcome = await this.#attempt(job);
      outcomes.push(outcome);
      // A failed one is undone alone. A full disk and its like also undo those before it, and end the transaction.
      if (!this.#engine.inTransaction) return this.#commitApart(batch, outcome);
    } while (batch.length < maxBatch && clock.monotonic() < until);
    const refused = this.#commit();
    if (refused !== undefined) return this.#commitApart(batch, failure(batch[0], refused.error));
    for (const outcome of outcomes) outcome.settle();
  }

  /** Each in its own transaction, so that each has its own fate. A batch of one has had it. */
  async #commitApart(batch: readonly Job[], alone: Outcome): Promise<void> {
    if (batch.length === 1) return alone.settle();
    for (const job of batch) {
      if (!(await this.#begin(job.reject))) continue;
      const outcome = await this.#attempt(job);
      const refused = this.#engine.inTransaction ? this.#commit() : undefined;
      if (refused === undefined) outcome.settle();
      else job.reject(toSqliteError(refused.error));
    }
  }

  async #attempt(job: Job): Promise<Outcome> {
    if (job.kind === 'write') return job.attempt();
    try {
      this.#engine.exec(SAVEPOINT.set);
    } catch (error) {
      return failure(job, error);
    }
    return job.attempt();
  }

  #commit(): { readonly error: unknown } | undefined {
    try {
      this.#engine.exec('COMMIT');
      return undefined;
    } catch (error) {
      this.#rollback();
      return { error };
    }
  }

  async #begin(refused: (error: AilsdError) => void): Promise<boolean> {
    try {
      await whenFree(() => this.#engine.exec('BEGIN IMMEDIATE'), this.#options.clock);
      return true;
    } catch (error) {
      refused(toSqliteError(error));
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
  readonly attempt: () => Promise<Outcome>;
  readonly reject: (error: unknown) => void;
}

/** Where a transaction among others begins; each has ended before the next begins, so one name serves all. */
export const SAVEPOINT = {
  set: 'SAVEPOINT one',
  release: 'RELEASE one',
  goBack: 'ROLLBACK TO one',
} as const;

/** What a write or transaction came to, kept back until it is on disk. */
interface Outcome {
  readonly settle: () => void;
}

function attempt<T>(apply: () => T, done: Deferred<T>): Outcome {
  try {
    const value = apply();
    return { settle: () => done.resolve(value) };
  } catch (error) {
    return { settle: () => done.reject(toSqliteError(error)) };
  }
}

async function attemptSoon<T>(perform: () => Promise<T>, done: Deferred<T>): Promise<Outcome> {
  try {
    const value = await perform();
    return { settle: () => done.resolve(value) };
  } catch (error) {
    return { settle: () => done.reject(error) };
  }
}

function failure(job: Job | undefined, error: unknown): Outcome {
  return { settle: () => job?.reject(toSqliteError(error)) };
}
