/** Lets go of a session: it ends at once, and the sandbox with it when nothing else holds that. */
import { Audit } from '../../store/audit.js';
import { rowTransaction } from '../../store/row-transaction.js';
import { Sessions } from '../../store/sessions.js';
import { destroySandbox, endSandbox } from '../life/ends.js';
import type { BrokerParts, Replica } from '../parts.js';
import { auditOf, type Caller } from './caller.js';
import { type FoundSession, noSession, notTheOwner } from './find.js';

/** Of several at once one releases, and the others find no session. */
export async function releaseSession(
  parts: BrokerParts,
  replica: Replica,
  { session, sandbox, access }: FoundSession,
  caller: Caller,
): Promise<void> {
  if (access.kind === 'grant') throw notTheOwner();
  const reason = access.kind === 'admin' ? 'killed' : 'released';
  const ended = await rowTransaction(parts.db, async (tx) => {
    const sessions = new Sessions(tx);
    if (!(await sessions.end(session.id, reason))) throw noSession();
    const details = { reason };
    await new Audit(tx).record({ event: 'session.released', ...auditOf(caller, session), details });
    if ((await sessions.countOpenOf(sandbox.id)) > 0) return undefined;
    return endSandbox(tx, sandbox.id, { kind: 'ended', by: caller, session }, reason);
  });
  if (ended !== undefined) await destroySandbox(parts, replica, ended);
}
