/** What the issuer's library keeps: codes, tokens, grants, sessions. Single use and pace are decided here, by the database. */
import { isStorable } from './bind-guard.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { fieldsOf, maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export interface OidcPayload {
  /** The library's name for what it is, such as `DeviceCode`. */
  readonly kind: string;
  /** For what is a bearer secret, the caller's digest of it: what is stored for lookup is a hash. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly grantId?: string | undefined;
  readonly userCode?: string | undefined;
  readonly uid?: string | undefined;
  /** From now; without it the payload stays until it is destroyed. */
  readonly expiresInMs?: number | undefined;
}

export interface StoredPayload extends Omit<OidcPayload, 'expiresInMs'> {
  readonly createdAtMs: number;
  readonly consumedAtMs: number | undefined;
  readonly expiresAtMs: number | undefined;
  /** By the database's clock. Expired ones are found until they are swept, so that an answer can say what they were. */
  readonly isExpired: boolean;
}

export type Consumed =
  | { readonly kind: 'consumed' }
  | { readonly kind: 'spent' }
  | { readonly kind: 'missing' };

/** How often a device code may be asked for, RFC 8628 §3.5. */
export interface PollRule {
  readonly gapMs: number;
  /** What an early poll adds to the gap, for good. */
  readonly growMs: number;
  /** By how much a poll may come early without counting as such: timers and networks are not exact. */
  readonly toleranceMs: number;
}

export type Poll =
  | { readonly kind: 'due' }
  | { readonly kind: 'early'; readonly gapMs: number }
  | { readonly kind: 'missing' };

export class OidcPayloads {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  /** Again for the same id it replaces what was said, but never makes the consumed unconsumed or forgets the pace. */
  async upsert(payload: OidcPayload): Promise<void> {
    await this.#db.run(this.#sql.upsert, [
      payload.kind,
      payload.id,
      JSON.stringify(payload.payload),
      payload.grantId ?? null,
      payload.userCode ?? null,
      payload.uid ?? null,
      payload.expiresInMs ?? null,
    ]);
  }

  find(kind: string, id: string): Promise<StoredPayload | undefined> {
    return this.#findOne(this.#sql.find, kind, id);
  }

  findByUserCode(kind: string, userCode: string): Promise<StoredPayload | undefined> {
    return this.#findOne(this.#sql.findByUserCode, kind, userCode);
  }

  findByUid(kind: string, uid: string): Promise<StoredPayload | undefined> {
    return this.#findOne(this.#sql.findByUid, kind, uid);
  }

  /** The latest first, at most `limit`; those that have expired are left out. */
  async listByUid(kind: string, uid: string, limit: number): Promise<readonly StoredPayload[]> {
    if (!isStorable(uid)) return [];
    return (await this.#db.query(this.#sql.listByUid, [kind, uid, limit])).map(toStored);
  }

  /** The ids of all grants that are `uid`'s, those that have expired included. */
  async grantsOf(uid: string): Promise<readonly string[]> {
    const rows = await this.#db.query(
      "SELECT id FROM oidc_payloads WHERE kind = 'Grant' AND uid = ?",
      [uid],
    );
    return rows.map((row) => textOf(row, 'id'));
  }

  /** When something of one of these kinds was last made for each grant that is `uid`'s. */
  async lastMade(uid: string, kinds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (!isStorable(uid)) return new Map();
    const marks = kinds.map(() => '?').join(', ');
    const rows = await this.#db.query(
      `SELECT grant_id, MAX(created_at) AS last_at FROM oidc_payloads WHERE kind IN (${marks})
        AND grant_id IN (SELECT id FROM oidc_payloads WHERE kind = 'Grant' AND uid = ?)
        GROUP BY grant_id`,
      [...kinds, uid],
    );
    return new Map(rows.map((row) => [textOf(row, 'grant_id'), numberOf(row, 'last_at')]));
  }

  /** Of any number of callers on any number of replicas exactly one gets `consumed`. */
  async consume(kind: string, id: string): Promise<Consumed> {
    const [consumed] = await this.#db.query(this.#sql.consume, [kind, id]);
    if (consumed !== undefined) return { kind: 'consumed' };
    return { kind: (await this.find(kind, id)) === undefined ? 'missing' : 'spent' };
  }

  /**
   * Whether a poll comes at the right pace. A `due` one begins the next gap; an `early` one makes the gap longer and
   * leaves its beginning where it was, so that a client which then waits as long as it was told is in time.
   */
  async poll(kind: string, id: string, rule: PollRule): Promise<Poll> {
    const [due] = await this.#db.query(this.#sql.pollDue, [
      rule.gapMs,
      kind,
      id,
      rule.gapMs,
      rule.toleranceMs,
    ]);
    if (due !== undefined) return { kind: 'due' };
    const [early] = await this.#db.query(this.#sql.pollEarly, [rule.gapMs, rule.growMs, kind, id]);
    if (early === undefined) return { kind: 'missing' };
    return { kind: 'early', gapMs: numberOf(early, 'poll_gap_ms') };
  }

  async destroy(kind: string, id: string): Promise<void> {
    await this.#db.run('DELETE FROM oidc_payloads WHERE kind = ? AND id = ?', [kind, id]);
  }

  /** Removes everything that hangs on a grant; how much it was. */
  revokeByGrantId(grantId: string): Promise<number> {
    return this.#db.run('DELETE FROM oidc_payloads WHERE grant_id = ?', [grantId]);
  }

  /** Ends a login: its grant, and everything that hangs on it. Whether there was one. */
  async endGrant(grantId: string): Promise<boolean> {
    const ended = await this.#db.run("DELETE FROM oidc_payloads WHERE kind = 'Grant' AND id = ?", [
      grantId,
    ]);
    await this.revokeByGrantId(grantId);
    return ended === 1;
  }

  /** Removes up to `limit` payloads that expired at least `graceMs` ago; how many it were. */
  sweepExpired(limit: number, graceMs: number): Promise<number> {
    return this.#db.run(this.#sql.sweep, [graceMs, graceMs, limit]);
  }

  async #findOne(sql: string, kind: string, key: string): Promise<StoredPayload | undefined> {
    if (!isStorable(key)) return undefined;
    const [row] = await this.#db.query(sql, [kind, key]);
    return row === undefined ? undefined : toStored(row);
  }
}

function toStored(row: Row): StoredPayload {
  return {
    kind: textOf(row, 'kind'),
    id: textOf(row, 'id'),
    payload: fieldsOf(row, 'payload'),
    grantId: maybeTextOf(row, 'grant_id'),
    userCode: maybeTextOf(row, 'user_code'),
    uid: maybeTextOf(row, 'uid'),
    createdAtMs: numberOf(row, 'created_at'),
    consumedAtMs: maybeNumberOf(row, 'consumed_at'),
    expiresAtMs: maybeNumberOf(row, 'expires_at'),
    isExpired: numberOf(row, 'is_expired') === 1,
  };
}

function statements(now: string) {
  const select = `SELECT kind, id, payload, grant_id, user_code, uid, created_at, consumed_at, expires_at,
    CASE WHEN expires_at <= ${now} THEN 1 ELSE 0 END AS is_expired FROM oidc_payloads`;
  return {
    find: `${select} WHERE kind = ? AND id = ?`,
    findByUserCode: `${select} WHERE kind = ? AND user_code = ?`,
    findByUid: `${select} WHERE kind = ? AND uid = ? ORDER BY created_at DESC LIMIT 1`,
    listByUid: `${select} WHERE kind = ? AND uid = ? AND (expires_at IS NULL OR expires_at > ${now})
      ORDER BY created_at DESC, id LIMIT ?`,
    upsert: `INSERT INTO oidc_payloads
        (kind, id, payload, grant_id, user_code, uid, created_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ${now}, ${now} + CAST(? AS BIGINT))
      ON CONFLICT (kind, id) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id,
        user_code = excluded.user_code, uid = excluded.uid, expires_at = excluded.expires_at`,
    consume: `UPDATE oidc_payloads SET consumed_at = ${now}
      WHERE kind = ? AND id = ? AND consumed_at IS NULL RETURNING consumed_at`,
    pollDue: `UPDATE oidc_payloads SET last_poll_at = ${now}, poll_gap_ms = COALESCE(poll_gap_ms, ?)
      WHERE kind = ? AND id = ? AND (last_poll_at IS NULL
        OR ${now} >= last_poll_at + COALESCE(poll_gap_ms, ?) - CAST(? AS BIGINT))
      RETURNING last_poll_at`,
    pollEarly: `UPDATE oidc_payloads SET poll_gap_ms = COALESCE(poll_gap_ms, ?) + ?
      WHERE kind = ? AND id = ? RETURNING poll_gap_ms`,
    // The condition twice: what was given a new life after the choice stays. As a query of its own the time is asked once,
    // and an index can be searched by it.
    sweep: `DELETE FROM oidc_payloads WHERE expires_at <= (SELECT ${now} - CAST(? AS BIGINT))
      AND (kind, id) IN (SELECT kind, id FROM oidc_payloads
        WHERE expires_at <= (SELECT ${now} - CAST(? AS BIGINT)) ORDER BY expires_at LIMIT ?)`,
  };
}
