/** A SQLite file as a `Db`: one connection that writes, one that reads committed rows meanwhile. */
import { type Clock, systemClock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import { guardBinds } from './bind-guard.js';
import type { Bind, Db, Row } from './db.js';
import { READ_CLOCK_SQL } from './engine-clock.js';
import { numberOf } from './row.js';
import type { SqliteEngine, SqliteLibrary } from './sqlite-engine.js';
import { toSqliteError } from './sqlite-errors.js';
import { openLibsqlEngine } from './sqlite-libsql.js';
import { findNodeSqlite, openNodeEngine } from './sqlite-node.js';
import { MAX_BATCHED_WRITES, SAVEPOINT, SqliteWriter, whenFree } from './sqlite-writer.js';
import { parseStatement, type Statement } from './statement.js';
import { type TransactionSession, Transactions } from './transaction.js';

export interface SqliteOptions {
  readonly clock?: Clock | undefined;
  /** Otherwise the one built into Node where there is one. */
  readonly library?: SqliteLibrary | undefined;
  /** How many writes may share a commit; 1 for none. */
  readonly maxBatch?: number | undefined;
}

/** The file must exist: `sqlite-file.ts` makes it. Several handles and processes may open the same one. */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<Db> {
  const clock = options.clock ?? systemClock;
  const opened: SqliteEngine[] = [];
  try {
    const writing = await openEngine(path, options.library);
    opened.push(writing);
    for (const setting of SETTINGS) await whenFree(() => writing.exec(setting), clock);
    const reading = await openEngine(path, options.library);
    opened.push(reading);
    for (const setting of READER_SETTINGS) await whenFree(() => reading.exec(setting), clock);
    return new SqliteDb({ writing, reading, clock, options });
  } catch (error) {
    for (const engine of opened) engine.close();
    throw toSqliteError(error);
  }
}

/** A short wait of SQLite's own is quicker than a timer when another process is in the middle of a commit. */
const BUSY_STEP_MS = 4;

/** FULL: a commit is on the disk when it is acknowledged. */
const SETTINGS = [
  `PRAGMA busy_timeout = ${BUSY_STEP_MS}`,
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA foreign_keys = ON',
];

const READER_SETTINGS = [`PRAGMA busy_timeout = ${BUSY_STEP_MS}`, 'PRAGMA query_only = ON'];

async function openEngine(path: string, library?: SqliteLibrary): Promise<SqliteEngine> {
  const builtIn = library === 'libsql' ? undefined : findNodeSqlite();
  return builtIn === undefined ? openLibsqlEngine(path) : openNodeEngine(builtIn, path);
}

interface SqliteParts {
  readonly writing: SqliteEngine;
  readonly reading: SqliteEngine;
  readonly clock: Clock;
  readonly options: SqliteOptions;
}

class SqliteDb implements Db {
  readonly engine = 'sqlite';
  readonly #parts: SqliteParts;
  readonly #writer: SqliteWriter;
  readonly #transactions: Transactions;
  #closing: Promise<void> | undefined;

  constructor(parts: SqliteParts) {
    this.#parts = parts;
    const maxBatch = parts.options.maxBatch ?? MAX_BATCHED_WRITES;
    this.#writer = new SqliteWriter(parts.writing, { clock: parts.clock, maxBatch });
    this.#transactions = new Transactions('sqlite', parts.clock);
  }

  async query(sql: string, binds: readonly Bind[] = []): Promise<readonly Row[]> {
    const { writing, reading } = this.#parts;
    return this.#do(sql, binds, {
      read: (statement, guarded) => reading.all(statement, guarded),
      write: (statement, guarded) => writing.all(statement, guarded),
    });
  }

  async run(sql: string, binds: readonly Bind[] = []): Promise<number> {
    const { writing, reading } = this.#parts;
    return this.#do(sql, binds, {
      read: (statement, guarded) => reading.run(statement, guarded),
      write: (statement, guarded) => writing.run(statement, guarded),
    });
  }

  async transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    this.#refuse();
    const session = new SqliteSession(this.#parts.writing);
    return this.#writer.transaction(() => this.#transactions.perform(session, work));
  }

  async now(): Promise<number> {
    this.#refuse();
    return this.#read(() => readClock(this.#parts.reading));
  }

  /** What was queued is still written. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#writer.idle();
    this.#parts.reading.close();
    this.#parts.writing.close();
  }

  #do<T>(sql: string, binds: readonly Bind[], how: Ways<T>): Promise<T> {
    this.#refuse();
    const statement = parseStatement(sql);
    const guarded = guardBinds(binds, statement.placeholders);
    return statement.kind === 'read'
      ? this.#read(() => how.read(statement, guarded))
      : this.#writer.write(() => how.write(statement, guarded));
  }

  async #read<T>(step: () => T): Promise<T> {
    try {
      return await whenFree(step, this.#parts.clock);
    } catch (error) {
      throw toSqliteError(error);
    }
  }

  #refuse(): void {
    if (this.#closing !== undefined) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the database is closed');
    }
    this.#transactions.refuseInside();
  }
}

interface Ways<T> {
  readonly read: (statement: Statement, binds: readonly Bind[]) => T;
  readonly write: (statement: Statement, binds: readonly Bind[]) => T;
}

class SqliteSession implements TransactionSession {
  readonly #engine: SqliteEngine;

  constructor(engine: SqliteEngine) {
    this.#engine = engine;
  }

  async query(sql: string, binds: readonly Bind[]): Promise<readonly Row[]> {
    const statement = parseStatement(sql);
    return this.#attempt(() =>
      this.#engine.all(statement, guardBinds(binds, statement.placeholders)),
    );
  }

  async run(sql: string, binds: readonly Bind[]): Promise<number> {
    const statement = parseStatement(sql);
    return this.#attempt(() =>
      this.#engine.run(statement, guardBinds(binds, statement.placeholders)),
    );
  }

  async now(): Promise<number> {
    return this.#attempt(() => readClock(this.#engine));
  }

  /** Done, but not yet on disk: the writer commits it, with its neighbours. */
  async commit(): Promise<void> {
    try {
      this.#attempt(() => this.#engine.exec(SAVEPOINT.release));
    } catch (error) {
      await this.rollback();
      throw error;
    }
  }

  async rollback(): Promise<void> {
    if (!this.#engine.inTransaction) return;
    try {
      this.#engine.exec(SAVEPOINT.goBack);
      this.#engine.exec(SAVEPOINT.release);
    } catch {
      // With all of it undone, the writer does the neighbours again.
      this.#engine.exec('ROLLBACK');
    }
  }

  #attempt<T>(step: () => T): T {
    try {
      return step();
    } catch (error) {
      throw toSqliteError(error);
    }
  }
}

function readClock(engine: SqliteEngine): number {
  const [row] = engine.all(parseStatement(READ_CLOCK_SQL.sqlite), []);
  if (row === undefined) throw new AilsdError('INTERNAL', 'the database has no clock');
  return numberOf(row, 'now_ms');
}
