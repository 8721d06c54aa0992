/** Invites by their hash: for what each was made, and that each was used once. Those others made with our secret appear when used. */
import type { SessionId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeTextOf } from './row.js';

/** Absent in an invite that was not made here. */
export interface InviteOrigin {
  readonly tenant: string;
  readonly sessionId: SessionId;
  /** Who asked for it; the invite itself may name a run instead. */
  readonly issuedTo: string;
  readonly actor: string | undefined;
  readonly clientId: string;
}

export type UsedInvite =
  | { readonly kind: 'used'; readonly origin: InviteOrigin | undefined }
  /** Somebody was faster. */
  | { readonly kind: 'spent' };

export class Invites {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  async add(hash: string, expiresAtMs: number, origin: InviteOrigin): Promise<void> {
    await this.#db.run(
      `INSERT INTO invites (hash, tenant, session_id, issued_to, actor, client_id, expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [
        hash,
        origin.tenant,
        origin.sessionId,
        origin.issuedTo,
        origin.actor ?? null,
        origin.clientId,
        expiresAtMs,
      ],
    );
  }

  /** One statement: of any number at once, one uses it. */
  async use(hash: string, expiresAtMs: number): Promise<UsedInvite> {
    const [row] = await this.#db.query(
      `INSERT INTO invites (hash, expires_at, used_at) VALUES (?, ?, ${this.#now})
        ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at WHERE invites.used_at IS NULL
        RETURNING *`,
      [hash, expiresAtMs],
    );
    return row === undefined ? { kind: 'spent' } : { kind: 'used', origin: toOrigin(row) };
  }

  /** Removes up to `limit` that expired at least `ageMs` ago; how many it were. */
  sweepExpired(ageMs: number, limit: number): Promise<number> {
    return this.#db.run(
      // As a query of its own the time is asked once; and with it said twice, an index is searched by it for both.
      `DELETE FROM invites WHERE expires_at <= (SELECT ${this.#now} - CAST(? AS BIGINT)) AND hash IN (
        SELECT hash FROM invites WHERE expires_at <= (SELECT ${this.#now} - CAST(? AS BIGINT))
          ORDER BY expires_at LIMIT ?)`,
      [ageMs, ageMs, limit],
    );
  }
}

function toOrigin(row: Row): InviteOrigin | undefined {
  const tenant = maybeTextOf(row, 'tenant');
  const sessionId = maybeTextOf(row, 'session_id');
  const issuedTo = maybeTextOf(row, 'issued_to');
  const clientId = maybeTextOf(row, 'client_id');
  if (!tenant || !sessionId || !issuedTo || !clientId) return undefined;
  const actor = maybeTextOf(row, 'actor');
  return { tenant, sessionId: sessionId as SessionId, issuedTo, actor, clientId };
}
