/** Who may come near a sandbox: whoever may come near the session that holds it. To all others it does not exist. */
import { AilsdError } from '../../../protocol/errors.js';
import type { Db } from '../../store/db.js';
import { Sessions } from '../../store/sessions.js';
import type { Caller } from '../sessions/caller.js';
import { accessTo, type FoundSession, notTheOwner, recordBypass } from '../sessions/find.js';

/** NOT_FOUND, in the same words for one that is another's, has ended, or never was. An administrator's look is recorded. */
export async function findSandbox(db: Db, id: string, caller: Caller): Promise<FoundSession> {
  const held = await new Sessions(db).findBySandbox(id);
  const access = held && (await accessTo(db, held.session, caller.principal));
  if (held === undefined || access === undefined) throw noSandbox();
  if (access.kind === 'admin') await recordBypass(db, caller, held.session);
  return { ...held, access };
}

/** For what changes the sandbox itself: whoever was let in by a grant works in it, and does not rule it. */
export async function findOwnSandbox(db: Db, id: string, caller: Caller): Promise<FoundSession> {
  const found = await findSandbox(db, id, caller);
  if (found.access.kind === 'grant') throw notTheOwner();
  return found;
}

export function noSandbox(): AilsdError {
  return new AilsdError('NOT_FOUND', 'there is no such sandbox');
}
