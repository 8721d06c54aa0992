/** A fresh token for one in hand: the same or fewer capabilities, while the one before goes on for the overlap. */
import type { Secret } from '../../../base/secret.js';
import { parseCapabilities } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import {
  clampTtl,
  REFRESH_OVERLAP_SECONDS,
  SANDBOX_TOKEN_SECONDS,
} from '../../../protocol/lifetimes.js';
import type { Adjustment } from '../../../protocol/shapes/envelope.js';
import type { GrantRecord } from '../../store/grants.js';
import { type IssuedToken, IssuedTokens } from '../../store/issued-tokens.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import type { AccessDelivery } from '../access/delivery.js';
import { type CallerPolicy, type Decision, decideCapabilities } from '../policy/decide.js';
import type { Caller } from '../sessions/caller.js';
import type { Minted, MintToken } from './mint.js';
import { isSameHolder, type ProofParts, requireProof } from './proof.js';

export interface RefreshParts extends ProofParts {
  readonly mint: MintToken;
  readonly delivery: AccessDelivery;
}

export interface RefreshRequest {
  readonly caller: Caller;
  readonly policy: CallerPolicy;
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord;
  /** Which lets the caller in, where that is not the owner. */
  readonly grant?: GrantRecord | undefined;
  /** Absent where the route does not ask for proof: then the one token the caller holds is meant, if it is one. */
  readonly currentToken?: Secret | undefined;
  /** As it was asked for. */
  readonly ttl?: number | undefined;
}

export interface Renewed extends Minted, Pick<Decision, 'capabilities' | 'words' | 'adjustments'> {}

export async function refreshToken(parts: RefreshParts, request: RefreshRequest): Promise<Renewed> {
  const { db, mint, delivery } = parts;
  const { caller, policy, session, sandbox, grant, currentToken: token, ttl } = request;
  const before =
    token === undefined
      ? await findHeld(parts, request)
      : await requireProof(parts, { caller, session, sandbox, token, age: 'lease' });
  const { principal, requestId } = caller;
  const decision = decideCapabilities(policy, {
    principal,
    requested: before && parseCapabilities(before.scope),
    grant: grant?.capabilities,
  });
  const ttlSeconds = ttl === undefined ? lifeOf(before) : clampTtl(ttl);
  const minted = await db.transaction(async (tx) => {
    const fresh = await mint(tx, {
      session,
      sandbox,
      principal,
      capabilities: decision.capabilities,
      ttlSeconds,
      tokenMode: policy.tenant.tokenMode,
      grantId: grant?.id ?? before?.grantId,
      replaces: before?.jti,
      parent: before?.parent,
      notAfterMs: earlier(before?.notAfterMs, grant?.expiresAtMs),
      requestId,
    });
    if (before === undefined) return fresh;
    const overlapMs = REFRESH_OVERLAP_SECONDS * 1000;
    const issued = new IssuedTokens(tx);
    // Somebody may have ended it since it was looked at; a second refresh within the overlap is none of that.
    const isReplaced = await issued.replace(before.jti, fresh.jti, overlapMs);
    if (!isReplaced && !(await isInOverlap(issued, before, await tx.now())))
      throw new AilsdError('FORBIDDEN', 'the current token has been ended');
    if (isReplaced) await new SandboxAccess(tx).bump(sandbox.id);
    return fresh;
  });
  delivery.deliverSoon(sandbox.id);
  const { capabilities, words } = decision;
  const adjustments = [...decision.adjustments, ...ttlAdjustment(ttl, minted)];
  return { ...minted, capabilities, words, adjustments };
}

/** Of several that the caller holds none can be told to be the one that is meant: then none is replaced. */
async function findHeld(
  { db }: RefreshParts,
  { session, caller, sandbox }: RefreshRequest,
): Promise<IssuedToken | undefined> {
  const { principal } = caller;
  const held = await new IssuedTokens(db).listHeld(session.id, principal.sub, HELD_LOOKED_AT);
  const own = held.filter(
    (token) =>
      isSameHolder(token, principal) &&
      token.clientId === principal.clientId &&
      token.keyGeneration === sandbox.keyGeneration,
  );
  const [only] = own;
  return own.length === 1 ? only : undefined;
}

const HELD_LOOKED_AT = 50;

async function isInOverlap(
  issued: IssuedTokens,
  { jti }: IssuedToken,
  nowMs: number,
): Promise<boolean> {
  const token = await issued.find(jti);
  return token?.replacedBy !== undefined && (token.endsAtMs ?? 0) > nowMs;
}

/** As long as the one before was given. */
function lifeOf(before: IssuedToken | undefined): number {
  if (before === undefined) return SANDBOX_TOKEN_SECONDS.max;
  return clampTtl((before.expiresAtMs - before.issuedAtMs) / 1000);
}

export function earlier(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

/** Said when the token lives longer or shorter than was asked for. */
export function ttlAdjustment(
  ttl: number | undefined,
  { issuedAtMs, expiresAtMs }: Minted,
): readonly Adjustment[] {
  const granted = (expiresAtMs - issuedAtMs) / 1000;
  return ttl === undefined || ttl === granted ? [] : [{ field: 'ttl', requested: ttl, granted }];
}
