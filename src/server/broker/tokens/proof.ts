/** Decides whether a sandbox token that a caller shows is theirs, of this sandbox, and still of use for getting another. */
import type { Secret } from '../../../base/secret.js';
import type { Act } from '../../../protocol/claims.js';
import { AilsdError } from '../../../protocol/errors.js';
import { LEEWAY_SECONDS } from '../../../protocol/lifetimes.js';
import type { Principal } from '../../../protocol/principal.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { type IssuedToken, IssuedTokens } from '../../store/issued-tokens.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import { hashOpaqueToken, isOpaqueToken } from '../../tokens/opaque-token.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';
import { verifySandboxToken } from '../../tokens/sandbox-token.js';
import { auditOf, type Caller } from '../sessions/caller.js';

export interface ProofParts {
  readonly db: Db;
  readonly keys: SandboxKeys;
}

export interface Shown {
  readonly caller: Caller;
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord;
  readonly token: Secret;
  /** `lease`: it may have expired, if it was issued no longer ago than the sandbox's lease lasts. */
  readonly age: 'in-force' | 'lease';
}

/** Outside any transaction: a refusal, always FORBIDDEN in the same words, is recorded. */
export async function requireProof({ db, keys }: ProofParts, shown: Shown): Promise<IssuedToken> {
  const { caller, session, sandbox, token, age } = shown;
  const nowMs = await db.now();
  const issued = await findIssued(db, keys, shown, nowMs);
  const why = issued === undefined ? 'not genuine' : refusalOf(issued, shown, nowMs);
  if (issued !== undefined && why === undefined) return issued;
  await new Audit(db).record({
    event: 'token.refused',
    ...auditOf(caller, session),
    jti: issued?.jti,
    details: { aud: sandbox.id, reason: why ?? '', age, opaque: isOpaqueToken(token) },
  });
  throw new AilsdError('FORBIDDEN', 'the current token is not accepted as proof', {
    internal: `current_token: ${why}`,
    details: { field: 'current_token' },
    hint: 'negotiate a new token for the thread',
  });
}

/** What was issued, if the token is genuine in all but its time. */
async function findIssued(
  db: Db,
  keys: SandboxKeys,
  { token, sandbox, session }: Shown,
  nowMs: number,
): Promise<IssuedToken | undefined> {
  const issued = new IssuedTokens(db);
  if (isOpaqueToken(token)) return issued.findByHash(hashOpaqueToken(token));
  const verdict = verifySandboxToken(token, [keys.keyOf(sandbox.id, sandbox.keyGeneration)], {
    sandboxId: sandbox.id,
    threadId: session.threadId,
    nowMs,
  });
  return verdict.kind === 'invalid' ? undefined : issued.find(verdict.claims.jti);
}

function refusalOf(
  token: IssuedToken,
  { caller, session, sandbox, age }: Shown,
  nowMs: number,
): string | undefined {
  const { principal } = caller;
  if (token.sandboxId !== sandbox.id) return 'of another sandbox';
  if (token.sessionId !== session.id) return 'of another session';
  if (token.keyGeneration !== sandbox.keyGeneration) return 'of an older key';
  if (!isSameHolder(token, principal)) return 'of somebody else';
  if (token.endsAtMs !== undefined && token.endsAtMs <= nowMs) return 'ended';
  if (nowMs - token.issuedAtMs > sandbox.idleTimeoutMs && age === 'lease')
    return 'older than a lease';
  if (age === 'in-force' && token.expiresAtMs + LEEWAY_SECONDS.sandbox * 1000 <= nowMs)
    return 'expired';
  return undefined;
}

/** The subject, and whoever acts for it: an agent does not go on with what a person holds. */
export function isSameHolder(token: IssuedToken, { sub, act }: Principal): boolean {
  return token.subject === sub && actors(token.act) === actors(act);
}

function actors(act: Act | undefined): string {
  const subs: string[] = [];
  for (let one = act; one !== undefined; one = one.act) subs.push(one.sub);
  return JSON.stringify(subs);
}
