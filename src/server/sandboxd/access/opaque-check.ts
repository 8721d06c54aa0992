/** Asks the broker what an opaque token allows, naming it by its hash, and proving which sandbox asks. */
import type { Clock } from '../../../base/clock.js';
import type { Secret } from '../../../base/secret.js';
import { parseCapabilities } from '../../../protocol/capabilities.js';
import type { SandboxId, ThreadId } from '../../../protocol/ids.js';
import { parseAnswer } from '../../../protocol/parse.js';
import { opaqueTokenAnswer } from '../../../protocol/shapes/internal.js';
import { hashOpaqueToken } from '../../tokens/opaque-token.js';
import { signSandboxAssertion } from '../../tokens/sandbox-assertion.js';
import type { SandboxVerdict } from '../../tokens/sandbox-token.js';

export interface OpaqueCheckParts {
  /** `opaque_check_url` of `access.json`. */
  readonly checkUrl: string;
  readonly key: Uint8Array;
  readonly sandboxId: SandboxId;
  readonly threadId: ThreadId;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
  readonly signal: AbortSignal;
}

/** A broker that takes longer is away, and then nobody is let in. */
const ASK_MS = 3_000;
const ANSWER_MAX_CHARACTERS = 16_384;

/** `unknown`: the broker could not be asked. Never rejects, and remembers nothing: a revocation counts at once. */
export async function checkOpaqueToken(
  parts: OpaqueCheckParts,
  token: Secret,
): Promise<SandboxVerdict | { readonly kind: 'unknown' }> {
  const { checkUrl, key, sandboxId, threadId, clock, fetch, signal } = parts;
  const assertion = signSandboxAssertion(key, { sandboxId, nowMs: clock.now() });
  let body: unknown;
  try {
    const response = await fetch(`${checkUrl}/${hashOpaqueToken(token)}`, {
      headers: { Authorization: `Bearer ${assertion.reveal()}` },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]),
    });
    const text = await response.text();
    if (response.status !== 200 || text.length > ANSWER_MAX_CHARACTERS) return UNKNOWN;
    body = JSON.parse(text);
  } catch {
    return UNKNOWN;
  }
  const answer = parseAnswer(opaqueTokenAnswer, body);
  if (!answer.ok) return UNKNOWN;
  if (!answer.value.active) return { kind: 'invalid' };
  const { active: _, ...claims } = answer.value;
  const capabilities = parseCapabilities(claims.scope);
  const isForUs = claims.aud === sandboxId && claims.thread_id === threadId;
  if (!isForUs || capabilities === undefined) return { kind: 'invalid' };
  return { kind: 'valid', claims, capabilities };
}

const UNKNOWN = { kind: 'unknown' } as const;
