/** How a sandbox ends: in the store first, with whatever holds it and a record of why; then at its provider. */
import type { SandboxId } from '../../../protocol/ids.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { type SessionEnd, type SessionRecord, Sessions } from '../../store/sessions.js';
import type { BrokerParts, Replica } from '../parts.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import { providerNamed } from './providers.js';
import { within } from './within.js';

export type SandboxEnd =
  /** Nothing holds it any more, or its owner or an administrator said so. */
  | {
      readonly kind: 'ended';
      readonly by?: Caller | undefined;
      /** The last that held it, where that has ended already. */
      readonly session?: SessionRecord | undefined;
    }
  /** If its hard end has come. */
  | { readonly kind: 'hard-ttl' }
  /** By the replica that was starting it. */
  | { readonly kind: 'failed'; readonly holder: string; readonly why: string };

/** In the caller's transaction: undefined when it was not ended by this. Its sessions end as `reason` says. */
export async function endSandbox(
  tx: Db,
  id: SandboxId,
  end: SandboxEnd,
  reason: SessionEnd,
): Promise<SandboxRecord | undefined> {
  const life = new SandboxLife(tx);
  const ended = await endRow(life, id, end, reason);
  if (ended === undefined) return undefined;
  const sessions = await new Sessions(tx).endAllOf(id, reason);
  const audit = new Audit(tx);
  const by = end.kind === 'ended' ? end.by : undefined;
  const details = { reason, ...(end.kind === 'failed' && { why: end.why.slice(0, 256) }) };
  for (const session of sessions) {
    const who = by ? auditOf(by, session) : { ...ownerOf(ended), ...placeOf(session) };
    await audit.record({ event: 'session.ended', ...who, details });
  }
  const session = sessions[0] ?? (end.kind === 'ended' ? end.session : undefined);
  await audit.record({
    event: 'sandbox.state',
    ...(by ? auditOf(by) : ownerOf(ended)),
    ...(session && placeOf(session)),
    tenant: ended.tenant,
    sandboxId: id,
    details: { state: ended.state, ...details },
  });
  return ended;
}

function endRow(
  life: SandboxLife,
  id: SandboxId,
  end: SandboxEnd,
  reason: SessionEnd,
): Promise<SandboxRecord | undefined> {
  switch (end.kind) {
    case 'ended':
      return life.terminate(id, reason);
    case 'hard-ttl':
      return life.expire(id, 'hard_ttl');
    case 'failed':
      return life.fail(id, end.holder, reason);
  }
}

/** What nobody asked for is recorded of whose it is. */
export function ownerOf({ tenant, owner, clientId, id }: SandboxRecord) {
  return { tenant, subject: owner, clientId, sandboxId: id };
}

function placeOf(session: { readonly id: string; readonly threadId: string }) {
  return { sessionId: session.id, threadId: session.threadId };
}

const DESTROY_TIMEOUT_MS = 10_000;

/** After the commit. Whether its provider holds nothing of it now; if not, the reaper tries again. */
export async function destroySandbox(
  { db, providers, clock, logger }: BrokerParts,
  { signal }: Replica,
  sandbox: Pick<SandboxRecord, 'id' | 'provider'>,
): Promise<boolean> {
  try {
    const provider = providerNamed(providers, sandbox.provider);
    await within({ clock, ms: DESTROY_TIMEOUT_MS, parent: signal }, 'to destroy it', (cut) =>
      provider.destroy(sandbox.id, cut),
    );
    await new SandboxLife(db).markDestroyed(sandbox.id);
    return true;
  } catch (error) {
    logger.warn('a sandbox could not be destroyed yet', { sandbox_id: sandbox.id, error });
    return false;
  }
}
