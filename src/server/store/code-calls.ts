/**
 * Calls of code under way: each is recorded before anything is done for it, held by the replica that works on it, and
 * becomes a row of `sandbox_invocations` when it ends, whoever writes that.
 */
import type { InvocationId, SandboxId, SessionId, ThreadId } from '../../protocol/ids.js';
import type { EXIT_STATUSES } from '../../protocol/shapes/code.js';
import { endCallOfTurn, joinTurn } from './code-turns.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeTextOf, numberOf, textOf } from './row.js';
import { takeTurnsAtRows } from './row-turns.js';

export type ExitStatus = (typeof EXIT_STATUSES)[number];
export type Via = 'code' | 'execute' | 'computer';

export interface NewCall {
  readonly id: InvocationId;
  readonly tenant: string;
  /** As the row will name it. */
  readonly agentId: string;
  /** Whose it is, and who may read of it later. */
  readonly owner: string;
  readonly clientId: string;
  readonly threadId: ThreadId;
  readonly turnId: string | undefined;
  readonly via: Via;
  readonly language: string | undefined;
  readonly requestId: string;
  /** SHA-256. */
  readonly codeHash: string;
}

export interface OpenCall {
  readonly id: InvocationId;
  readonly sessionId: SessionId | undefined;
  readonly startedAtMs: number;
}

/** How a call ended. */
export interface CallEnd {
  readonly exitStatus: ExitStatus;
  readonly exitCode?: number | undefined;
  readonly failureReason?: string | undefined;
  readonly durationMs: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly isStdoutTruncated: boolean;
  readonly isStderrTruncated: boolean;
  readonly retentionDays: number;
}

export class CodeCalls {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  async begin(call: NewCall, holder: string, holdMs: number): Promise<void> {
    await this.#db.run(this.#sql.begin, [
      call.id,
      call.tenant,
      call.agentId,
      call.owner,
      call.clientId,
      call.threadId,
      call.turnId ?? null,
      call.via,
      call.language ?? null,
      call.requestId,
      call.codeHash,
      holder,
      holdMs,
    ]);
  }

  /** All calls of a replica that is alive. */
  async renew(holder: string, holdMs: number): Promise<void> {
    await this.#db.run(this.#sql.renew, [holdMs, holder]);
  }

  /**
   * Where it runs, by which token. `gone`: the session was a turn's and has ended. Not to be called in a transaction.
   */
  async join(
    id: InvocationId,
    place: { readonly sessionId: SessionId; readonly sandboxId: SandboxId; readonly jti: string },
  ): Promise<'joined' | 'gone'> {
    const { sessionId, sandboxId, jti } = place;
    return this.#db.transaction(async (tx) => {
      await takeTurnsAtRows(tx);
      const joined = await joinTurn(tx, sessionId, jti);
      if (joined === 'ended') return 'gone';
      const isOfTurn = joined === 'joined' ? 1 : 0;
      await tx.run(
        'UPDATE code_calls SET session_id = ?, sandbox_id = ?, is_of_turn = ? WHERE id = ?',
        [sessionId, sandboxId, isOfTurn, id],
      );
      return 'joined';
    });
  }

  /** Its one row. False: somebody else has written it. Not to be called in a transaction. */
  finish(id: InvocationId, end: CallEnd): Promise<boolean> {
    return this.#db.transaction(async (tx) => {
      await takeTurnsAtRows(tx);
      // Whoever removes it writes its row; all others find nothing.
      const [row] = await tx.query('DELETE FROM code_calls WHERE id = ? RETURNING *', [id]);
      if (row === undefined) return false;
      await tx.run(this.#sql.finish, [...placeBinds(row), ...endBinds(row, end)]);
      const sessionId = maybeTextOf(row, 'session_id');
      if (numberOf(row, 'is_of_turn') === 1 && sessionId !== undefined)
        await endCallOfTurn(tx, sessionId);
      return true;
    });
  }

  /** Those whose replica was not heard of for longer than it held them. */
  async abandoned(limit: number): Promise<readonly OpenCall[]> {
    const rows = await this.#db.query(this.#sql.abandoned, [limit]);
    return rows.map((row) => ({
      id: textOf(row, 'id') as InvocationId,
      sessionId: maybeTextOf(row, 'session_id') as SessionId | undefined,
      startedAtMs: numberOf(row, 'started_at'),
    }));
  }
}

const DAY_MS = 86_400_000;

/** The columns that are taken over as they are. */
const SAME = [
  ['id', 'id'],
  ['created_at', 'started_at'],
  ['tenant_id', 'tenant'],
  ['agent_id', 'agent_id'],
  ['owner', 'owner'],
  ['client_id', 'client_id'],
  ['session_id', 'session_id'],
  ['sandbox_id', 'sandbox_id'],
  ['thread_id', 'thread_id'],
  ['turn_id', 'turn_id'],
  ['via', 'via'],
  ['language', 'language'],
  ['request_id', 'request_id'],
  ['executed_code_hash', 'code_hash'],
] as const;

const ENDS = [
  'exit_status',
  'exit_code',
  'failure_reason',
  'duration_ms',
  'stdout_bytes',
  'stderr_bytes',
  'stdout_truncated',
  'stderr_truncated',
  'retention_days',
  'expires_at',
] as const;

function placeBinds(row: Row) {
  return SAME.map(([, column]) => row[column] ?? null);
}

function endBinds(row: Row, end: CallEnd) {
  return [
    end.exitStatus,
    end.exitCode ?? null,
    end.failureReason?.replaceAll('\0', '\ufffd').slice(0, REASON_CHARS) ?? null,
    Math.max(0, Math.round(end.durationMs)),
    end.stdoutBytes,
    end.stderrBytes,
    end.isStdoutTruncated ? 1 : 0,
    end.isStderrTruncated ? 1 : 0,
    end.retentionDays,
    numberOf(row, 'started_at') + end.retentionDays * DAY_MS,
  ];
}

const REASON_CHARS = 4_096;

function statements(now: string) {
  const columns = [...SAME.map(([name]) => name), ...ENDS];
  return {
    begin: `INSERT INTO code_calls (id, tenant, agent_id, owner, client_id, thread_id, turn_id, via,
        language, request_id, code_hash, started_at, holder, held_until, is_of_turn)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${now}, ?, ${now} + CAST(? AS BIGINT), 0)`,
    renew: `UPDATE code_calls SET held_until = ${now} + CAST(? AS BIGINT) WHERE holder = ?`,
    finish: `INSERT INTO sandbox_invocations (${columns.join(', ')})
      VALUES (${columns.map(() => '?').join(', ')})`,
    abandoned: `SELECT id, session_id, started_at FROM code_calls WHERE held_until <= (SELECT ${now})
      ORDER BY held_until LIMIT ?`,
  };
}
