/** For transactions in which many meet at one row: they take turns there, and none of them has to begin again. */
import type { Db } from './db.js';

/**
 * To be the first thing in a transaction whose every decision is a conditional write of a single row. SQLite has one writer
 * anyway; PostgreSQL's own way would let all but one of them fail and try again.
 */
export async function takeTurnsAtRows(tx: Db): Promise<void> {
  if (tx.engine === 'postgres') await tx.run('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
}
