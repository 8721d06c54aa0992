/** One PostgreSQL connection: statements in the store's SQL, rows in the store's types, errors in the store's codes. */
import type pg from 'pg';
import { AilsdError } from '../../protocol/errors.js';
import { guardBinds } from './bind-guard.js';
import type { Bind, Row } from './db.js';
import { READ_CLOCK_SQL } from './engine-clock.js';
import { isConnectionLoss, toPostgresError } from './postgres-errors.js';
import { numberOf, toRow } from './row.js';
import { parseStatement, type Statement } from './statement.js';
import type { TransactionSession } from './transaction.js';

export const STATEMENT_TIMEOUT_MS = 4_000;

export class PostgresSession implements TransactionSession {
  readonly #client: pg.PoolClient;
  /** Whether the connection may go back to the pool. */
  isUsable = true;

  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  async query(sql: string, binds: readonly Bind[]): Promise<readonly Row[]> {
    const result = await this.#execute(parseStatement(sql), binds);
    return result.rows.map(toRow);
  }

  async run(sql: string, binds: readonly Bind[]): Promise<number> {
    const statement = parseStatement(sql);
    const result = await this.#execute(statement, binds);
    return statement.kind === 'change' ? (result.rowCount ?? 0) : 0;
  }

  async now(): Promise<number> {
    const [row] = await this.query(READ_CLOCK_SQL.postgres, []);
    if (row === undefined) throw new AilsdError('INTERNAL', 'the database has no clock');
    return numberOf(row, 'now_ms');
  }

  async begin(): Promise<void> {
    await this.#say('BEGIN ISOLATION LEVEL SERIALIZABLE');
  }

  async commit(): Promise<void> {
    const { command } = await this.#say('COMMIT');
    // A transaction that had failed answers COMMIT with a rollback, and no error.
    if (command !== 'COMMIT') throw new AilsdError('INTERNAL', 'the transaction was undone');
  }

  async rollback(): Promise<void> {
    try {
      await this.#say('ROLLBACK');
    } catch {
      this.isUsable = false;
    }
  }

  #execute(statement: Statement, binds: readonly Bind[]): Promise<pg.QueryResult<object>> {
    return this.#say(statement.numberedSql, guardBinds(binds, statement.placeholders));
  }

  async #say(sql: string, binds: readonly Bind[] = []): Promise<pg.QueryResult<object>> {
    try {
      return await this.#client.query<object>(sql, [...binds]);
    } catch (error) {
      if (isConnectionLoss(error)) this.isUsable = false;
      throw toPostgresError(error);
    }
  }
}
