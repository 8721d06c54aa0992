/** `/admin/*` but the audit: everybody's sandboxes, tenants, clients and trusted workloads. Every change is recorded. */
import { isCapability } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId } from '../../../protocol/ids.js';
import type { RouteName } from '../../../protocol/routes.js';
import { isScope } from '../../../protocol/scopes.js';
import {
  adminSandboxQuery,
  type ClientPolicy,
  clientPolicyRequest,
  type TenantPolicy,
  type WorkloadTrust as TrustShape,
  tenantPatch,
  workloadTrustRequest,
} from '../../../protocol/shapes/admin.js';
import { AUDIT_RETENTION_DAYS } from '../../../protocol/shapes/code.js';
import { pageQuery } from '../../../protocol/shapes/envelope.js';
import type { Call, RouteCode } from '../../http/call.js';
import { Audit } from '../../store/audit.js';
import { ClientPolicies, type ClientPolicyRow } from '../../store/client-policies.js';
import type { Db } from '../../store/db.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import { Sandboxes } from '../../store/sandboxes.js';
import { type Tenant, Tenants } from '../../store/tenants.js';
import { type Trust, WorkloadTrust } from '../../store/workload-trust.js';
import { destroySandbox, endSandbox } from '../life/ends.js';
import type { BrokerParts, Replica } from '../parts.js';
import { noSandbox } from '../sandboxes/find.js';
import { auditOf } from '../sessions/caller.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf } from './request-headers.js';
import { toSandbox } from './sandboxes.js';
import { timeOf } from './session-shapes.js';

export function adminRoutes(
  parts: BrokerParts,
  replica: Replica,
): Partial<Record<RouteName, RouteCode>> {
  return {
    ...everybodysSandboxes(parts, replica),
    ...tenantRoutes(parts),
    ...clientRoutes(parts),
    ...trustRoutes(parts),
  };
}

function everybodysSandboxes(parts: BrokerParts, replica: Replica) {
  const { db } = parts;
  return {
    async listAllSandboxes(call) {
      const query = call.query(adminSandboxQuery);
      const page = pageAsked(query);
      const { tenant, owner, state, thread_id: threadId } = query;
      const filter = { tenant, owner, state, threadId };
      const found = await new Sandboxes(db).list(filter, { ...page, limit: page.limit + 1 });
      await recordAdmin(db, call, 'admin.listed_sandboxes', { shown: found.length });
      const toWire = (one: (typeof found)[number]) => ({
        ...toSandbox(one),
        tenant: one.sandbox.tenant,
      });
      return { body: toPage(found, page, ({ sandbox }) => sandbox.id, toWire) };
    },

    async killSandbox(call) {
      const found = await new Sandboxes(db).find(call.parameter('sandbox_id'));
      if (found === undefined || found.endedAtMs !== undefined) throw noSandbox();
      const by = callerOf(call);
      const ended = await db.transaction((tx) =>
        endSandbox(tx, found.id, { kind: 'ended', by }, 'killed'),
      );
      if (ended === undefined) throw noSandbox();
      await destroySandbox(parts, replica, ended);
      return { status: 204 };
    },
  } satisfies Partial<Record<RouteName, RouteCode>>;
}

function tenantRoutes({ db }: BrokerParts) {
  return {
    async getTenant(call) {
      const tenant = await new Tenants(db).find(call.parameter('tenant_id'));
      if (tenant === undefined) throw nothing('tenant');
      return { body: toTenantPolicy(tenant) };
    },

    /** A tenant that has none yet gets one: shut, until the patch says otherwise. */
    async setTenant(call) {
      const patch = await call.body(tenantPatch);
      const id = call.parameter('tenant_id');
      const tenant = await db.transaction(async (tx) => {
        const tenants = new Tenants(tx);
        const before = (await tenants.find(id)) ?? { id, ...NEW_TENANT };
        const after: Tenant = {
          id,
          isSandboxEnabled: patch.sandbox_enabled ?? before.isSandboxEnabled,
          environment: patch.environment ?? before.environment,
          tokenMode: patch.token_mode ?? before.tokenMode,
          auditRetentionDays: patch.audit_retention_days ?? before.auditRetentionDays,
        };
        await tenants.put(after);
        // Switched off: every token of the tenant dies as its sandboxes get new keys.
        if (before.isSandboxEnabled && !after.isSandboxEnabled)
          await new SandboxAccess(tx).rotateKeysOf(id);
        await recordAdmin(tx, call, 'tenant.changed', { ...toTenantPolicy(after) });
        return after;
      });
      return { body: toTenantPolicy(tenant) };
    },
  } satisfies Partial<Record<RouteName, RouteCode>>;
}

const NEW_TENANT = {
  isSandboxEnabled: false,
  environment: 'default-public',
  tokenMode: 'jwt',
  auditRetentionDays: AUDIT_RETENTION_DAYS.default,
} as const;

function toTenantPolicy(tenant: Tenant): TenantPolicy {
  return {
    id: tenant.id,
    sandbox_enabled: tenant.isSandboxEnabled,
    environment: tenant.environment,
    token_mode: tenant.tokenMode,
    audit_retention_days: tenant.auditRetentionDays,
  };
}

function clientRoutes({ db }: BrokerParts) {
  return {
    async listClients(call) {
      const page = pageAsked(call.query(pageQuery));
      const found = await new ClientPolicies(db).list(page.limit + 1, page.after);
      return { body: toPage(found, page, ({ clientId }) => clientId, toClientPolicy) };
    },

    async getClient(call) {
      const policy = await new ClientPolicies(db).find(call.parameter('client_id'));
      if (policy === undefined) throw nothing('client with a policy');
      return { body: toClientPolicy(policy) };
    },

    async setClient(call) {
      const asked = await call.body(clientPolicyRequest);
      const { capability_ceiling: words, sidecar, environment } = asked;
      const unknown = words?.find((word) => !isCapability(word));
      if (unknown !== undefined)
        throw new AilsdError('INVALID_REQUEST', 'the ceiling holds a word that is no capability', {
          details: { field: 'capability_ceiling' },
        });
      const policy: ClientPolicyRow = {
        clientId: call.parameter('client_id'),
        sidecar: sidecar ?? undefined,
        environment,
        ceiling: words?.filter(isCapability),
      };
      await db.transaction(async (tx) => {
        await new ClientPolicies(tx).put(policy);
        // The values of variables may be anything, and so are not told.
        const details = {
          client: policy.clientId,
          sidecar: policy.sidecar?.image ?? null,
          variables: Object.keys(environment).join(' ').slice(0, 1024),
          ceiling: words?.join(' ') ?? null,
        };
        await recordAdmin(tx, call, 'client.changed', details);
      });
      return { body: toClientPolicy(policy) };
    },

    async deleteClient(call) {
      const client = call.parameter('client_id');
      await db.transaction(async (tx) => {
        if (!(await new ClientPolicies(tx).remove(client))) throw nothing('client with a policy');
        await recordAdmin(tx, call, 'client.removed', { client });
      });
      return { status: 204 };
    },
  } satisfies Partial<Record<RouteName, RouteCode>>;
}

function toClientPolicy(policy: ClientPolicyRow): ClientPolicy {
  const { sidecar } = policy;
  return {
    client_id: policy.clientId,
    sidecar:
      sidecar === undefined
        ? null
        : {
            image: sidecar.image,
            ...(sidecar.command !== undefined && { command: [...sidecar.command] }),
            audience: sidecar.audience,
            scopes: [...sidecar.scopes],
          },
    environment: { ...policy.environment },
    capability_ceiling: policy.ceiling === undefined ? null : [...policy.ceiling],
  };
}

function trustRoutes({ db, random }: BrokerParts) {
  return {
    async listWorkloadTrust(call) {
      const page = pageAsked(call.query(pageQuery));
      const found = await new WorkloadTrust(db).list(page.limit + 1, page.after);
      return { body: toPage(found, page, ({ id }) => id, toTrust) };
    },

    async addWorkloadTrust(call) {
      const asked = await call.body(workloadTrustRequest);
      const { issuer, audience, claims, subject, tenant } = asked;
      if (Object.keys(claims).length === 0)
        throw new AilsdError('INVALID_REQUEST', 'a trust without claims would let every job in', {
          details: { field: 'claims' },
        });
      const trust = {
        id: newId('grant', random).replace(/^grant_/, 'trust_'),
        issuer,
        audience,
        claims,
        clientId: subject,
        tenant,
        scopes: asked.scopes.filter(isScope),
      };
      const createdAtMs = await db.transaction(async (tx) => {
        await new WorkloadTrust(tx).add(trust);
        const { id, scopes } = trust;
        const details = { id, issuer, audience, subject, tenant, scopes: scopes.join(' ') };
        await recordAdmin(tx, call, 'trust_added', details);
        return tx.now();
      });
      return { status: 201, body: toTrust({ ...trust, createdAtMs }) };
    },

    async deleteWorkloadTrust(call) {
      const id = call.parameter('trust_id');
      await db.transaction(async (tx) => {
        if (!(await new WorkloadTrust(tx).remove(id))) throw nothing('trust');
        await recordAdmin(tx, call, 'trust_removed', { id });
      });
      return { status: 204 };
    },
  } satisfies Partial<Record<RouteName, RouteCode>>;
}

function toTrust(trust: Trust): TrustShape {
  return {
    id: trust.id,
    issuer: trust.issuer,
    audience: trust.audience,
    claims: Object.fromEntries(
      Object.entries(trust.claims).map(([name, value]) => [name, String(value)]),
    ),
    subject: trust.clientId,
    tenant: trust.tenant,
    scopes: [...trust.scopes],
    created_at: timeOf(trust.createdAtMs),
  };
}

function recordAdmin(
  db: Db,
  call: Call,
  event: string,
  details: Readonly<Record<string, string | number | boolean | null>>,
): Promise<void> {
  return new Audit(db).record({ event, ...auditOf(callerOf(call)), details });
}

function nothing(what: string): AilsdError {
  return new AilsdError('NOT_FOUND', `there is no such ${what}`);
}
