/** `sandbox_invocations`: what became of every call, and what it wrote. Nothing of it is changed; what has expired is removed. */
import type { InvocationId, SessionId, ThreadId } from '../../protocol/ids.js';
import { EXIT_STATUSES } from '../../protocol/shapes/code.js';
import type { ExitStatus } from './code-calls.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeTextOf, numberOf, textOf } from './row.js';

export interface InvocationRecord {
  readonly id: InvocationId;
  readonly createdAtMs: number;
  readonly tenant: string;
  readonly agentId: string;
  readonly owner: string;
  readonly sessionId: SessionId | undefined;
  readonly threadId: ThreadId;
  readonly turnId: string | undefined;
  readonly codeHash: string;
  readonly exitStatus: ExitStatus;
  readonly failureReason: string | undefined;
  readonly durationMs: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly isStdoutTruncated: boolean;
  readonly isStderrTruncated: boolean;
}

export type OutputStream = 'stdout' | 'stderr';

export class Invocations {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  async find(id: string): Promise<InvocationRecord | undefined> {
    const [row] = await this.#db.query('SELECT * FROM sandbox_invocations WHERE id = ?', [id]);
    return row && toInvocation(row);
  }

  /** By id; `after` is the last id of the page before. */
  async list(
    owner: { readonly tenant: string; readonly sub: string },
    page: {
      readonly limit: number;
      readonly after?: string | undefined;
      readonly threadId?: string | undefined;
    },
  ): Promise<readonly InvocationRecord[]> {
    const { threadId } = page;
    const rows = await this.#db.query(
      `SELECT * FROM sandbox_invocations WHERE tenant_id = ? AND owner = ? AND id > ?
        ${threadId === undefined ? '' : 'AND thread_id = ?'} ORDER BY id LIMIT ?`,
      [
        owner.tenant,
        owner.sub,
        page.after ?? '',
        ...(threadId === undefined ? [] : [threadId]),
        page.limit,
      ],
    );
    return rows.map(toInvocation);
  }

  async addOutput(
    id: InvocationId,
    piece: { readonly stream: OutputStream; readonly position: number; readonly data: Uint8Array },
    retentionDays: number,
  ): Promise<void> {
    await this.#db.run(
      `INSERT INTO sandbox_invocation_outputs (invocation_id, stream, position, data, expires_at)
        VALUES (?, ?, ?, ?, ${this.#now} + CAST(? AS BIGINT))`,
      [id, piece.stream, piece.position, piece.data, retentionDays * DAY_MS],
    );
  }

  /** All of a stream, a piece at a time. */
  async *output(id: InvocationId, stream: OutputStream): AsyncGenerator<Uint8Array> {
    for (let after = -1; ; ) {
      const [row] = await this.#db.query(
        `SELECT position, data FROM sandbox_invocation_outputs
          WHERE invocation_id = ? AND stream = ? AND position > ? ORDER BY position LIMIT 1`,
        [id, stream, after],
      );
      const data = row?.['data'];
      if (row === undefined || !(data instanceof Uint8Array)) return;
      yield data;
      after = numberOf(row, 'position');
    }
  }

  /** Removes up to `limit` whose time is over, with what they wrote; how many it were. */
  async purge(limit: number): Promise<number> {
    await this.#db.run(`DELETE FROM sandbox_invocation_outputs WHERE expires_at <= ${this.#now}`);
    return this.#db.run(
      `DELETE FROM sandbox_invocations WHERE id IN (
        SELECT id FROM sandbox_invocations WHERE expires_at <= (SELECT ${this.#now})
          ORDER BY expires_at LIMIT ?)`,
      [limit],
    );
  }
}

const DAY_MS = 86_400_000;

function toInvocation(row: Row): InvocationRecord {
  return {
    id: textOf(row, 'id') as InvocationId,
    createdAtMs: numberOf(row, 'created_at'),
    tenant: textOf(row, 'tenant_id'),
    agentId: textOf(row, 'agent_id'),
    owner: textOf(row, 'owner'),
    sessionId: maybeTextOf(row, 'session_id') as SessionId | undefined,
    threadId: textOf(row, 'thread_id') as ThreadId,
    turnId: maybeTextOf(row, 'turn_id'),
    codeHash: textOf(row, 'executed_code_hash'),
    exitStatus: EXIT_STATUSES.find((status) => status === row['exit_status']) ?? 'error',
    failureReason: maybeTextOf(row, 'failure_reason'),
    durationMs: numberOf(row, 'duration_ms'),
    stdoutBytes: numberOf(row, 'stdout_bytes'),
    stderrBytes: numberOf(row, 'stderr_bytes'),
    isStdoutTruncated: numberOf(row, 'stdout_truncated') === 1,
    isStderrTruncated: numberOf(row, 'stderr_truncated') === 1,
  };
}
