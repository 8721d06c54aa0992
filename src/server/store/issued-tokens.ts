/** Every sandbox token that was issued, by `jti`, never the token itself: for whom, what for, and when it stops counting. */
import type { Act } from '../../protocol/claims.js';
import type { GrantId, SandboxId, SessionId, TokenId } from '../../protocol/ids.js';
import { LEEWAY_SECONDS } from '../../protocol/lifetimes.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { fieldsOf, maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export interface NewIssuedToken {
  readonly jti: TokenId;
  readonly tenant: string;
  readonly sandboxId: SandboxId;
  readonly sessionId: SessionId;
  readonly subject: string;
  readonly act?: Act | undefined;
  readonly clientId: string;
  /** Canonical capabilities with one space between. */
  readonly scope: string;
  readonly keyGeneration: number;
  /** By which it was let in; deleting the grant ends it. */
  readonly grantId?: GrantId | undefined;
  /** Of which it is a narrower copy; ending that one ends it. */
  readonly parent?: TokenId | undefined;
  /** However often it is refreshed, it never counts after this. */
  readonly notAfterMs?: number | undefined;
  /** Of an opaque token. */
  readonly hash?: string | undefined;
}

export interface IssuedToken extends NewIssuedToken {
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly replacedBy: TokenId | undefined;
  /** It does not count from here on, though it has not expired. */
  readonly endsAtMs: number | undefined;
}

export interface EndedToken {
  readonly jti: TokenId;
  readonly fromMs: number;
  readonly untilMs: number;
}

export class IssuedTokens {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  /** Issued now by the database's clock, in whole seconds as its claims have them, and at most until `notAfterMs`. */
  async add(
    token: NewIssuedToken,
    lifeSeconds: number,
  ): Promise<{ readonly issuedAtMs: number; readonly expiresAtMs: number }> {
    const notAfter = token.notAfterMs ?? null;
    const [row] = await this.#db.query(
      `INSERT INTO issued_tokens (jti, tenant, sandbox_id, session_id, subject, act, client_id, scope,
          key_generation, grant_id, parent, not_after, hash, issued_at, expires_at)
        SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
          CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),
          CAST(? AS TEXT), at_ms,
          CASE WHEN CAST(? AS BIGINT) < at_ms + CAST(? AS BIGINT)
            THEN CAST(? AS BIGINT) ELSE at_ms + CAST(? AS BIGINT) END
        FROM (SELECT ${this.#now} / 1000 * 1000 AS at_ms) AS clock
        RETURNING issued_at, expires_at`,
      [
        token.jti,
        token.tenant,
        token.sandboxId,
        token.sessionId,
        token.subject,
        token.act === undefined ? null : JSON.stringify(token.act),
        token.clientId,
        token.scope,
        token.keyGeneration,
        token.grantId ?? null,
        token.parent ?? null,
        notAfter,
        token.hash ?? null,
        notAfter,
        lifeSeconds * 1000,
        notAfter,
        lifeSeconds * 1000,
      ],
    );
    if (row === undefined) throw new Error('a row that was added was not given back');
    return { issuedAtMs: numberOf(row, 'issued_at'), expiresAtMs: numberOf(row, 'expires_at') };
  }

  async find(jti: string): Promise<IssuedToken | undefined> {
    const [row] = await this.#db.query('SELECT * FROM issued_tokens WHERE jti = ?', [jti]);
    return row === undefined ? undefined : toToken(row);
  }

  async findByHash(hash: string): Promise<IssuedToken | undefined> {
    const [row] = await this.#db.query('SELECT * FROM issued_tokens WHERE hash = ?', [hash]);
    return row === undefined ? undefined : toToken(row);
  }

  /** What the subject holds of a session and was neither replaced nor ended; the newest first, at most `limit`. */
  async listHeld(
    sessionId: SessionId,
    subject: string,
    limit: number,
  ): Promise<readonly IssuedToken[]> {
    const rows = await this.#db.query(
      `SELECT * FROM issued_tokens WHERE session_id = ? AND subject = ? AND expires_at > ${this.#now}
        AND replaced_by IS NULL AND ends_at IS NULL ORDER BY expires_at DESC, jti DESC LIMIT ?`,
      [sessionId, subject, limit],
    );
    return rows.map(toToken);
  }

  /**
   * Ends a token in favour of another, after an overlap. Of several at once that replace the same one, one does: the
   * others are told, and what they made stands beside it.
   */
  async replace(jti: TokenId, by: TokenId, overlapMs: number): Promise<boolean> {
    const changed = await this.#db.run(
      `UPDATE issued_tokens SET replaced_by = ?, ends_at = ${this.#now} + CAST(? AS BIGINT)
        WHERE jti = ? AND replaced_by IS NULL AND (ends_at IS NULL OR ends_at > ${this.#now})`,
      [by, overlapMs, jti],
    );
    return changed === 1;
  }

  /** Until the transaction ends nobody can end it. False: it has ended already. */
  async hold(jti: TokenId): Promise<boolean> {
    const held = await this.#db.run(
      `UPDATE issued_tokens SET jti = jti WHERE jti = ? AND (ends_at IS NULL OR ends_at > ${this.#now})`,
      [jti],
    );
    return held === 1;
  }

  /** Each of these ends tokens at once, and says how many it were. A token takes its narrower copies with it. */
  end(jti: TokenId): Promise<number> {
    return this.#end(`jti IN (${FAMILY})`, jti);
  }

  endByGrant(grantId: GrantId): Promise<number> {
    // A narrower copy carries the grant of what it was made from.
    return this.#end('grant_id = ?', grantId);
  }

  /** What is in force under the old grant goes on under the new one. */
  async moveToGrant(from: GrantId, to: GrantId): Promise<void> {
    await this.#db.run('UPDATE issued_tokens SET grant_id = ? WHERE grant_id = ?', [to, from]);
  }

  /** Those of this key that have ended and would count otherwise, and opaque ones of any key. */
  async listEnded(
    sandboxId: SandboxId,
    keyGeneration: number,
    limit: number,
  ): Promise<readonly EndedToken[]> {
    const rows = await this.#db.query(
      `SELECT jti, issued_at, expires_at, ends_at FROM issued_tokens
        WHERE sandbox_id = ? AND expires_at > ${this.#now} - ${LEEWAY_MS}
          AND ((ends_at IS NOT NULL AND (key_generation = ? OR hash IS NOT NULL))
            OR (hash IS NOT NULL AND key_generation <> ?))
        ORDER BY expires_at, jti LIMIT ?`,
      [sandboxId, keyGeneration, keyGeneration, limit],
    );
    return rows.map((row) => ({
      jti: textOf(row, 'jti') as TokenId,
      fromMs: maybeNumberOf(row, 'ends_at') ?? numberOf(row, 'issued_at'),
      untilMs: numberOf(row, 'expires_at') + LEEWAY_MS,
    }));
  }

  /** Those that no change of key takes off the list of ended ones. What is not known here counts no more. */
  async forgetUnlistable(sandboxId: SandboxId): Promise<void> {
    await this.#db.run(
      'DELETE FROM issued_tokens WHERE sandbox_id = ? AND (ends_at IS NOT NULL OR hash IS NOT NULL)',
      [sandboxId],
    );
  }

  /** Removes up to `limit` that expired at least `ageMs` ago; how many it were. */
  sweepExpired(ageMs: number, limit: number): Promise<number> {
    return this.#db.run(
      // As a query of its own the time is asked once, and an index can be searched by it.
      `DELETE FROM issued_tokens WHERE expires_at <= (SELECT MAX(expires_at) FROM (
        SELECT expires_at FROM issued_tokens WHERE expires_at <= (SELECT ${this.#now} - CAST(? AS BIGINT))
          ORDER BY expires_at LIMIT ?) AS batch)`,
      [ageMs, limit],
    );
  }

  #end(condition: string, bind: string): Promise<number> {
    return this.#db.run(
      `UPDATE issued_tokens SET ends_at = ${this.#now} WHERE ${condition}
        AND (ends_at IS NULL OR ends_at > ${this.#now}) AND expires_at > ${this.#now} - ${LEEWAY_MS}`,
      [bind],
    );
  }
}

const LEEWAY_MS = LEEWAY_SECONDS.sandbox * 1000;

/** A token, the copies that were made of it, and the copies of those. */
const FAMILY = `WITH RECURSIVE family (jti) AS (
    SELECT CAST(? AS TEXT)
    UNION SELECT copy.jti FROM issued_tokens copy JOIN family ON copy.parent = family.jti
  ) SELECT jti FROM family`;

function toToken(row: Row): IssuedToken {
  return {
    jti: textOf(row, 'jti') as TokenId,
    tenant: textOf(row, 'tenant'),
    sandboxId: textOf(row, 'sandbox_id') as SandboxId,
    sessionId: textOf(row, 'session_id') as SessionId,
    subject: textOf(row, 'subject'),
    act: row['act'] === null ? undefined : toAct(fieldsOf(row, 'act')),
    clientId: textOf(row, 'client_id'),
    scope: textOf(row, 'scope'),
    keyGeneration: numberOf(row, 'key_generation'),
    grantId: maybeTextOf(row, 'grant_id') as GrantId | undefined,
    parent: maybeTextOf(row, 'parent') as TokenId | undefined,
    notAfterMs: maybeNumberOf(row, 'not_after'),
    hash: maybeTextOf(row, 'hash'),
    issuedAtMs: numberOf(row, 'issued_at'),
    expiresAtMs: numberOf(row, 'expires_at'),
    replacedBy: maybeTextOf(row, 'replaced_by') as TokenId | undefined,
    endsAtMs: maybeNumberOf(row, 'ends_at'),
  };
}

function toAct(fields: object): Act {
  const { sub, client_id, act }: { sub?: unknown; client_id?: unknown; act?: unknown } = fields;
  return {
    sub: String(sub),
    ...(typeof client_id === 'string' && { client_id }),
    ...(typeof act === 'object' && act !== null && { act: toAct(act) }),
  };
}
