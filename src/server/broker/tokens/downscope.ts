/** A narrower copy of a token in hand: fewer capabilities, no longer a life, and it ends with what it was made from. */
import type { Secret } from '../../../base/secret.js';
import { parseCapabilities } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { clampTtl, SANDBOX_TOKEN_SECONDS } from '../../../protocol/lifetimes.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import { type CallerPolicy, decideCapabilities } from '../policy/decide.js';
import type { Caller } from '../sessions/caller.js';
import type { MintToken } from './mint.js';
import { type ProofParts, requireProof } from './proof.js';
import { earlier, type Renewed, ttlAdjustment } from './refresh.js';

export interface DownscopeParts extends ProofParts {
  readonly mint: MintToken;
}

export interface DownscopeRequest {
  readonly caller: Caller;
  readonly policy: CallerPolicy;
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord;
  readonly currentToken: Secret;
  /** In either vocabulary. */
  readonly scopes: readonly string[];
  readonly ttl?: number | undefined;
}

export async function downscopeToken(
  parts: DownscopeParts,
  request: DownscopeRequest,
): Promise<Renewed> {
  const { caller, policy, session, sandbox, currentToken: token, scopes, ttl } = request;
  const proven = await requireProof(parts, { caller, session, sandbox, token, age: 'in-force' });
  const { principal, requestId } = caller;
  const decision = decideCapabilities(policy, {
    principal,
    requested: scopes,
    // What the token allows limits its copies as a grant would.
    grant: parseCapabilities(proven.scope) ?? [],
    field: 'scopes',
  });
  const minted = await parts.db.transaction(async (tx) => {
    if (!(await new IssuedTokens(tx).hold(proven.jti)))
      throw new AilsdError('FORBIDDEN', 'the current token has been ended');
    return parts.mint(tx, {
      session,
      sandbox,
      principal,
      capabilities: decision.capabilities,
      ttlSeconds: ttl === undefined ? SANDBOX_TOKEN_SECONDS.max : clampTtl(ttl),
      tokenMode: policy.tenant.tokenMode,
      grantId: proven.grantId,
      parent: proven.jti,
      notAfterMs: earlier(proven.expiresAtMs, proven.notAfterMs),
      requestId,
    });
  });
  const { capabilities, words } = decision;
  const adjustments = [...decision.adjustments, ...ttlAdjustment(ttl, minted)];
  return { ...minted, capabilities, words, adjustments };
}
