/** Snapshots of sandboxes' files: each is recorded before its provider makes it, and until its provider has removed it. */
import type { SandboxId, SessionId, SnapshotId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export interface NewSnapshot {
  readonly id: SnapshotId;
  readonly tenant: string;
  readonly owner: string;
  readonly sessionId: SessionId;
  readonly sandboxId: SandboxId;
  readonly name?: string | undefined;
}

export interface SnapshotRecord extends NewSnapshot {
  readonly sizeBytes: number | undefined;
  readonly createdAtMs: number;
}

/** One that nothing needs any more, and who holds it. */
export interface LeftSnapshot {
  readonly id: SnapshotId;
  readonly provider: string;
}

export class Snapshots {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  /**
   * Its provider has not made it yet; one that was given up may be begun again. `undefined`: this id is there, or being
   * made.
   */
  async begin(snapshot: NewSnapshot): Promise<SnapshotRecord | undefined> {
    const [row] = await this.#db.query(
      `INSERT INTO snapshots (id, tenant, owner, session_id, sandbox_id, name, state, created_at)
        VALUES (?, ?, ?, ?, ?, ?, 'making', ${this.#now})
        ON CONFLICT (id) DO UPDATE SET state = 'making', name = excluded.name, created_at = excluded.created_at
          WHERE snapshots.state = 'removed' RETURNING *`,
      [
        snapshot.id,
        snapshot.tenant,
        snapshot.owner,
        snapshot.sessionId,
        snapshot.sandboxId,
        snapshot.name ?? null,
      ],
    );
    return row && toSnapshot(row);
  }

  /** It is made. `undefined`: it was given up in the meantime. */
  async keep(id: SnapshotId, sizeBytes: number): Promise<SnapshotRecord | undefined> {
    const [row] = await this.#db.query(
      `UPDATE snapshots SET state = 'kept', size_bytes = ? WHERE id = ? AND state = 'making' RETURNING *`,
      [sizeBytes, id],
    );
    return row && toSnapshot(row);
  }

  async findKept(sessionId: SessionId, id: string): Promise<SnapshotRecord | undefined> {
    const [row] = await this.#db.query(
      "SELECT * FROM snapshots WHERE session_id = ? AND id = ? AND state = 'kept'",
      [sessionId, id],
    );
    return row && toSnapshot(row);
  }

  /** By id, those after `afterId` first: a page. */
  async list(
    sessionId: SessionId,
    limit: number,
    afterId = '',
  ): Promise<readonly SnapshotRecord[]> {
    const rows = await this.#db.query(
      `SELECT * FROM snapshots WHERE session_id = ? AND state = 'kept' AND id > ? ORDER BY id LIMIT ?`,
      [sessionId, afterId, limit],
    );
    return rows.map(toSnapshot);
  }

  /** Those that are there or being made. */
  async count(sessionId: SessionId): Promise<number> {
    const [row] = await this.#db.query(
      "SELECT COUNT(*) AS snapshots FROM snapshots WHERE session_id = ? AND state <> 'removed'",
      [sessionId],
    );
    return row === undefined ? 0 : numberOf(row, 'snapshots');
  }

  /** Of sessions that have ended, and those whose making nobody has heard of for `lostMs`. */
  async listLeft(lostMs: number, limit: number): Promise<readonly LeftSnapshot[]> {
    const rows = await this.#db.query(
      // Asked by subquery, so that every planner begins with the snapshots that are there, never with all sessions.
      `SELECT id, (SELECT provider FROM sandboxes WHERE sandboxes.id = snapshots.sandbox_id) AS provider
        FROM snapshots WHERE state <> 'removed'
          AND ((SELECT ended_at FROM sessions WHERE sessions.id = snapshots.session_id) IS NOT NULL
            OR (state = 'making' AND created_at <= (SELECT ${this.#now} - CAST(? AS BIGINT))))
        ORDER BY id LIMIT ?`,
      [lostMs, limit],
    );
    return rows.map((row) => ({
      id: textOf(row, 'id') as SnapshotId,
      provider: textOf(row, 'provider'),
    }));
  }

  /** Its provider holds nothing of it. */
  async markRemoved(id: SnapshotId): Promise<void> {
    await this.#db.run("UPDATE snapshots SET state = 'removed' WHERE id = ?", [id]);
  }
}

function toSnapshot(row: Row): SnapshotRecord {
  return {
    id: textOf(row, 'id') as SnapshotId,
    tenant: textOf(row, 'tenant'),
    owner: textOf(row, 'owner'),
    sessionId: textOf(row, 'session_id') as SessionId,
    sandboxId: textOf(row, 'sandbox_id') as SandboxId,
    name: maybeTextOf(row, 'name'),
    sizeBytes: maybeNumberOf(row, 'size_bytes'),
    createdAtMs: numberOf(row, 'created_at'),
  };
}
