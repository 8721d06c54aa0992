/** `GET /v1/sandboxes/{id}/logs`: what happened to a sandbox, from the records of its life; followed until it ends. */
import type { RouteName } from '../../../protocol/routes.js';
import { type LogChunk, logQuery } from '../../../protocol/shapes/commands.js';
import type { RouteCode } from '../../http/call.js';
import type { Exchange } from '../../http/exchange.js';
import { Audit, type AuditEntry } from '../../store/audit.js';
import { Sandboxes } from '../../store/sandboxes.js';
import type { BrokerParts } from '../parts.js';
import { findSandbox } from '../sandboxes/find.js';
import { callerOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';

export function sandboxLogRoutes(parts: BrokerParts): Partial<Record<RouteName, RouteCode>> {
  return {
    async getSandboxLogs(call) {
      const { follow = false, tail } = call.query(logQuery);
      const { sandbox } = await findSandbox(parts.db, call.parameter('sandbox_id'), callerOf(call));
      return {
        headers: { 'Content-Type': 'application/jsonl' },
        stream: chunks(parts, { sandboxId: sandbox.id, follow, tail }, call.exchange),
      };
    },
  };
}

interface Asked {
  readonly sandboxId: string;
  readonly follow: boolean;
  readonly tail: number | undefined;
}

const PAGE = 200;
const LOOK_EVERY_MS = 1_000;
/** A sandbox has few records; of one that has more, the oldest are for the audit. */
const TAIL_MAX = 1_000;

async function* chunks(
  { db, clock }: BrokerParts,
  { sandboxId, follow, tail }: Asked,
  { signal, draining }: Exchange,
): AsyncGenerator<string> {
  const audit = new Audit(db);
  const over = AbortSignal.any([signal, draining]);
  const begin = await audit.listLatest({ sandboxId }, Math.min(tail ?? TAIL_MAX, TAIL_MAX));
  yield toLines(begin);
  let after = begin.at(-1)?.id ?? (await audit.latestId());
  while (follow && !over.aborted) {
    // Looked at before the records: its own end is among what is read after that.
    const sandbox = await new Sandboxes(db).find(sandboxId);
    const { entries } = await audit.list({ sandboxId }, { limit: PAGE, after });
    if (entries.length > 0) yield toLines(entries);
    after = entries.at(-1)?.id ?? after;
    if (entries.length === PAGE) continue;
    if (sandbox === undefined || sandbox.endedAtMs !== undefined) return;
    await clock.sleep(LOOK_EVERY_MS, over).catch(() => undefined);
  }
}

function toLines(entries: readonly AuditEntry[]): string {
  return entries.map((entry) => `${JSON.stringify(toChunk(entry))}\n`).join('');
}

/** What and why; by whom and with which token is the audit's to tell. */
function toChunk({ atMs, event, details }: AuditEntry): LogChunk {
  const { state, reason, why } = details ?? {};
  const words = [event, state, reason, why].filter((word) => typeof word === 'string');
  return { at: timeOf(atMs), stream: 'system', data: `${words.join(' ')}\n` };
}
