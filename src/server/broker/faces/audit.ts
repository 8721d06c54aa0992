/** `GET /admin/audit`: what happened, by filters; a page at a time, or everything as JSON lines, which is never held at once. */

import { AilsdError } from '../../../protocol/errors.js';
import type { RouteName } from '../../../protocol/routes.js';
import { type AuditEvent, auditQuery } from '../../../protocol/shapes/admin.js';
import type { RouteCode } from '../../http/call.js';
import { Audit, type AuditEntry, type AuditFilter } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { auditOf } from '../sessions/caller.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';

export function auditRoutes(db: Db): Partial<Record<RouteName, RouteCode>> {
  return {
    async readAudit(call) {
      const query = call.query(auditQuery);
      const page = pageAsked(query);
      const after = page.after === undefined ? 0 : numberOf(page.after);
      const filter: AuditFilter = {
        sinceMs: query.since === undefined ? undefined : Date.parse(query.since),
        untilMs: query.until === undefined ? undefined : Date.parse(query.until),
        tenant: query.tenant,
        subject: query.sub,
        event: query.event,
        threadId: query.thread_id,
        sessionId: query.session_id,
      };
      const audit = new Audit(db);
      if (query.format === 'jsonl') {
        // To read everything of everybody is itself something that happened.
        await audit.record({ event: 'audit.exported', ...auditOf(callerOf(call)) });
        return {
          headers: { 'Content-Type': 'application/jsonl' },
          stream: lines(audit, filter, after, call.exchange.signal),
        };
      }
      const { entries } = await audit.list(filter, { limit: page.limit + 1, after });
      return { body: toPage(entries, page, ({ id }) => String(id), toEvent) };
    },
  };
}

const EXPORT_PAGE = 500;

/** One page is in memory at a time, and the next is read when the caller has taken it. What is recorded meanwhile comes too. */
async function* lines(
  audit: Audit,
  filter: AuditFilter,
  begin: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let after: number | undefined = begin;
  while (after !== undefined && !signal.aborted) {
    const { entries, next }: { entries: readonly AuditEntry[]; next: number | undefined } =
      await audit.list(filter, { limit: EXPORT_PAGE, after });
    if (entries.length > 0)
      yield entries.map((entry) => `${JSON.stringify(toEvent(entry))}\n`).join('');
    after = next;
  }
}

export function toEvent(entry: AuditEntry): AuditEvent {
  const { details = {} } = entry;
  return {
    id: String(entry.id),
    at: timeOf(entry.atMs),
    event: entry.event,
    ...(entry.tenant !== undefined && { tenant: entry.tenant }),
    ...(entry.subject !== undefined && { sub: entry.subject }),
    ...(entry.actor !== undefined && { actor: entry.actor }),
    ...(entry.clientId !== undefined && { client_id: entry.clientId }),
    ...(entry.requestId !== undefined && { request_id: entry.requestId }),
    ...(entry.jti !== undefined && { jti: entry.jti }),
    ...ids(entry),
    ...(Object.keys(details).length > 0 && { details: toDetails(details) }),
  };
}

/** Recorded as they were; what was an attempt with a hostile name is shown all the same. */
function ids({ threadId, sessionId, sandboxId }: AuditEntry): Partial<AuditEvent> {
  return {
    ...(threadId !== undefined && { thread_id: threadId as AuditEvent['thread_id'] }),
    ...(sessionId !== undefined && { session_id: sessionId as AuditEvent['session_id'] }),
    ...(sandboxId !== undefined && { sandbox_id: sandboxId as AuditEvent['sandbox_id'] }),
  };
}

function toDetails(details: Readonly<Record<string, unknown>>): NonNullable<AuditEvent['details']> {
  const shown: Record<string, string | number | boolean | null> = {};
  for (const [name, value] of Object.entries(details)) {
    shown[name.slice(0, 64)] = isPlain(value) ? value : JSON.stringify(value).slice(0, 4096);
  }
  return shown;
}

function isPlain(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

function numberOf(after: string): number {
  const id = Number(after);
  if (Number.isSafeInteger(id) && id >= 0) return id;
  throw new AilsdError('INVALID_REQUEST', 'the cursor is none of ours', {
    details: { field: 'cursor' },
  });
}
