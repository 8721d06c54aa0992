/** A PostgreSQL database as a `Db`: a bounded pool, and losses of connection as errors that say "try again". */
import pg from 'pg';
import { type Clock, systemClock } from '../../base/clock.js';
import { type Logger, silentLogger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Bind, Db, Row } from './db.js';
import { isConflict, toPostgresError } from './postgres-errors.js';
import { PostgresSession, STATEMENT_TIMEOUT_MS } from './postgres-session.js';
import { POSTGRES_TYPES } from './postgres-types.js';
import { TRANSACTION_TIMEOUT_MS, Transactions } from './transaction.js';

export interface PostgresOptions {
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  readonly maxConnections?: number | undefined;
}

export const MAX_CONNECTIONS = 10;

/** Callers that may wait for a connection; one more is refused. */
export const MAX_WAITING_CALLERS = 10_000;

export const CONNECT_TIMEOUT_MS = 5_000;

/** The server ends a statement by itself; on a silent server the client gives up a little later. */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1_000;

/** How often a transaction that lost against others is begun again, and how long it waits in between at most. */
export const MAX_TRANSACTION_TRIES = 20;
const MAX_RETRY_DELAY_MS = 200;

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Db> {
  const db = new PostgresDb(createPool(url, options), options);
  try {
    await db.now();
    return db;
  } catch (error) {
    await db[Symbol.asyncDispose]();
    throw error;
  }
}

function createPool(url: string, options: PostgresOptions): pg.Pool {
  try {
    // Reads the URL, which the pool would do only when it connects.
    new pg.Client({ connectionString: url });
  } catch {
    // What the parser says may quote the URL, and with it the password.
    throw new AilsdError('CONFIG_INVALID', 'the database URL can not be read', {
      hint: 'it looks like postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    });
  }
  return new pg.Pool({
    connectionString: url,
    max: options.maxConnections ?? MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: SILENCE_TIMEOUT_MS,
    idle_in_transaction_session_timeout: TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'ailsd',
    types: POSTGRES_TYPES,
  });
}

class PostgresDb implements Db {
  readonly engine = 'postgres';
  readonly #pool: pg.Pool;
  readonly #clock: Clock;
  readonly #transactions: Transactions;
  readonly #calls = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(pool: pg.Pool, options: PostgresOptions) {
    const logger = options.logger ?? silentLogger;
    this.#pool = pool;
    this.#clock = options.clock ?? systemClock;
    this.#transactions = new Transactions('postgres', this.#clock);
    // A connection that is lost while nobody uses it, and one lost while somebody does: the latter's call fails by itself.
    const report = (error: unknown) => logger.warn('a database connection was lost', { error });
    pool.on('error', report);
    pool.on('connect', (client) => client.on('error', report));
  }

  query(sql: string, binds: readonly Bind[] = []): Promise<readonly Row[]> {
    return this.#withSession((session) => session.query(sql, binds));
  }

  run(sql: string, binds: readonly Bind[] = []): Promise<number> {
    return this.#withSession((session) => session.run(sql, binds));
  }

  now(): Promise<number> {
    return this.#withSession((session) => session.now());
  }

  /** Serializable, so that what is right under SQLite's one writer is right here; `work` is run again when it lost. */
  async transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#withSession(async (session) => {
          await session.begin();
          return this.#transactions.perform(session, work);
        });
      } catch (error) {
        if (!isConflict(error) || tries >= MAX_TRANSACTION_TRIES) throw error;
      }
      // At random: those who lost together would otherwise meet again.
      await this.#clock.sleep(Math.random() * Math.min(2 ** tries, MAX_RETRY_DELAY_MS));
    }
  }

  /** Who has asked is answered first. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Each is bounded by the timeouts above. What fails here is told to whoever asked.
    await Promise.allSettled(this.#calls);
    await this.#pool.end();
  }

  async #withSession<T>(use: (session: PostgresSession) => Promise<T>): Promise<T> {
    this.#transactions.refuseInside();
    if (this.#closing !== undefined) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the database is closed');
    }
    if (this.#pool.waitingCount >= MAX_WAITING_CALLERS) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'too many are waiting for the database');
    }
    const call = this.#call(use);
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  async #call<T>(use: (session: PostgresSession) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    const session = new PostgresSession(client);
    try {
      return await use(session);
    } finally {
      client.release(!session.isUsable);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw toPostgresError(error);
    }
  }
}
