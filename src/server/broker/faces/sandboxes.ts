/** `/v1/sandboxes`: the caller's sandboxes as things to be listed, looked at, renamed, started, stopped and ended (S1). */

import type { RouteName } from '../../../protocol/routes.js';
import { type Sandbox, sandboxPatch, sandboxQuery } from '../../../protocol/shapes/sandboxes.js';
import { emptyRequest } from '../../../protocol/shapes/sessions.js';
import type { Call, RouteCode } from '../../http/call.js';
import { Audit } from '../../store/audit.js';
import { type ListedSandbox, Sandboxes } from '../../store/sandboxes.js';
import type { HeldSandbox } from '../../store/sessions.js';
import { destroySandbox, endSandbox } from '../life/ends.js';
import { suspend } from '../life/suspend.js';
import { findOwnSandbox, findSandbox, noSandbox } from '../sandboxes/find.js';
import { stillStarting, type WakeParts, wake } from '../sandboxes/wake.js';
import { auditOf } from '../sessions/caller.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';

export function sandboxRoutes(parts: WakeParts): Partial<Record<RouteName, RouteCode>> {
  const { broker, replica } = parts;
  const { db } = broker;
  const own = (call: Call) => findOwnSandbox(db, call.parameter('sandbox_id'), callerOf(call));

  return {
    async listSandboxes(call) {
      const query = call.query(sandboxQuery);
      const page = pageAsked(query);
      const { sub: owner, tenant, threads } = call.principal;
      const filter = { tenant, owner, state: query.state, threadId: query.thread_id, threads };
      const found = await new Sandboxes(db).list(filter, { ...page, limit: page.limit + 1 });
      return { body: toPage(found, page, ({ sandbox }) => sandbox.id, toSandbox) };
    },

    async getSandbox(call) {
      const found = await findSandbox(db, call.parameter('sandbox_id'), callerOf(call));
      return { body: toSandbox(listed(found)) };
    },

    async renameSandbox(call) {
      const found = await own(call);
      const { name } = await call.body(sandboxPatch);
      const { id } = found.sandbox;
      const isRenamed = await db.transaction(async (tx) => {
        if (!(await new Sandboxes(tx).rename(id, name))) return false;
        const details = { name };
        const who = auditOf(callerOf(call), found.session);
        await new Audit(tx).record({ event: 'sandbox.renamed', ...who, details });
        return true;
      });
      if (!isRenamed) throw noSandbox();
      return { body: toSandbox(listed({ ...found, sandbox: { ...found.sandbox, name } })) };
    },

    async deleteSandbox(call) {
      const { sandbox, access } = await own(call);
      const by = callerOf(call);
      const reason = access.kind === 'admin' ? 'killed' : 'released';
      const ended = await db.transaction((tx) =>
        endSandbox(tx, sandbox.id, { kind: 'ended', by }, reason),
      );
      if (ended === undefined) throw noSandbox();
      await destroySandbox(broker, replica, ended);
      return { status: 204 };
    },

    async startSandbox(call) {
      await call.body(emptyRequest);
      const found = await own(call);
      const sandbox = await wake(parts, found, callerOf(call), call.exchange.signal);
      return { body: toSandbox(listed({ ...found, sandbox })) };
    },

    async stopSandbox(call) {
      await call.body(emptyRequest);
      const found = await own(call);
      await suspend(broker, replica, found.sandbox.id, callerOf(call));
      const sandbox = await new Sandboxes(db).find(found.sandbox.id);
      if (sandbox === undefined || sandbox.endedAtMs !== undefined) throw noSandbox();
      if (sandbox.state === 'provisioning') throw stillStarting();
      return { body: toSandbox(listed({ ...found, sandbox })) };
    },
  };
}

function listed({ sandbox, session }: Pick<HeldSandbox, 'sandbox' | 'session'>): ListedSandbox {
  return { sandbox, sessionId: session.id, threadId: session.threadId };
}

export function toSandbox({ sandbox, sessionId, threadId }: ListedSandbox): Sandbox {
  return {
    id: sandbox.id,
    ...(sandbox.name !== undefined && { name: sandbox.name }),
    provider: sandbox.provider,
    state: sandbox.state,
    ...(threadId !== undefined && { thread_id: threadId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    owner: sandbox.owner,
    ...(sandbox.template !== undefined && { template: sandbox.template }),
    created_at: timeOf(sandbox.createdAtMs),
    last_active_at: timeOf(sandbox.lastActiveAtMs),
    lease_expires_at: timeOf(sandbox.leaseExpiresAtMs),
    expires_at: timeOf(sandbox.hardExpiresAtMs),
  };
}
