/** For whoever comes with a sandbox's own token: checks it at the broker, as the sandbox itself would. */
import type { Secret } from '../../../base/secret.js';
import { type Capability, parseCapabilities } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { LEEWAY_SECONDS } from '../../../protocol/lifetimes.js';
import type { Db } from '../../store/db.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { Sessions } from '../../store/sessions.js';
import { hashOpaqueToken, isOpaqueToken } from '../../tokens/opaque-token.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';
import { verifySandboxToken } from '../../tokens/sandbox-token.js';

export interface Holder {
  readonly sandbox: SandboxRecord;
  readonly capabilities: readonly Capability[];
  readonly sub: string;
  readonly jti: string;
  readonly expiresAtMs: number;
}

/** UNAUTHENTICATED, in the same words for an unknown sandbox and a token that does not count; TOKEN_EXPIRED for a genuine one. */
export async function checkSandboxToken(
  { db, keys }: { readonly db: Db; readonly keys: SandboxKeys },
  sandboxId: string,
  token: Secret,
): Promise<Holder> {
  const held = await new Sessions(db).findBySandbox(sandboxId);
  if (held === undefined) throw refused();
  const { sandbox, session, nowMs } = held;
  const tokens = new IssuedTokens(db);
  let jti: string | undefined;
  if (!isOpaqueToken(token)) {
    const key = keys.keyOf(sandbox.id, sandbox.keyGeneration);
    const bounds = { sandboxId: sandbox.id, nowMs, threadId: session.threadId };
    const verdict = verifySandboxToken(token, [key], bounds);
    if (verdict.kind === 'expired') throw expired();
    if (verdict.kind === 'invalid') throw refused();
    jti = verdict.claims.jti;
  }
  const issued =
    jti === undefined ? await tokens.findByHash(hashOpaqueToken(token)) : await tokens.find(jti);
  const capabilities = issued && parseCapabilities(issued.scope);
  if (issued === undefined || capabilities === undefined) throw refused();
  if (issued.sandboxId !== sandbox.id || issued.keyGeneration !== sandbox.keyGeneration)
    throw refused();
  if (issued.endsAtMs !== undefined && issued.endsAtMs <= nowMs) throw refused();
  if (issued.expiresAtMs + LEEWAY_SECONDS.sandbox * 1_000 <= nowMs) throw expired();
  const { subject: sub, expiresAtMs } = issued;
  return { sandbox, capabilities, sub, jti: issued.jti, expiresAtMs };
}

/** Whether a token that was let in still counts. */
export async function stillCounts(db: Db, { jti, sandbox }: Holder): Promise<boolean> {
  const issued = await new IssuedTokens(db).find(jti);
  const held = await new Sessions(db).findBySandbox(sandbox.id);
  if (issued === undefined || held === undefined) return false;
  if (issued.keyGeneration !== held.sandbox.keyGeneration) return false;
  return issued.endsAtMs === undefined || issued.endsAtMs > held.nowMs;
}

function refused(): AilsdError {
  return new AilsdError('UNAUTHENTICATED', 'the token is not accepted');
}

function expired(): AilsdError {
  return new AilsdError('TOKEN_EXPIRED', 'the token has expired');
}
