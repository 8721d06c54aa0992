/** What happened, in the order it was recorded. The database refuses to change or remove any of it. */
import type { Bind, Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { fieldsOf, maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

/** Tokens are named by `jti` alone; nothing here is a secret. */
export interface AuditRecord {
  readonly event: string;
  readonly tenant?: string | undefined;
  readonly subject?: string | undefined;
  /** Who acted for the subject. */
  readonly actor?: string | undefined;
  readonly clientId?: string | undefined;
  readonly requestId?: string | undefined;
  readonly jti?: string | undefined;
  readonly threadId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly sandboxId?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

export interface AuditEntry extends AuditRecord {
  readonly id: number;
  readonly atMs: number;
}

/** All that are named must fit. */
export interface AuditFilter {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly event?: string | undefined;
  readonly tenant?: string | undefined;
  readonly subject?: string | undefined;
  readonly threadId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly sandboxId?: string | undefined;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** The `after` of the next page; undefined on the last. */
  readonly next: number | undefined;
}

export const MAX_AUDIT_PAGE = 1_000;

export class Audit {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Inside a transaction give its `tx` to the constructor, and the record stands or falls with what it tells of. */
  async record(record: AuditRecord): Promise<void> {
    // What is told of may be an attempt with hostile names: those must not keep it out of the audit.
    const texts = TEXT_COLUMNS.map(([name]) => record[name]?.replaceAll('\0', '\ufffd') ?? null);
    const columns = TEXT_COLUMNS.map(([, column]) => column).join(', ');
    await this.#db.run(
      `INSERT INTO audit (at, ${columns}, details)
        VALUES (${NOW_SQL[this.#db.engine]}, ${texts.map(() => '?').join(', ')}, ?)`,
      [...texts, JSON.stringify(record.details ?? {})],
    );
  }

  /** The oldest first; `after` is where the page before ended. */
  async list(
    filter: AuditFilter,
    page: { readonly limit: number; readonly after?: number | undefined },
  ): Promise<AuditPage> {
    const limit = Math.min(page.limit, MAX_AUDIT_PAGE);
    const conditions = toConditions(filter);
    const rows = await this.#db.query(
      `SELECT * FROM audit WHERE ${['id > ?', ...conditions.map(([sql]) => sql)].join(' AND ')}
        ORDER BY id LIMIT ?`,
      [page.after ?? 0, ...conditions.map(([, bind]) => bind), limit + 1],
    );
    const entries = rows.slice(0, limit).map(toEntry);
    return { entries, next: rows.length > limit ? entries.at(-1)?.id : undefined };
  }

  /** The last so many, the oldest of them first. */
  async listLatest(filter: AuditFilter, limit: number): Promise<readonly AuditEntry[]> {
    const conditions = toConditions(filter);
    const where = conditions.map(([sql]) => sql).join(' AND ') || '1 = 1';
    const rows = await this.#db.query(
      `SELECT * FROM audit WHERE ${where} ORDER BY id DESC LIMIT ?`,
      [...conditions.map(([, bind]) => bind), Math.min(limit, MAX_AUDIT_PAGE)],
    );
    return rows.map(toEntry).reverse();
  }

  /** Of the last record of all; 0 before the first. */
  async latestId(): Promise<number> {
    const [row] = await this.#db.query('SELECT MAX(id) AS latest FROM audit');
    return row === undefined ? 0 : (maybeNumberOf(row, 'latest') ?? 0);
  }
}

/** Our name and the column's. */
const TEXT_COLUMNS = [
  ['event', 'event'],
  ['tenant', 'tenant'],
  ['subject', 'subject'],
  ['actor', 'actor'],
  ['clientId', 'client_id'],
  ['requestId', 'request_id'],
  ['jti', 'jti'],
  ['threadId', 'thread_id'],
  ['sessionId', 'session_id'],
  ['sandboxId', 'sandbox_id'],
] as const;

function toConditions(filter: AuditFilter): readonly (readonly [sql: string, bind: Bind])[] {
  const candidates: readonly (readonly [string, Bind | undefined])[] = [
    ['at >= ?', filter.sinceMs],
    ['at < ?', filter.untilMs],
    ['event = ?', filter.event],
    ['tenant = ?', filter.tenant],
    ['subject = ?', filter.subject],
    ['thread_id = ?', filter.threadId],
    ['session_id = ?', filter.sessionId],
    ['sandbox_id = ?', filter.sandboxId],
  ];
  return candidates.flatMap(([sql, bind]) => (bind === undefined ? [] : [[sql, bind] as const]));
}

function toEntry(row: Row): AuditEntry {
  return {
    id: numberOf(row, 'id'),
    atMs: numberOf(row, 'at'),
    event: textOf(row, 'event'),
    tenant: maybeTextOf(row, 'tenant'),
    subject: maybeTextOf(row, 'subject'),
    actor: maybeTextOf(row, 'actor'),
    clientId: maybeTextOf(row, 'client_id'),
    requestId: maybeTextOf(row, 'request_id'),
    jti: maybeTextOf(row, 'jti'),
    threadId: maybeTextOf(row, 'thread_id'),
    sessionId: maybeTextOf(row, 'session_id'),
    sandboxId: maybeTextOf(row, 'sandbox_id'),
    details: fieldsOf(row, 'details'),
  };
}
