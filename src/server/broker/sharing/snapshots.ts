/** Keeps a sandbox's files as they are and puts them back, where its provider can. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId, type RandomFill } from '../../../protocol/ids.js';
import type { Provider, ProviderSnapshots } from '../../providers/provider.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { type SnapshotRecord, Snapshots } from '../../store/snapshots.js';
import { providerNamed } from '../life/providers.js';
import { within } from '../life/within.js';
import { type CallerPolicy, decideCapabilities } from '../policy/decide.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import type { FoundSession } from '../sessions/find.js';

export interface SnapshotParts {
  readonly db: Db;
  readonly random: RandomFill;
  readonly providers: readonly Provider[];
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface SnapshotCall {
  readonly caller: Caller;
  readonly policy: CallerPolicy;
  readonly found: FoundSession;
  readonly signal: AbortSignal;
}

export const SNAPSHOTS_MAX = 32;
const SNAPSHOT_MS = 120_000;
/** Past this nobody is making it any more. */
const LOST_MS = 2 * SNAPSHOT_MS;
const LEFT_AT_ONCE = 20;

export interface NewSnapshotCall extends SnapshotCall {
  readonly name?: string | undefined;
  /** The caller's own word for this request: said again, it means the same snapshot. */
  readonly key?: string | undefined;
}

export async function createSnapshot(
  parts: SnapshotParts,
  { name, key, ...call }: NewSnapshotCall,
): Promise<SnapshotRecord> {
  const { db, clock, logger } = parts;
  const { caller, found, signal } = call;
  const { session, sandbox } = found;
  requireSnapshot(call);
  const keeper = keeperOf(parts, found);
  const id = newId('snapshot', key === undefined ? parts.random : idFrom(session.id, key));
  const known = await db.transaction(async (tx) => {
    const snapshots = new Snapshots(tx);
    const kept = await snapshots.findKept(session.id, id);
    if (kept !== undefined) return kept;
    if ((await snapshots.count(session.id)) >= SNAPSHOTS_MAX)
      throw conflict(`a session keeps ${SNAPSHOTS_MAX} snapshots at most`);
    const { tenant, owner } = session;
    const fresh = { id, tenant, owner, sessionId: session.id, sandboxId: sandbox.id, name };
    if ((await snapshots.begin(fresh)) === undefined) throw conflict('it is being made');
    return undefined;
  });
  if (known !== undefined) {
    if (known.name === name) return known;
    throw conflict('this Idempotency-Key came with another request');
  }
  try {
    const { sizeBytes } = await within(
      { clock, ms: SNAPSHOT_MS, parent: signal },
      'the snapshot',
      (cut) => keeper.take(sandbox.id, id, cut),
    );
    return await db.transaction(async (tx) => {
      const kept = await new Snapshots(tx).keep(id, sizeBytes);
      if (kept === undefined) throw new AilsdError('PROVIDER_UNAVAILABLE', 'it took too long');
      const details = { snapshot: id, size_bytes: sizeBytes, name: name ?? null };
      await new Audit(tx).record({
        event: 'snapshot.created',
        ...auditOf(caller, session),
        details,
      });
      return kept;
    });
  } catch (error) {
    logger.warn('a snapshot could not be made', { sandbox_id: sandbox.id, snapshot: id, error });
    await removeLeft(parts, keeper, id);
    throw toUnavailable(error);
  }
}

export function listSnapshots(
  { db }: Pick<SnapshotParts, 'db'>,
  call: Omit<SnapshotCall, 'signal'> & {
    readonly limit: number;
    readonly after?: string | undefined;
  },
): Promise<readonly SnapshotRecord[]> {
  requireSnapshot(call);
  return new Snapshots(db).list(call.found.session.id, call.limit, call.after);
}

export async function restoreSnapshot(
  parts: SnapshotParts,
  { id, ...call }: SnapshotCall & { readonly id: string },
): Promise<SnapshotRecord> {
  const { db, clock, logger } = parts;
  const { caller, found, signal } = call;
  const { session, sandbox } = found;
  requireSnapshot(call);
  const snapshot = await new Snapshots(db).findKept(session.id, id);
  if (snapshot === undefined) throw new AilsdError('NOT_FOUND', 'there is no such snapshot');
  const keeper = keeperOf(parts, found);
  const who = auditOf(caller, session);
  // Recorded before it is begun: files may have changed even if it fails half-way.
  await new Audit(db).record({ event: 'snapshot.restored', ...who, details: { snapshot: id } });
  try {
    await within({ clock, ms: SNAPSHOT_MS, parent: signal }, 'to restore it', (cut) =>
      keeper.restore(sandbox.id, snapshot.id, cut),
    );
  } catch (error) {
    logger.warn('a snapshot could not be restored', {
      sandbox_id: sandbox.id,
      snapshot: id,
      error,
    });
    throw toUnavailable(error);
  }
  return snapshot;
}

/** The same id whenever the same key is said, so that the table itself keeps it to one snapshot. */
function idFrom(sessionId: string, key: string): RandomFill {
  return (bytes) => {
    bytes.set(
      createHash('sha256')
        .update(JSON.stringify([sessionId, key]))
        .digest()
        .subarray(0, bytes.length),
    );
    return bytes;
  };
}

/** Removes what ended sessions and lost makings left; some at a time, and again if its provider is away. */
export async function sweepSnapshots(parts: SnapshotParts): Promise<void> {
  const left = await new Snapshots(parts.db).listLeft(LOST_MS, LEFT_AT_ONCE);
  for (const { id, provider } of left) {
    const keeper = parts.providers.find(({ name }) => name === provider)?.snapshots;
    if (keeper !== undefined) await removeLeft(parts, keeper, id);
  }
}

async function removeLeft(
  { db, clock, logger }: SnapshotParts,
  keeper: ProviderSnapshots,
  id: SnapshotRecord['id'],
): Promise<void> {
  try {
    const parent = new AbortController().signal;
    await within({ clock, ms: SNAPSHOT_MS, parent }, 'to remove it', (cut) =>
      keeper.remove(id, cut),
    );
    await new Snapshots(db).markRemoved(id);
  } catch (error) {
    logger.warn('a snapshot is left to be removed later', { snapshot: id, error });
  }
}

function requireSnapshot({ caller, policy, found }: Omit<SnapshotCall, 'signal'>): void {
  const { access } = found;
  decideCapabilities(policy, {
    principal: caller.principal,
    requested: ['snapshot'],
    grant: access.kind === 'grant' ? access.grant.capabilities : undefined,
  });
}

function keeperOf({ providers }: SnapshotParts, { sandbox }: FoundSession): ProviderSnapshots {
  const { snapshots, flags } = providerNamed(providers, sandbox.provider);
  if (sandbox.state === 'provisioning') throw conflict('the sandbox is starting');
  if (flags.snapshots && snapshots !== undefined) return snapshots;
  throw conflict('this kind of sandbox keeps no snapshots');
}

function conflict(message: string): AilsdError {
  return new AilsdError('SESSION_CONFLICT', message);
}

/** A full disk is said as it is; whatever else a provider says is for the log. */
function toUnavailable(error: unknown): AilsdError {
  if (error instanceof AilsdError) return error;
  return new AilsdError('PROVIDER_UNAVAILABLE', 'the provider could not do it', { cause: error });
}
