/** Counts attempts against a limit, for guesses and floods: one statement decides, by the database's clock. */
import type { Db } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { numberOf } from './row.js';

export type Taken =
  | { readonly kind: 'taken'; readonly count: number }
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

export class Attempts {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  /**
   * One more attempt of this bucket, unless its window has had its `limit`. A window begins with the first attempt
   * after the last one ended. What is refused is not counted, so insisting does not lengthen the wait.
   */
  async take(bucket: string, limit: number, windowMs: number): Promise<Taken> {
    const [taken] = await this.#db.query(this.#sql.take, [bucket, windowMs, limit, limit]);
    if (taken !== undefined) return { kind: 'taken', count: numberOf(taken, 'count') };
    const [held] = await this.#db.query(this.#sql.look, [bucket]);
    const leftMs = held === undefined ? windowMs : numberOf(held, 'left_ms');
    return { kind: 'limited', retryAfterMs: Math.max(leftMs, 1) };
  }

  /** Takes an attempt back that turned out to be a right one. */
  async giveBack(bucket: string): Promise<void> {
    await this.#db.run('UPDATE attempts SET count = count - 1 WHERE bucket = ? AND count > 0', [
      bucket,
    ]);
  }

  /** Removes up to `limit` windows that have ended; how many it were. */
  sweepExpired(limit: number): Promise<number> {
    return this.#db.run(this.#sql.sweep, [limit]);
  }
}

function statements(now: string) {
  return {
    // Of two at once the second sees what the first left; `excluded.starts_at` is its now.
    take: `INSERT INTO attempts (bucket, starts_at, ends_at, count)
      SELECT CAST(? AS TEXT), now_ms, now_ms + CAST(? AS BIGINT), 1
      FROM (SELECT ${now} AS now_ms) AS clock WHERE CAST(? AS BIGINT) > 0
      ON CONFLICT (bucket) DO UPDATE SET
        count = CASE WHEN attempts.ends_at <= excluded.starts_at THEN 1 ELSE attempts.count + 1 END,
        starts_at = CASE WHEN attempts.ends_at <= excluded.starts_at
          THEN excluded.starts_at ELSE attempts.starts_at END,
        ends_at = CASE WHEN attempts.ends_at <= excluded.starts_at
          THEN excluded.ends_at ELSE attempts.ends_at END
      WHERE attempts.ends_at <= excluded.starts_at OR attempts.count < CAST(? AS BIGINT)
      RETURNING count`,
    look: `SELECT ends_at - ${now} AS left_ms FROM attempts WHERE bucket = ?`,
    // The condition twice: a window that was begun anew after the choice stays. As a query of its own the time is asked
    // once, and an index can be searched by it.
    sweep: `DELETE FROM attempts WHERE ends_at <= (SELECT ${now}) AND bucket IN (
      SELECT bucket FROM attempts WHERE ends_at <= (SELECT ${now}) ORDER BY ends_at LIMIT ?)`,
  };
}
