/** Who is on a connection, as a verified sandbox token says. */
import type { Secret } from '../../../base/secret.js';
import {
  type ActorType,
  allows,
  CAPABILITIES,
  type Capability,
  isCapability,
} from '../../../protocol/capabilities.js';
import type { SandboxClaims } from '../../../protocol/claims.js';

export interface Identity {
  /** Whose access this is; an agent's is its delegator's. */
  readonly subject: string;
  readonly actor: ActorType;
  /** Who acts: a person, or the agent that acts for one. */
  readonly name: string;
  readonly capabilities: readonly Capability[];
  /** The same with what they imply: asked for each frame. */
  readonly allowed: ReadonlySet<Capability>;
  readonly jti: string;
  readonly expiresAtMs: number;
  /** To be looked at again whenever whose tokens count has changed. */
  readonly token: Secret;
}

export function toIdentity(
  claims: SandboxClaims,
  capabilities: readonly Capability[],
  token: Secret,
): Identity {
  const { sub, act, jti, exp } = claims;
  return {
    subject: sub,
    actor: act === undefined ? 'human' : 'agent',
    name: act?.sub ?? sub,
    capabilities,
    allowed: new Set(CAPABILITY_NAMES.filter((name) => allows(capabilities, name))),
    jti,
    expiresAtMs: exp * 1_000,
    token,
  };
}

const CAPABILITY_NAMES = Object.keys(CAPABILITIES).filter(isCapability);

/** Whether a fresh token may go on where another's connection was. */
export function isSamePerson(a: Identity, b: Identity): boolean {
  return a.subject === b.subject && a.actor === b.actor && a.name === b.name;
}
