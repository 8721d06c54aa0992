/** A synchronous SQLite connection, whichever library brings it. */
import type { Bind, Row } from './db.js';
import type { Statement } from './statement.js';

export interface SqliteEngine {
  readonly library: SqliteLibrary;
  /** Runs to the end, and so leaves no statement open that would hold a snapshot or keep a commit from happening. */
  all(statement: Statement, binds: readonly Bind[]): readonly Row[];
  run(statement: Statement, binds: readonly Bind[]): number;
  /** What has no values and no rows: BEGIN, COMMIT, settings. */
  exec(sql: string): void;
  readonly inTransaction: boolean;
  close(): void;
}

export type SqliteLibrary = 'node:sqlite' | 'libsql';

/** How many prepared statements a connection keeps. */
export const MAX_PREPARED_STATEMENTS = 128;

/** Whole numbers go in as such: as floating point they would become `1.0` in a column of text. */
export function toSqliteBind(bind: Bind): Bind {
  return typeof bind === 'number' && Number.isSafeInteger(bind) ? BigInt(bind) : bind;
}
