/** Sandboxes as the broker knows them: each is recorded here before its provider makes it. */
import type { SandboxId, SessionId, ThreadId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export const SANDBOX_RECORD_STATES = [
  'provisioning',
  'active',
  'idle',
  'suspended',
  'terminated',
  'failed',
] as const;

export type SandboxRecordState = (typeof SANDBOX_RECORD_STATES)[number];

export type SandboxEnvironment = 'default-public' | 'internal-only';

export interface SandboxRecord {
  readonly id: SandboxId;
  readonly tenant: string;
  readonly owner: string;
  readonly clientId: string;
  readonly name: string | undefined;
  readonly provider: string;
  readonly template: string | undefined;
  readonly environment: SandboxEnvironment;
  readonly state: SandboxRecordState;
  /** Known once its provider has made it. */
  readonly endpoints: { readonly httpUrl: string; readonly wsUrl: string } | undefined;
  readonly idleTimeoutMs: number;
  readonly keyGeneration: number;
  readonly accessGeneration: number;
  readonly accessDelivered: number;
  /** Which replica is starting or stopping it, and until when nobody else may take that over. */
  readonly workHolder: string | undefined;
  readonly workUntilMs: number | undefined;
  readonly createdAtMs: number;
  readonly lastActiveAtMs: number;
  readonly leaseExpiresAtMs: number;
  readonly hardExpiresAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly endReason: string | undefined;
  readonly destroyedAtMs: number | undefined;
}

export interface NewSandbox {
  readonly id: SandboxId;
  readonly tenant: string;
  readonly owner: string;
  readonly clientId: string;
  readonly provider: string;
  readonly template: string | undefined;
  readonly environment: SandboxEnvironment;
  readonly idleTimeoutMs: number;
  readonly hardTtlMs: number;
  readonly workHolder: string;
  readonly workLeaseMs: number;
}

/** A sandbox with the open session that holds it, as lists show them. */
export interface ListedSandbox {
  readonly sandbox: SandboxRecord;
  readonly sessionId: SessionId | undefined;
  readonly threadId: ThreadId | undefined;
}

export interface SandboxFilter {
  /** Absent: of every tenant, and of every owner. For administrators. */
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  readonly state?: SandboxRecordState | undefined;
  readonly threadId?: string | undefined;
  /** Only of these: the login is pinned to them. */
  readonly threads?: readonly string[] | undefined;
}

export class Sandboxes {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Its provider has not heard of it yet: state `provisioning`, held by whoever is about to ask. */
  async add(sandbox: NewSandbox): Promise<void> {
    const nowMs = await this.#db.now();
    await this.#db.run(
      `INSERT INTO sandboxes (id, tenant, owner, client_id, provider, template, environment, state,
          idle_timeout_ms, key_generation, access_generation, access_delivered, work_holder, work_until,
          created_at, last_active_at, lease_expires_at, hard_expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, 'provisioning', ?, 1, 1, 0, ?, ?, ?, ?, ?, ?)`,
      [
        sandbox.id,
        sandbox.tenant,
        sandbox.owner,
        sandbox.clientId,
        sandbox.provider,
        sandbox.template ?? null,
        sandbox.environment,
        sandbox.idleTimeoutMs,
        sandbox.workHolder,
        nowMs + sandbox.workLeaseMs,
        nowMs,
        nowMs,
        nowMs + sandbox.idleTimeoutMs,
        nowMs + sandbox.hardTtlMs,
      ],
    );
  }

  async find(id: string): Promise<SandboxRecord | undefined> {
    const [row] = await this.#db.query('SELECT * FROM sandboxes WHERE id = ?', [id]);
    return row && toSandbox(row);
  }

  /** Those that live, by id; `after` is the last id of the page before. */
  async list(
    filter: SandboxFilter,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly ListedSandbox[]> {
    const conditions = ['b.ended_at IS NULL', 'b.id > ?'];
    const binds: (string | number)[] = [page.after ?? ''];
    const add = (sql: string, ...values: readonly string[]): void => {
      conditions.push(sql);
      binds.push(...values);
    };
    if (filter.tenant !== undefined) add('b.tenant = ?', filter.tenant);
    if (filter.owner !== undefined) add('b.owner = ?', filter.owner);
    if (filter.state !== undefined) add('b.state = ?', filter.state);
    if (filter.threadId !== undefined) add('s.thread_id = ?', filter.threadId);
    if (filter.threads !== undefined) {
      add(`s.thread_id IN (${filter.threads.map(() => '?').join(', ')})`, ...filter.threads);
    }
    const rows = await this.#db.query(
      `SELECT b.*, s.id AS session_id, s.thread_id AS thread_id FROM sandboxes b
        LEFT JOIN sessions s ON s.sandbox_id = b.id AND s.ended_at IS NULL
        WHERE ${conditions.join(' AND ')} ORDER BY b.id LIMIT ?`,
      [...binds, page.limit],
    );
    return rows.map((row) => ({
      sandbox: toSandbox(row),
      sessionId: maybeTextOf(row, 'session_id') as SessionId | undefined,
      threadId: maybeTextOf(row, 'thread_id') as ThreadId | undefined,
    }));
  }

  async rename(id: SandboxId, name: string): Promise<boolean> {
    const changed = await this.#db.run(
      'UPDATE sandboxes SET name = ? WHERE id = ? AND ended_at IS NULL',
      [name, id],
    );
    return changed === 1;
  }

  /** Of these ids, those that something still holds. */
  living(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#among(ids, 'ended_at IS NULL AND');
  }

  /** Of these ids, those that were ever recorded. */
  known(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#among(ids, '');
  }

  async #among(ids: readonly string[], condition: string): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
      const some = ids.slice(at, at + IDS_AT_ONCE);
      const rows = await this.#db.query(
        `SELECT id FROM sandboxes WHERE ${condition} id IN (${some.map(() => '?').join(', ')})`,
        some,
      );
      for (const row of rows) found.add(textOf(row, 'id'));
    }
    return found;
  }
}

const IDS_AT_ONCE = 200;

export function toSandbox(row: Row): SandboxRecord {
  const httpUrl = maybeTextOf(row, 'http_url');
  const wsUrl = maybeTextOf(row, 'ws_url');
  return {
    id: textOf(row, 'id') as SandboxId,
    tenant: textOf(row, 'tenant'),
    owner: textOf(row, 'owner'),
    clientId: textOf(row, 'client_id'),
    name: maybeTextOf(row, 'name'),
    provider: textOf(row, 'provider'),
    template: maybeTextOf(row, 'template'),
    environment:
      textOf(row, 'environment') === 'internal-only' ? 'internal-only' : 'default-public',
    state: toState(textOf(row, 'state')),
    endpoints: httpUrl === undefined || wsUrl === undefined ? undefined : { httpUrl, wsUrl },
    idleTimeoutMs: numberOf(row, 'idle_timeout_ms'),
    keyGeneration: numberOf(row, 'key_generation'),
    accessGeneration: numberOf(row, 'access_generation'),
    accessDelivered: numberOf(row, 'access_delivered'),
    workHolder: maybeTextOf(row, 'work_holder'),
    workUntilMs: maybeNumberOf(row, 'work_until'),
    createdAtMs: numberOf(row, 'created_at'),
    lastActiveAtMs: numberOf(row, 'last_active_at'),
    leaseExpiresAtMs: numberOf(row, 'lease_expires_at'),
    hardExpiresAtMs: numberOf(row, 'hard_expires_at'),
    endedAtMs: maybeNumberOf(row, 'ended_at'),
    endReason: maybeTextOf(row, 'end_reason'),
    destroyedAtMs: maybeNumberOf(row, 'destroyed_at'),
  };
}

/** What the table's CHECK lets in and no more; anything else has no business being used. */
function toState(text: string): SandboxRecordState {
  return SANDBOX_RECORD_STATES.find((state) => state === text) ?? 'failed';
}
