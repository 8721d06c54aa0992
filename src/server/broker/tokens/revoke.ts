/** Ends one token of a session by its `jti`, or all of its sandbox's by giving it a new key. */
import { AilsdError } from '../../../protocol/errors.js';
import type { TokenId } from '../../../protocol/ids.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import type { SessionRecord } from '../../store/sessions.js';
import type { AccessDelivery } from '../access/delivery.js';
import { auditOf, type Caller } from '../sessions/caller.js';

export interface RevokeParts {
  readonly db: Db;
  readonly delivery: AccessDelivery;
}

export interface RevokeRequest {
  readonly caller: Caller;
  readonly session: SessionRecord;
  readonly jti: TokenId;
  /** A guest ends only what is its own. */
  readonly isGuest: boolean;
}

/** Narrower copies end with it. One that has ended or expired already is left as it is. */
export async function revokeToken(
  { db, delivery }: RevokeParts,
  request: RevokeRequest,
): Promise<void> {
  const { caller, session, jti, isGuest } = request;
  const hasEnded = await db.transaction(async (tx) => {
    const issued = new IssuedTokens(tx);
    const token = await issued.find(jti);
    const isTheirs = !isGuest || token?.subject === caller.principal.sub;
    if (token?.sessionId !== session.id || !isTheirs)
      throw new AilsdError('SESSION_NOT_FOUND', 'this session has no such token');
    const ended = await issued.end(jti);
    if (ended === 0) return false;
    await new SandboxAccess(tx).bump(session.sandboxId);
    const who = auditOf(caller, session);
    const details = { sub: token.subject, ended };
    await new Audit(tx).record({ event: 'token.revoked', ...who, jti, details });
    return true;
  });
  if (hasEnded) await delivery.deliverNow(session.sandboxId);
}

export async function rotateKey(
  { db, delivery }: RevokeParts,
  { caller, session }: Pick<RevokeRequest, 'caller' | 'session'>,
): Promise<void> {
  await db.transaction(async (tx) => {
    const keyGeneration = await new SandboxAccess(tx).rotateKey(session.sandboxId);
    if (keyGeneration === undefined)
      throw new AilsdError('SESSION_NOT_FOUND', 'the sandbox has ended');
    const details = { key_generation: keyGeneration };
    await new Audit(tx).record({ event: 'key.rotated', ...auditOf(caller, session), details });
  });
  await delivery.deliverNow(session.sandboxId);
}
