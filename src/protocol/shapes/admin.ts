/** What administrators see and set: tenants, quotas, clients, trusted workloads, the audit; and what monitoring reads. */
import * as z from 'zod/mini';
import { argv, env, text } from '../frame-fields.js';
import { SCOPES } from '../scopes.js';
import { AUDIT_RETENTION_DAYS, ENVIRONMENTS, QUOTA_DEFAULTS } from './code.js';
import { pageOf, pageQuery } from './envelope.js';
import {
  dictionary,
  grantedCapabilities,
  httpBaseUrl,
  maybe,
  name,
  plainId,
  principalId,
  sandboxId,
  sessionId,
  threadId,
  timestamp,
} from './fields.js';
import { sandbox, sandboxQuery } from './sandboxes.js';

const scopes = z.array(z.enum(Object.keys(SCOPES))).check(z.maxLength(16));

export const adminSandboxQuery = z.extend(sandboxQuery, {
  tenant: z.optional(name),
  owner: z.optional(principalId),
});

export const adminSandbox = z.extend(sandbox, { tenant: name });

export const adminSandboxPage = pageOf(adminSandbox);

/** A tenant without a row may not run code: no policy, no access. */
export const tenantPolicy = z.object({
  id: name,
  sandbox_enabled: z.boolean(),
  environment: z.enum(ENVIRONMENTS),
  /** `opaque` tokens are asked about at each use, so that a revocation counts at once. */
  token_mode: z.enum(['jwt', 'opaque']),
  audit_retention_days: z.int().check(z.minimum(1), z.maximum(AUDIT_RETENTION_DAYS.max)),
});

export type TenantPolicy = z.output<typeof tenantPolicy>;

export const tenantPatch = z.partial(z.omit(tenantPolicy, { id: true }));

const cap = z.int().check(z.minimum(0), z.maximum(1_000_000_000));

/** The caps of one tenant; without `tenant`, the caps of those that have none of their own. */
export const quota = z.object({
  tenant: z.optional(name),
  tenant_daily: cap.check(z.describe(`calls a UTC day, ${QUOTA_DEFAULTS.tenant_daily} by default`)),
  agent_hourly: cap.check(
    z.describe(`calls a UTC hour, ${QUOTA_DEFAULTS.agent_hourly} by default`),
  ),
});

export type Quota = z.output<typeof quota>;

export const quotaPage = pageOf(quota);

/** A cap that is left out stays as it is. */
export const quotaPatch = z.partial(quota);

/** A row of `sandbox_client_config`. A client without one gets no sidecar and nothing injected. */
export const clientPolicy = z.object({
  client_id: principalId,
  sidecar: z.nullable(
    z.object({
      image: text(1, 512),
      command: z.optional(argv.check(z.meta({ type: 'array', items: { type: 'string' } }))),
      /** Of the sidecar's own token. */
      audience: text(1, 2048),
      scopes: z.array(text(1, 128)).check(z.maxLength(32)),
    }),
  ),
  /** Injected into the user's container. */
  environment: env.check(z.meta({ type: 'object', additionalProperties: { type: 'string' } })),
  /** The most a token of this client may do; null for no limit of its own. */
  capability_ceiling: z.nullable(grantedCapabilities),
});

export type ClientPolicy = z.output<typeof clientPolicy>;

export const clientPolicyRequest = z.omit(clientPolicy, { client_id: true });

export const clientPolicyPage = pageOf(clientPolicy);

/** Lets ID tokens of a CI system in as a service principal, when issuer, audience and every claim rule match. */
export const workloadTrustRequest = z.object({
  issuer: httpBaseUrl,
  audience: text(1, 2048),
  claims: dictionary(text(1, 128), text(1, 1024), 32),
  /** Who such a token becomes. */
  subject: principalId,
  tenant: name,
  scopes,
});

export const workloadTrust = z.extend(workloadTrustRequest, { id: plainId, created_at: timestamp });

export type WorkloadTrust = z.output<typeof workloadTrust>;

export const workloadTrustPage = pageOf(workloadTrust);

export const auditQuery = z.extend(pageQuery, {
  since: z.optional(timestamp),
  until: z.optional(timestamp),
  tenant: z.optional(name),
  sub: z.optional(principalId),
  event: z.optional(text(1, 64)),
  thread_id: z.optional(threadId),
  session_id: z.optional(sessionId),
  /** `jsonl` exports everything that matches, one object a line. */
  format: z.optional(z.enum(['json', 'jsonl'])),
});

/** Something that happened. It names tokens by `jti` alone. */
export const auditEvent = z.object({
  id: plainId,
  at: timestamp,
  event: text(1, 64),
  tenant: maybe(name),
  sub: maybe(principalId),
  /** Who acted for `sub`. */
  actor: maybe(principalId),
  client_id: maybe(principalId),
  request_id: maybe(plainId),
  jti: maybe(plainId),
  thread_id: maybe(threadId),
  session_id: maybe(sessionId),
  sandbox_id: maybe(sandboxId),
  details: maybe(
    dictionary(text(1, 64), z.union([text(0, 4096), z.number(), z.boolean(), z.null()]), 64),
  ),
});

export type AuditEvent = z.output<typeof auditEvent>;

export const auditPage = pageOf(auditEvent);

/** Says that it is up, or ready, and nothing about what is inside. */
export const healthAnswer = z.object({ status: z.enum(['ok', 'unavailable']) });
