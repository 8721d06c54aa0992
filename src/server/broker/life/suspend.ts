/** Stops a sandbox whose lease is over, or whose owner says so: its processes go, its files stay, the next `ensure` wakes it. */
import type { SandboxId } from '../../../protocol/ids.js';
import type { Activity } from '../../providers/provider.js';
import { Audit } from '../../store/audit.js';
import { rowTransaction } from '../../store/row-transaction.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { type BrokerParts, HOLD_MS, type Replica } from '../parts.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import { destroySandbox, endSandbox, ownerOf } from './ends.js';
import { providerNamed } from './providers.js';
import { within } from './within.js';

const INSPECT_TIMEOUT_MS = 5_000;
/** Less than a hold, so that nobody takes over what is still being stopped. */
const STOP_TIMEOUT_MS = HOLD_MS - 500;

/** What is busy stays; what its provider has lost has ended. */
export async function suspendIfIdle(
  parts: BrokerParts,
  replica: Replica,
  sandbox: SandboxRecord,
): Promise<'kept' | 'suspended' | 'lost'> {
  const { db, providers, clock } = parts;
  const provider = providerNamed(providers, sandbox.provider);
  const view = await within(
    { clock, ms: INSPECT_TIMEOUT_MS, parent: replica.signal },
    'to look at it',
    (signal) => provider.inspect(sandbox.id, signal),
  );
  if (view === undefined) {
    const end = { kind: 'ended' } as const;
    const ended = await rowTransaction(db, (tx) => endSandbox(tx, sandbox.id, end, 'failed'));
    if (ended !== undefined) await destroySandbox(parts, replica, ended);
    return 'lost';
  }
  const seenMs = view.activity && (await lastSeen(db.now(), view.activity));
  if (seenMs !== undefined) {
    const kept = await new SandboxLife(db).keepActive(sandbox.id, seenMs);
    if (kept !== undefined && kept.leaseExpiresAtMs > sandbox.leaseExpiresAtMs) {
      if (kept.leaseExpiresAtMs > (await db.now())) return 'kept';
    }
  }
  return (await suspend(parts, replica, sandbox.id)) ? 'suspended' : 'kept';
}

/** Something that is open or runs is active now; else by its own account. */
async function lastSeen(now: Promise<number>, activity: Activity): Promise<number> {
  const nowMs = await now;
  const isBusy = activity.openShells > 0 || activity.runningCommands > 0;
  return isBusy ? nowMs : activity.lastActiveAtMs;
}

/** `by`: whoever wants it stopped though its lease is not over. False: it was not active, or its lease was lengthened. */
export async function suspend(
  parts: BrokerParts,
  replica: Replica,
  id: SandboxId,
  by?: Caller,
): Promise<boolean> {
  const hold = { holder: replica.holder, leaseMs: HOLD_MS };
  const idle = await rowTransaction(parts.db, async (tx) => {
    const life = new SandboxLife(tx);
    const now = by === undefined ? await life.becomeIdle(id, hold) : await life.beginStop(id, hold);
    if (now === undefined) return undefined;
    const who =
      by === undefined
        ? ownerOf(now)
        : { ...auditOf(by), ...ownerOf(now), subject: by.principal.sub };
    const details = { state: now.state, reason: by === undefined ? 'idle_timeout' : 'stopped' };
    await new Audit(tx).record({ event: 'sandbox.state', ...who, details });
    return now;
  });
  if (idle === undefined) return false;
  return finishSuspend(parts, replica, idle);
}

/** For one that is idle and held by this replica. */
export async function finishSuspend(
  { db, providers, clock }: BrokerParts,
  replica: Replica,
  sandbox: SandboxRecord,
): Promise<boolean> {
  const provider = providerNamed(providers, sandbox.provider);
  await within({ clock, ms: STOP_TIMEOUT_MS, parent: replica.signal }, 'to stop it', (signal) =>
    provider.stop(sandbox.id, signal),
  );
  return rowTransaction(db, async (tx) => {
    const now = await new SandboxLife(tx).becomeSuspended(sandbox.id, replica.holder);
    if (now === undefined) return false;
    const details = { state: now.state };
    await new Audit(tx).record({ event: 'sandbox.state', ...ownerOf(now), details });
    return true;
  });
}
