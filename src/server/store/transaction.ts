/** The rules of a transaction that hold on every engine: it is not nested, it ends in time, and a failure undoes it all. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Bind, Db, Row } from './db.js';

/** One connection inside an open transaction. */
export interface TransactionSession {
  query(sql: string, binds: readonly Bind[]): Promise<readonly Row[]>;
  run(sql: string, binds: readonly Bind[]): Promise<number>;
  now(): Promise<number>;
  commit(): Promise<void>;
  /** Must not throw: whoever can't roll back closes the connection, which does. */
  rollback(): Promise<void>;
}

/** While one is open nobody else writes (SQLite) or a connection is held (PostgreSQL). */
export const TRANSACTION_TIMEOUT_MS = 20_000;

export class Transactions {
  readonly #engine: Db['engine'];
  readonly #clock: Clock;
  readonly #current = new AsyncLocalStorage<TransactionDb>();

  constructor(engine: Db['engine'], clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
  }

  /**
   * Code inside a transaction that speaks to the database around it would wait for itself, or write what a rollback
   * doesn't undo.
   */
  refuseInside(): void {
    if (this.#current.getStore()?.isOpen) {
      throw new AilsdError('INTERNAL', 'inside a transaction only its own `tx` may be used');
    }
  }

  /** The session is in an open transaction; when this settles it no longer is. */
  async perform<T>(session: TransactionSession, work: (tx: Db) => Promise<T>): Promise<T> {
    const tx = new TransactionDb(this.#engine, session);
    let value: T;
    try {
      value = await this.#within(this.#current.run(tx, async () => work(tx)));
      // A failure that the work caught leaves PostgreSQL unable to commit; so it is everywhere.
      if (tx.failure !== undefined) throw tx.failure.error;
    } catch (error) {
      tx.isOpen = false;
      await session.rollback();
      throw tx.failure?.error ?? error;
    }
    tx.isOpen = false;
    await session.commit();
    return value;
  }

  async #within<T>(work: Promise<T>): Promise<T> {
    const timer = new AbortController();
    const late = this.#clock.sleep(TRANSACTION_TIMEOUT_MS, timer.signal).then(() => {
      throw new AilsdError(
        'BACKEND_UNAVAILABLE',
        `a transaction was undone: it took longer than ${TRANSACTION_TIMEOUT_MS} ms`,
      );
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      timer.abort(IN_TIME);
    }
  }
}

/** Made once: the abort's own reason would be an error with a stack for every transaction. */
const IN_TIME = new Error('the transaction ended in time');

/** What the work of a transaction gets. */
class TransactionDb implements Db {
  readonly engine: Db['engine'];
  readonly #session: TransactionSession;
  isOpen = true;
  /** Of the first statement that failed. */
  failure: { readonly error: unknown } | undefined;

  constructor(engine: Db['engine'], session: TransactionSession) {
    this.engine = engine;
    this.#session = session;
  }

  query(sql: string, binds: readonly Bind[] = []): Promise<readonly Row[]> {
    return this.#attempt(() => this.#session.query(sql, binds));
  }

  run(sql: string, binds: readonly Bind[] = []): Promise<number> {
    return this.#attempt(() => this.#session.run(sql, binds));
  }

  now(): Promise<number> {
    return this.#attempt(() => this.#session.now());
  }

  transaction<T>(): Promise<T> {
    return Promise.reject(new AilsdError('INTERNAL', 'a transaction within a transaction'));
  }

  /** Its end is the work's end. */
  async [Symbol.asyncDispose](): Promise<void> {}

  async #attempt<T>(statement: () => Promise<T>): Promise<T> {
    if (!this.isOpen) throw new AilsdError('INTERNAL', 'the transaction has ended');
    if (this.failure !== undefined) throw this.failure.error;
    try {
      return await statement();
    } catch (error) {
      this.failure ??= { error };
      throw error;
    }
  }
}
