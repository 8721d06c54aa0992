/** `/admin/quotas`: the caps on code execution. They are read at every call, so that a change counts at once, everywhere. */
import { AilsdError } from '../../../protocol/errors.js';
import type { RouteName } from '../../../protocol/routes.js';
import { type Quota, quotaPatch } from '../../../protocol/shapes/admin.js';
import { pageQuery } from '../../../protocol/shapes/envelope.js';
import type { RouteCode } from '../../http/call.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { Quotas, type TenantCaps } from '../../store/quotas.js';
import { auditOf } from '../sessions/caller.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf } from './request-headers.js';

export function quotaRoutes(db: Db): Partial<Record<RouteName, RouteCode>> {
  return {
    async listQuotas(call) {
      const page = pageAsked(call.query(pageQuery));
      // The cursor of the first row, which has no name, would be none.
      const after = page.after === FIRST ? '' : page.after;
      const found = await new Quotas(db).list(page.limit + 1, after);
      return { body: toPage(found, page, ({ tenant }) => tenant ?? FIRST, toQuota) };
    },

    async setQuota(call) {
      const { tenant, tenant_daily: daily, agent_hourly: hourly } = await call.body(quotaPatch);
      if (daily === undefined && hourly === undefined)
        throw new AilsdError('INVALID_REQUEST', 'no cap is named', {
          details: { field: 'tenant_daily' },
        });
      const caps = await db.transaction(async (tx) => {
        const set = await new Quotas(tx).set(tenant, { tenantDaily: daily, agentHourly: hourly });
        const details = { ...toQuota(set), tenant: tenant ?? null };
        await new Audit(tx).record({
          event: 'quota.changed',
          ...auditOf(callerOf(call)),
          details,
        });
        return set;
      });
      return { body: toQuota(caps) };
    },
  };
}

/** No tenant's name begins so. */
const FIRST = '*';

function toQuota({ tenant, tenantDaily, agentHourly }: TenantCaps): Quota {
  return {
    ...(tenant !== undefined && { tenant }),
    tenant_daily: tenantDaily,
    agent_hourly: agentHourly,
  };
}
