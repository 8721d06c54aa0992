/** What goes on behind calls: their holds are renewed, what a dead replica left is recorded, turns and rows end in their time. */
import { AUDIT_RETENTION_DAYS } from '../../../protocol/shapes/code.js';
import { Audit } from '../../store/audit.js';
import { CodeCalls } from '../../store/code-calls.js';
import { Invocations } from '../../store/invocations.js';
import { JobLeases } from '../../store/job-leases.js';
import { Quotas } from '../../store/quotas.js';
import type { BrokerParts, Replica } from '../parts.js';
import { CALL_HOLD_MS } from './calls.js';
import type { Turns } from './turns.js';

export interface RecoveryParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly turns: Turns;
}

const RENEW_EVERY_MS = 3_000;
const JOB = 'code-retention';
const RETENTION_EVERY_MS = 60_000;
const BATCH = 500;

/** Until the signal aborts. Every replica does it. */
export async function lookAfterCalls(parts: RecoveryParts, signal: AbortSignal): Promise<void> {
  const { broker, replica } = parts;
  let retainedAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      await new CodeCalls(broker.db).renew(replica.holder, CALL_HOLD_MS);
      await recordAbandoned(broker);
      await parts.turns.sweep();
      const nowMs = broker.clock.monotonic();
      if (nowMs - retainedAtMs >= RETENTION_EVERY_MS) {
        retainedAtMs = nowMs;
        if (await new JobLeases(broker.db).take(JOB, replica.holder, RETENTION_EVERY_MS / 2))
          await purgeExpired(broker);
      }
    } catch (error) {
      if (!signal.aborted) broker.logger.warn('calls could not be looked after', { error });
    }
    try {
      await broker.clock.sleep(RENEW_EVERY_MS, signal);
    } catch {
      return;
    }
  }
}

/** Whether its code ran, and how it ended, nobody knows: the row says just that. */
export async function recordAbandoned({ db, logger }: BrokerParts): Promise<void> {
  const calls = new CodeCalls(db);
  for (const { id, startedAtMs } of await calls.abandoned(BATCH)) {
    const isOurs = await calls.finish(id, {
      exitStatus: 'error',
      failureReason: 'the server that worked on the call ended before it did',
      durationMs: (await db.now()) - startedAtMs,
      stdoutBytes: 0,
      stderrBytes: 0,
      isStdoutTruncated: false,
      isStderrTruncated: false,
      retentionDays: AUDIT_RETENTION_DAYS.default,
    });
    if (isOurs) logger.warn('an abandoned call was recorded', { invocation_id: id });
  }
}

/** The only way out of `sandbox_invocations`; the database lets nothing else go, and nothing before its time. */
export async function purgeExpired({ db }: BrokerParts): Promise<number> {
  let purged = 0;
  for (;;) {
    const gone = await db.transaction(async (tx) => {
      const removed = await new Invocations(tx).purge(BATCH);
      if (removed > 0)
        await new Audit(tx).record({
          event: 'invocations.purged',
          details: { rows: removed, reason: 'retention' },
        });
      return removed;
    });
    purged += gone;
    if (gone < BATCH) break;
  }
  await new Quotas(db).sweep();
  return purged;
}
