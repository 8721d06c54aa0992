/** What a sandbox is told about an opaque token, once it has proven which sandbox it is. */
import type { Secret } from '../../../base/secret.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxId } from '../../../protocol/ids.js';
import { LEEWAY_SECONDS } from '../../../protocol/lifetimes.js';
import type { OpaqueTokenAnswer } from '../../../protocol/shapes/internal.js';
import type { Db } from '../../store/db.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import { Sessions } from '../../store/sessions.js';
import { isSandboxAssertion, sandboxOfAssertion } from '../../tokens/sandbox-assertion.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';

export interface OpaqueParts {
  readonly db: Db;
  readonly keys: SandboxKeys;
}

/** The sandbox that signed the assertion; UNAUTHENTICATED, always in the same words, for anything else. */
export async function verifySandbox(
  { db, keys }: OpaqueParts,
  assertion: Secret,
): Promise<SandboxId> {
  const said = sandboxOfAssertion(assertion);
  const record = said === undefined ? undefined : await new SandboxAccess(db).find(said);
  if (record !== undefined) {
    const { sandboxId, keyGeneration } = record;
    const nowMs = await db.now();
    // One that has not been told of its new key yet proves itself by the one before.
    for (const generation of [keyGeneration, Math.max(1, keyGeneration - 1)]) {
      const key = keys.keyOf(sandboxId, generation);
      if (isSandboxAssertion(assertion, key, { sandboxId, nowMs })) return sandboxId;
    }
  }
  throw new AilsdError('UNAUTHENTICATED', 'that is not one of our sandboxes');
}

/** Unknown, expired, ended, of an older key and of another sandbox are all the same: not active. */
export async function checkOpaqueToken(
  { db }: Pick<OpaqueParts, 'db'>,
  sandboxId: SandboxId,
  hash: string,
): Promise<OpaqueTokenAnswer> {
  const token = await new IssuedTokens(db).findByHash(hash);
  if (token === undefined || token.sandboxId !== sandboxId) return NOT_ACTIVE;
  const access = await new SandboxAccess(db).find(sandboxId);
  const held = await new Sessions(db).find(token.sessionId);
  if (held === undefined || held.session.endedAtMs !== undefined) return NOT_ACTIVE;
  const { session, nowMs } = held;
  const isOver =
    token.keyGeneration !== access?.keyGeneration ||
    token.expiresAtMs + LEEWAY_SECONDS.sandbox * 1000 <= nowMs ||
    (token.endsAtMs !== undefined && token.endsAtMs <= nowMs);
  if (isOver) return NOT_ACTIVE;
  return {
    active: true,
    sub: token.subject,
    aud: sandboxId,
    scope: token.scope,
    thread_id: session.threadId,
    room: session.threadId,
    exp: token.expiresAtMs / 1000,
    iat: token.issuedAtMs / 1000,
    jti: token.jti,
    ...(token.act && { act: token.act }),
  };
}

const NOT_ACTIVE: OpaqueTokenAnswer = { active: false };
