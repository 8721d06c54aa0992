/** What a caller may do at a sandbox: its tenant must be let in, then requested ∩ scopes ∩ client ceiling ∩ actor ∩ grant. */
import {
  type ActorType,
  type Capability,
  DEFAULT_CAPABILITIES,
  grantCapabilities,
  type Vocabulary,
} from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { Principal } from '../../../protocol/principal.js';
import type { Adjustment } from '../../../protocol/shapes/envelope.js';
import { Audit } from '../../store/audit.js';
import { ceilingOf } from '../../store/client-policies.js';
import type { Db } from '../../store/db.js';
import { type Tenant, toTenant } from '../../store/tenants.js';

/** What is set for a caller: read in one go, before anything is decided. */
export interface CallerPolicy {
  readonly tenant: Tenant;
  /** Of the caller's OAuth client; undefined: no limit of its own. */
  readonly ceiling: readonly Capability[] | undefined;
}

export interface PolicyQuestion {
  readonly principal: Principal;
  /** Whose sandbox it is about, where that may be another's: an administrator's case. */
  readonly tenant?: string | undefined;
  readonly threadId?: string | undefined;
  readonly requestId?: string | undefined;
}

/**
 * Refuses with FORBIDDEN where the tenant has no policy or is switched off, and records that. To be asked outside a
 * transaction: the record must stay when what was asked for is undone.
 */
export async function requirePolicy(db: Db, question: PolicyQuestion): Promise<CallerPolicy> {
  const { principal, threadId, requestId } = question;
  const tenantId = question.tenant ?? principal.tenant;
  const [row] = await db.query(
    `SELECT tenants.*, sandbox_client_config.capability_ceiling FROM tenants
      LEFT JOIN sandbox_client_config ON sandbox_client_config.client_id = ? WHERE tenants.id = ?`,
    [principal.clientId, tenantId],
  );
  const tenant = row && toTenant(row);
  if (row !== undefined && tenant?.isSandboxEnabled) return { tenant, ceiling: ceilingOf(row) };
  const reason = tenant === undefined ? 'no policy' : 'switched off';
  await new Audit(db).record({
    event: 'policy.refused',
    tenant: tenantId,
    subject: principal.sub,
    actor: principal.act?.sub,
    clientId: principal.clientId,
    requestId,
    jti: principal.jti,
    threadId,
    details: { reason },
  });
  throw new AilsdError('FORBIDDEN', 'sandboxes are not enabled for this tenant', {
    internal: `tenant: ${reason}`,
    hint: 'ask an administrator to enable sandboxes for the tenant',
  });
}

export interface CapabilityQuestion {
  readonly principal: Principal;
  /** What the request says; it can make an agent of a human, never a human of an agent. */
  readonly actor?: ActorType | undefined;
  /** In either vocabulary; absent: what such an actor gets by default. */
  readonly requested?: readonly string[] | undefined;
  readonly vocabulary?: Vocabulary | undefined;
  /** What a grant gives, where the caller is not the owner. */
  readonly grant?: readonly Capability[] | undefined;
  /** How the request calls the list: `requested_capabilities` or `scopes`. */
  readonly field?: string | undefined;
}

export interface Decision {
  readonly actor: ActorType;
  /** Canonical, for the token. */
  readonly capabilities: readonly Capability[];
  /** The same in the words of the request. */
  readonly words: readonly string[];
  /** What was asked for and is less, or not there. */
  readonly adjustments: readonly Adjustment[];
}

/** FORBIDDEN when nothing is left. */
export function decideCapabilities(
  { ceiling }: Pick<CallerPolicy, 'ceiling'>,
  question: CapabilityQuestion,
): Decision {
  const { principal, vocabulary, grant } = question;
  const actor = actorOf(principal, question.actor);
  const requested = question.requested ?? DEFAULT_CAPABILITIES[actor];
  const granted = grantCapabilities({
    requested,
    scopes: principal.scopes,
    ceiling,
    actorPolicy: ACTOR_POLICIES[actor],
    grant,
    vocabulary,
  });
  const { capabilities, words, downgraded, denied } = granted;
  if (capabilities.length === 0)
    throw new AilsdError('FORBIDDEN', 'nothing of what was asked for is allowed', {
      details: { denied: [...requested].slice(0, MOST_NAMED) },
      hint: 'log in again with the missing scope, or ask the owner for the capability',
    });
  // Without a request there is nothing to differ from.
  if (question.requested === undefined) return { actor, capabilities, words, adjustments: [] };
  const field = question.field ?? 'requested_capabilities';
  const adjustments = [
    ...downgraded.map((one) => ({ field, ...one })),
    ...denied.map((one) => ({ field, requested: one, granted: null })),
  ].slice(0, MOST_NAMED);
  return { actor, capabilities, words, adjustments };
}

/** Whoever acts for somebody is an agent, whatever it says of itself. */
export function actorOf(principal: Principal, said: ActorType | undefined): ActorType {
  if (principal.kind === 'agent' || principal.act !== undefined) return 'agent';
  return said ?? 'human';
}

/** The most an actor may do whatever else allows it. An agent works inside: it needs no way in for outside connections. */
const ACTOR_POLICIES: Readonly<Record<ActorType, readonly Capability[] | undefined>> = {
  human: undefined,
  agent: ['fs:rw', 'shell', 'process', 'snapshot'],
};

const MOST_NAMED = 32;
