/** Who may come near a session: its owner, whoever was let in, an administrator. To all others it does not exist. */
import { AilsdError } from '../../../protocol/errors.js';
import type { Principal } from '../../../protocol/principal.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { type GrantRecord, Grants } from '../../store/grants.js';
import { type HeldSandbox, type SessionRecord, Sessions } from '../../store/sessions.js';
import { auditOf, type Caller } from './caller.js';

export type Access =
  | { readonly kind: 'owner' }
  | { readonly kind: 'grant'; readonly grant: GrantRecord }
  /** Across owners, and by session id across tenants; recorded wherever it is used. */
  | { readonly kind: 'admin' };

export interface FoundSession extends HeldSandbox {
  readonly access: Access;
}

/** Undefined: as if there were no such session. */
export async function accessTo(
  db: Db,
  session: SessionRecord,
  principal: Principal,
): Promise<Access | undefined> {
  if (!isWithinPins(principal, session.threadId)) return undefined;
  if (session.tenant === principal.tenant) {
    if (session.owner === principal.sub) return { kind: 'owner' };
    const grant = await new Grants(db).findFor(session.id, principal);
    if (grant !== undefined) return { kind: 'grant', grant };
  }
  return principal.scopes.includes('admin:sandbox') ? { kind: 'admin' } : undefined;
}

/** Whether the login was not pinned to other threads. */
export function isWithinPins({ threads }: Principal, threadId: string): boolean {
  return threads === undefined || threads.some((thread) => thread === threadId);
}

/** By id. SESSION_NOT_FOUND, or SESSION_EXPIRED for one that ended because its time was over. */
export async function findSession(db: Db, id: string, caller: Caller): Promise<FoundSession> {
  const held = await new Sessions(db).find(id);
  const access = held && (await accessTo(db, held.session, caller.principal));
  if (held === undefined || access === undefined) throw noSession();
  if (held.session.endedAtMs !== undefined) throw endedSession(held.session);
  if (access.kind === 'admin') await recordBypass(db, caller, held.session);
  return { ...held, access };
}

/** By the name of a thread in the caller's own tenant. */
export async function findThreadSession(
  db: Db,
  threadId: string,
  caller: Caller,
): Promise<FoundSession> {
  const { tenant } = caller.principal;
  const held = await new Sessions(db).findOpen({ tenant, type: 'thread', id: threadId });
  const access = held && (await accessTo(db, held.session, caller.principal));
  if (held === undefined || access === undefined) throw noSession();
  if (access.kind === 'admin') await recordBypass(db, caller, held.session);
  return { ...held, access };
}

export function recordBypass(db: Db, caller: Caller, session: SessionRecord): Promise<void> {
  const details = { owner: session.owner };
  return new Audit(db).record({ event: 'admin.access', ...auditOf(caller, session), details });
}

export function noSession(): AilsdError {
  return new AilsdError('SESSION_NOT_FOUND', 'there is no such session');
}

export function endedSession({ endReason }: SessionRecord): AilsdError {
  if (endReason !== 'expired') return noSession();
  return new AilsdError('SESSION_EXPIRED', "the session's time is over");
}

/** For whoever may use a session but does not own it. */
export function notTheOwner(): AilsdError {
  return new AilsdError('FORBIDDEN', 'only the owner of a session may do that', {
    hint: 'ask the owner',
  });
}
