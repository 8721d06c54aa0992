/** The database's clock as an expression inside a statement, so that a decision and its time are one step. */
import type { Db } from './db.js';

/** Epoch milliseconds at the moment it is evaluated, not at the beginning of the transaction. */
export const NOW_SQL: Readonly<Record<Db['engine'], string>> = {
  sqlite: "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)",
  postgres: 'CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)',
};

export const READ_CLOCK_SQL: Readonly<Record<Db['engine'], string>> = {
  sqlite: `SELECT ${NOW_SQL.sqlite} AS now_ms`,
  postgres: `SELECT ${NOW_SQL.postgres} AS now_ms`,
};
