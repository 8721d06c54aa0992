/**
 * A transaction of conditional writes: each statement decides by itself, by the rows it changes and the unique indexes, so
 * that none of it rests on what was read before. PostgreSQL need not watch what such a transaction reads, and those
 * that merely touch the same pages don't undo each other.
 */
import type { Db } from './db.js';

export function rowTransaction<T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    if (tx.engine === 'postgres') await tx.run('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
    return work(tx);
  });
}
