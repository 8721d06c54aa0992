/** What was done under an `Idempotency-Key`: which session it led to, never a token. Kept a day, by the database's clock. */
import { IDEMPOTENCY_SECONDS } from '../../protocol/headers.js';
import type { SessionId } from '../../protocol/ids.js';
import type { Db } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeTextOf, textOf } from './row.js';

/** A key means something only to its caller, on one route. */
export interface IdempotencyKey {
  readonly caller: string;
  readonly route: string;
  readonly key: string;
  /** Of the request it came with. */
  readonly requestHash: string;
}

export type KnownKey =
  | { readonly kind: 'new' }
  | { readonly kind: 'other-request' }
  | { readonly kind: 'known'; readonly sessionId: SessionId };

export class Idempotency {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  async find({ caller, route, key, requestHash }: IdempotencyKey): Promise<KnownKey> {
    const [row] = await this.#db.query(this.#sql.find, [caller, route, key]);
    const sessionId = row && maybeTextOf(row, 'session_id');
    if (row === undefined || sessionId === undefined) return { kind: 'new' };
    if (textOf(row, 'request_hash') !== requestHash) return { kind: 'other-request' };
    return { kind: 'known', sessionId: sessionId as SessionId };
  }

  /** `replacing`: what it led to before and may be forgotten. False: somebody else has used the key meanwhile. */
  async record(
    { caller, route, key, requestHash }: IdempotencyKey,
    sessionId: SessionId,
    replacing?: SessionId,
  ): Promise<boolean> {
    const nowMs = await this.#db.now();
    const expiresMs = nowMs + IDEMPOTENCY_SECONDS * 1000;
    const recorded = await this.#db.run(this.#sql.record, [
      caller,
      route,
      key,
      requestHash,
      sessionId,
      nowMs,
      expiresMs,
      replacing ?? '',
    ]);
    return recorded === 1;
  }

  /** Removes the first `limit` that have run out, and those of the same moment; how many it were. */
  sweepExpired(limit: number): Promise<number> {
    return this.#db.run(this.#sql.sweep, [limit]);
  }
}

function statements(now: string) {
  return {
    find: `SELECT * FROM idempotency
      WHERE caller = ? AND route = ? AND idempotency_key = ? AND expires_at > ${now}`,
    record: `INSERT INTO idempotency
        (caller, route, idempotency_key, request_hash, session_id, created_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (caller, route, idempotency_key) DO UPDATE SET request_hash = excluded.request_hash,
        session_id = excluded.session_id, created_at = excluded.created_at,
        expires_at = excluded.expires_at
        WHERE idempotency.expires_at <= excluded.created_at OR idempotency.session_id = ?`,
    // As a query of its own the time is asked once, and an index can be searched by it.
    sweep: `DELETE FROM idempotency WHERE expires_at <= (SELECT MAX(expires_at) FROM (
      SELECT expires_at FROM idempotency WHERE expires_at <= (SELECT ${now})
      ORDER BY expires_at LIMIT ?) AS batch)`,
  };
}
