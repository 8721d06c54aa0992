/** Lets others into a session, and puts them out again: a grant taken back ends every token that came of it. */
import { allows } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId, type RandomFill } from '../../../protocol/ids.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { type Grantee, type GrantRecord, Grants, type NewGrant } from '../../store/grants.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import type { AccessDelivery } from '../access/delivery.js';
import { type CallerPolicy, decideCapabilities } from '../policy/decide.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import { type FoundSession, notTheOwner } from '../sessions/find.js';

export interface GrantParts {
  readonly db: Db;
  readonly random: RandomFill;
  readonly delivery: AccessDelivery;
}

export interface GrantRequest {
  readonly caller: Caller;
  readonly policy: CallerPolicy;
  readonly found: FoundSession;
  readonly grantee: Grantee;
  /** In either vocabulary. */
  readonly capabilities: readonly string[];
  readonly expiresAtMs?: number | undefined;
}

/** As many as one session can be shared with. */
export const GRANTS_MAX = 256;

/** Nobody gives more than they have. A grant for somebody who has one takes its place. */
export async function createGrant(
  { db, random, delivery }: GrantParts,
  request: GrantRequest,
): Promise<GrantRecord> {
  const { caller, policy, found, grantee, expiresAtMs } = request;
  const { session, access, nowMs } = found;
  if (access.kind === 'grant') throw notTheOwner();
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs)
    throw badField('expires_at', 'expires_at must be in the future');
  const { capabilities } = decideCapabilities(policy, {
    principal: caller.principal,
    requested: request.capabilities,
  });
  const fresh: NewGrant = {
    id: newId('grant', random),
    sessionId: session.id,
    tenant: session.tenant,
    grantee,
    capabilities,
    createdBy: caller.principal.sub,
    expiresAtMs,
  };
  const { grant, hasEnded } = await db.transaction(async (tx) => {
    const grants = new Grants(tx);
    const before = await grants.findOf(session.id, grantee);
    if (before !== undefined) await grants.remove(session.id, before.id);
    else if ((await grants.count(session.id)) >= GRANTS_MAX)
      throw badField('grantee', `a session is shared with ${GRANTS_MAX} at most`);
    const added = await grants.add(fresh);
    if (added === undefined)
      throw new AilsdError('BACKEND_UNAVAILABLE', 'somebody else was faster; try again');
    const ended = before === undefined ? 0 : await passOn(tx, before, added);
    if (ended > 0) await new SandboxAccess(tx).bump(session.sandboxId);
    const details = { ...detailsOf(added), ...(before && { replaces: before.id, ended }) };
    await new Audit(tx).record({ event: 'grant.created', ...auditOf(caller, session), details });
    return { grant: added, hasEnded: ended > 0 };
  });
  if (hasEnded) await delivery.deliverNow(session.sandboxId);
  return grant;
}

/** Tokens go on under a grant that gives at least as much for at least as long; otherwise they end. How many did. */
async function passOn(tx: Db, before: GrantRecord, after: GrantRecord): Promise<number> {
  const issued = new IssuedTokens(tx);
  const isAsMuch = before.capabilities.every((one) => allows(after.capabilities, one));
  const isAsLong = (after.expiresAtMs ?? Infinity) >= (before.expiresAtMs ?? Infinity);
  if (!isAsMuch || !isAsLong) return issued.endByGrant(before.id);
  await issued.moveToGrant(before.id, after.id);
  return 0;
}

export interface GrantPage {
  readonly found: FoundSession;
  readonly limit: number;
  readonly after?: string | undefined;
}

/** The owner sees all of them, a guest its own. */
export async function listGrants(
  { db }: Pick<GrantParts, 'db'>,
  { found: { session, access }, limit, after }: GrantPage,
): Promise<readonly GrantRecord[]> {
  if (access.kind !== 'grant') return new Grants(db).list(session.id, limit, after);
  return after === undefined || access.grant.id > after ? [access.grant] : [];
}

/** A guest may give its own back. */
export async function deleteGrant(
  { db, delivery }: Omit<GrantParts, 'random'>,
  { caller, found, id }: { caller: Caller; found: FoundSession; id: string },
): Promise<void> {
  const { session, access } = found;
  if (access.kind === 'grant' && access.grant.id !== id) throw noGrant();
  await db.transaction(async (tx) => {
    const grant = await new Grants(tx).remove(session.id, id);
    if (grant === undefined) throw noGrant();
    const ended = await new IssuedTokens(tx).endByGrant(grant.id);
    if (ended > 0) await new SandboxAccess(tx).bump(session.sandboxId);
    const details = { ...detailsOf(grant), ended };
    await new Audit(tx).record({ event: 'grant.deleted', ...auditOf(caller, session), details });
  });
  await delivery.deliverNow(session.sandboxId);
}

function detailsOf({ id, grantee, capabilities, expiresAtMs }: GrantRecord) {
  return {
    grant: id,
    grantee_type: grantee.type,
    grantee: grantee.id,
    capabilities: capabilities.join(' '),
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
  };
}

function noGrant(): AilsdError {
  return new AilsdError('NOT_FOUND', 'there is no such grant');
}

function badField(field: string, message: string): AilsdError {
  return new AilsdError('INVALID_REQUEST', message, { details: { field } });
}
