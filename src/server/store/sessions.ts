/** Which thread holds which sandbox. That a thread has one open session at most is the table's own rule. */
import type { SandboxId, SessionId, ThreadId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';
import { type SandboxRecord, toSandbox } from './sandboxes.js';

export type ScopeType = 'thread' | 'workspace' | 'assistant' | 'deployment';

/** `released` by a caller, `expired` by its hard end, `failed` to start, `killed` by an administrator. */
export type SessionEnd = 'released' | 'expired' | 'failed' | 'killed';

export interface SessionRecord {
  readonly id: SessionId;
  readonly tenant: string;
  readonly threadId: ThreadId;
  readonly scopeType: ScopeType;
  readonly owner: string;
  readonly sandboxId: SandboxId;
  readonly createdAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly endReason: SessionEnd | undefined;
}

/** A session and what it holds, read in one step. */
export interface HeldSandbox {
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord;
  /** The database's, when they were read. */
  readonly nowMs: number;
}

export type NewSession = Pick<
  SessionRecord,
  'id' | 'tenant' | 'threadId' | 'scopeType' | 'owner' | 'sandboxId'
>;

export interface SessionScope {
  readonly tenant: string;
  readonly type: ScopeType;
  readonly id: string;
}

export class Sessions {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  async findOpen(scope: SessionScope): Promise<HeldSandbox | undefined> {
    const [row] = await this.#db.query(this.#sql.findOpen, [scope.tenant, scope.type, scope.id]);
    return row && toHeld(row);
  }

  /** Whether it has ended or not. */
  async find(id: string): Promise<HeldSandbox | undefined> {
    const [row] = await this.#db.query(this.#sql.find, [id]);
    return row && toHeld(row);
  }

  /** The open session that holds a sandbox. */
  async findBySandbox(sandboxId: string): Promise<HeldSandbox | undefined> {
    const [row] = await this.#db.query(this.#sql.findBySandbox, [sandboxId]);
    return row && toHeld(row);
  }

  /** `taken`: somebody else's session is open for this thread. */
  async add(session: NewSession): Promise<'added' | 'taken'> {
    const added = await this.#db.run(this.#sql.add, [
      session.id,
      session.tenant,
      session.threadId,
      session.scopeType,
      session.owner,
      session.sandboxId,
      await this.#db.now(),
    ]);
    return added === 1 ? 'added' : 'taken';
  }

  /** The caller's own that are open, by id; `after` is the last id of the page before. */
  async list(
    owner: { readonly tenant: string; readonly sub: string },
    page: {
      readonly limit: number;
      readonly after?: string | undefined;
      readonly threads?: readonly string[] | undefined;
    },
  ): Promise<readonly HeldSandbox[]> {
    const { threads } = page;
    const pinned =
      threads === undefined ? '' : `AND thread_id IN (${threads.map(() => '?').join(', ')})`;
    // The page is cut before the join: what it costs is its own length.
    const rows = await this.#db.query(
      `${this.#sql.columns} FROM (SELECT * FROM sessions
          WHERE tenant = ? AND owner = ? AND ended_at IS NULL AND id > ? ${pinned}
          ORDER BY id LIMIT ?) AS s JOIN sandboxes b ON b.id = s.sandbox_id ORDER BY s.id`,
      [owner.tenant, owner.sub, page.after ?? '', ...(threads ?? []), page.limit],
    );
    return rows.map(toHeld);
  }

  /** Whether this call ended it. */
  async end(id: SessionId, reason: SessionEnd): Promise<boolean> {
    return (await this.#db.run(this.#sql.end, [reason, id])) === 1;
  }

  /** Ends whatever holds the sandbox; the sessions that were ended. */
  async endAllOf(sandboxId: SandboxId, reason: SessionEnd): Promise<readonly SessionRecord[]> {
    const rows = await this.#db.query(this.#sql.endAllOf, [reason, sandboxId]);
    return rows.map((row) => toSession(row, ''));
  }

  async countOpenOf(sandboxId: SandboxId): Promise<number> {
    const [row] = await this.#db.query(this.#sql.countOpenOf, [sandboxId]);
    return row === undefined ? 0 : numberOf(row, 'held');
  }
}

function statements(now: string) {
  const columns = `SELECT b.*, s.id AS s_id, s.tenant AS s_tenant, s.thread_id AS s_thread_id,
      s.scope_type AS s_scope_type, s.owner AS s_owner, s.sandbox_id AS s_sandbox_id,
      s.created_at AS s_created_at, s.ended_at AS s_ended_at, s.end_reason AS s_end_reason, ${now} AS now_ms`;
  const select = `${columns} FROM sessions s JOIN sandboxes b ON b.id = s.sandbox_id`;
  return {
    columns,
    find: `${select} WHERE s.id = ?`,
    findOpen: `${select} WHERE s.tenant = ? AND s.scope_type = ? AND s.thread_id = ? AND s.ended_at IS NULL`,
    findBySandbox: `${select} WHERE s.sandbox_id = ? AND s.ended_at IS NULL`,
    add: `INSERT INTO sessions (id, tenant, thread_id, scope_type, owner, sandbox_id, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    end: `UPDATE sessions SET ended_at = ${now}, end_reason = ? WHERE id = ? AND ended_at IS NULL`,
    endAllOf: `UPDATE sessions SET ended_at = ${now}, end_reason = ?
      WHERE sandbox_id = ? AND ended_at IS NULL RETURNING *`,
    countOpenOf: 'SELECT COUNT(*) AS held FROM sessions WHERE sandbox_id = ? AND ended_at IS NULL',
  };
}

function toHeld(row: Row): HeldSandbox {
  return {
    session: toSession(row, 's_'),
    sandbox: toSandbox(row),
    nowMs: numberOf(row, 'now_ms'),
  };
}

function toSession(row: Row, prefix: '' | 's_'): SessionRecord {
  const reason = maybeTextOf(row, `${prefix}end_reason`);
  return {
    id: textOf(row, `${prefix}id`) as SessionId,
    tenant: textOf(row, `${prefix}tenant`),
    threadId: textOf(row, `${prefix}thread_id`) as ThreadId,
    scopeType: SCOPE_TYPES.find((type) => type === row[`${prefix}scope_type`]) ?? 'thread',
    owner: textOf(row, `${prefix}owner`),
    sandboxId: textOf(row, `${prefix}sandbox_id`) as SandboxId,
    createdAtMs: numberOf(row, `${prefix}created_at`),
    endedAtMs: maybeNumberOf(row, `${prefix}ended_at`),
    endReason: SESSION_ENDS.find((end) => end === reason),
  };
}

const SCOPE_TYPES = ['thread', 'workspace', 'assistant', 'deployment'] as const;
const SESSION_ENDS = ['released', 'expired', 'failed', 'killed'] as const;
