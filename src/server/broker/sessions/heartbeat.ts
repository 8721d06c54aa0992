/** Keeps a sandbox alive for a full idle timeout more. One conditional write decides whether it was in time. */
import { AilsdError } from '../../../protocol/errors.js';
import type { Db } from '../../store/db.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { Sessions } from '../../store/sessions.js';
import { endedSession, type FoundSession, noSession } from './find.js';

export async function heartbeat(db: Db, found: FoundSession): Promise<SandboxRecord> {
  const kept = await new SandboxLife(db).lengthenLease(found.sandbox.id);
  if (kept !== undefined) return kept;
  const held = await new Sessions(db).find(found.session.id);
  if (held === undefined) throw noSession();
  if (held.session.endedAtMs !== undefined) throw endedSession(held.session);
  if (held.sandbox.state === 'provisioning') {
    throw new AilsdError('SANDBOX_STARTING', 'the sandbox is starting', {
      details: { retry_after_ms: 1_000 },
    });
  }
  throw leaseOver();
}

/** It is asleep, or about to be: a heartbeat does not wake it. */
export function leaseOver(): AilsdError {
  return new AilsdError('SESSION_EXPIRED', "the sandbox's lease is over and it was suspended", {
    hint: 'its files are kept; `ailsd session ensure THREAD` wakes it',
  });
}
