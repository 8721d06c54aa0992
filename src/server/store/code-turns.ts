/** Sessions that a turn of an agent made for itself: how many calls are in each, and whether it has ended. One row decides. */
import type { SandboxId, SessionId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export interface CodeTurn {
  readonly sessionId: SessionId;
  readonly sandboxId: SandboxId;
  /** Absent: a turn of one call. */
  readonly turnId: string | undefined;
  readonly openCalls: number;
}

export class CodeTurns {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  /** In the transaction that makes the session. */
  async add(turn: Omit<CodeTurn, 'openCalls'>): Promise<void> {
    await this.#db.run(
      `INSERT INTO code_turns (session_id, sandbox_id, turn_id, open_calls, last_call_at)
        VALUES (?, ?, ?, 0, ${this.#now})`,
      [turn.sessionId, turn.sandboxId, turn.turnId ?? null],
    );
  }

  /** Whose session that is, if it is a turn's that goes on. */
  async find(sessionId: SessionId): Promise<CodeTurn | undefined> {
    const [row] = await this.#db.query(
      'SELECT * FROM code_turns WHERE session_id = ? AND ended_at IS NULL',
      [sessionId],
    );
    return row && toTurn(row);
  }

  /** Whether this ended it: no call is in it. From then on nobody joins it. */
  async end(sessionId: SessionId): Promise<boolean> {
    const ended = await this.#db.run(
      `UPDATE code_turns SET ended_at = ${this.#now}
        WHERE session_id = ? AND ended_at IS NULL AND open_calls = 0`,
      [sessionId],
    );
    return ended === 1;
  }

  /**
   * Whether anybody but calls has a token for the session. `perhaps`: one so new that it may be of a call which is about to
   * join.
   */
  async isShared(sessionId: SessionId): Promise<'yes' | 'no' | 'perhaps'> {
    const [row] = await this.#db.query(
      `SELECT MIN(issued_at) AS since, ${this.#now} AS now_ms FROM issued_tokens WHERE session_id = ?
        AND NOT EXISTS (SELECT 1 FROM code_tokens
          WHERE code_tokens.session_id = issued_tokens.session_id AND code_tokens.jti = issued_tokens.jti)`,
      [sessionId],
    );
    const sinceMs = row && maybeNumberOf(row, 'since');
    if (row === undefined || sinceMs === undefined) return 'no';
    return numberOf(row, 'now_ms') - sinceMs < NEW_TOKEN_MS ? 'perhaps' : 'yes';
  }

  /** Turns without a call for so long: shorter for those of a single call, which is over. */
  async idle(idleMs: number, singleMs: number, limit: number): Promise<readonly CodeTurn[]> {
    const rows = await this.#db.query(
      `SELECT * FROM code_turns WHERE ended_at IS NULL AND open_calls = 0
          AND last_call_at <= (SELECT ${this.#now}) -
            CASE WHEN turn_id IS NULL THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END
        ORDER BY last_call_at LIMIT ?`,
      [singleMs, idleMs, limit],
    );
    return rows.map(toTurn);
  }

  /** What ended long ago. */
  async sweep(ageMs: number): Promise<void> {
    const old = `ended_at <= ${this.#now} - CAST(? AS BIGINT)`;
    await this.#db.run(
      `DELETE FROM code_tokens WHERE session_id IN (SELECT session_id FROM code_turns WHERE ${old})`,
      [ageMs],
    );
    await this.#db.run(`DELETE FROM code_turns WHERE ${old}`, [ageMs]);
  }
}

/** A call joins within this after its token was made. */
const NEW_TOKEN_MS = 5_000;

/** One call more. `other`: the session is no turn's, or no longer a turn's alone. */
export async function joinTurn(
  tx: Db,
  sessionId: SessionId,
  jti: string,
): Promise<'joined' | 'ended' | 'other'> {
  const now = NOW_SQL[tx.engine];
  const joined = await tx.run(
    `UPDATE code_turns SET open_calls = open_calls + 1, last_call_at = ${now}
      WHERE session_id = ? AND ended_at IS NULL`,
    [sessionId],
  );
  if (joined === 1) {
    await tx.run('INSERT INTO code_tokens (session_id, jti) VALUES (?, ?)', [sessionId, jti]);
    return 'joined';
  }
  const [row] = await tx.query('SELECT ended_at FROM sessions WHERE id = ?', [sessionId]);
  return row?.['ended_at'] === null ? 'other' : 'ended';
}

export async function endCallOfTurn(tx: Db, sessionId: string): Promise<void> {
  const now = NOW_SQL[tx.engine];
  await tx.run(
    `UPDATE code_turns SET open_calls = open_calls - 1, last_call_at = ${now} WHERE session_id = ?`,
    [sessionId],
  );
}

function toTurn(row: Row): CodeTurn {
  return {
    sessionId: textOf(row, 'session_id') as SessionId,
    sandboxId: textOf(row, 'sandbox_id') as SandboxId,
    turnId: maybeTextOf(row, 'turn_id'),
    openCalls: numberOf(row, 'open_calls'),
  };
}
