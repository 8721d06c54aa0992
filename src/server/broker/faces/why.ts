/** `GET /v1/sandboxes/{sandbox_id}/why`: what keeps a sandbox alive. */
import type { SandboxWhy } from '../../../protocol/shapes/sandboxes.js';
import type { RouteCode } from '../../http/call.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import { explain, type Why } from '../life/why.js';
import type { BrokerParts, Replica } from '../parts.js';
import { findSandbox } from '../sandboxes/find.js';
import { callerOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';

export function whyRoutes(
  broker: BrokerParts,
  replica: Replica,
): Record<'explainSandbox', RouteCode> {
  return {
    explainSandbox: async (call) => {
      const id = call.parameter('sandbox_id');
      const { session, sandbox } = await findSandbox(broker.db, id, callerOf(call));
      return { body: toWire(session, sandbox, await explain(broker, replica, sandbox)) };
    },
  };
}

function toWire(session: SessionRecord, sandbox: SandboxRecord, why: Why): SandboxWhy {
  return {
    sandbox_id: sandbox.id,
    session_id: session.id,
    thread_id: session.threadId,
    state: sandbox.state,
    now: timeOf(why.nowMs),
    last_active_at: timeOf(sandbox.lastActiveAtMs),
    kept_by: why.keptBy.map(({ by, count, untilMs }) => ({
      by,
      ...(count !== undefined && { count }),
      ...(untilMs !== undefined && { until: timeOf(untilMs) }),
    })),
    activity_known: why.isActivityKnown,
    next: {
      at: timeOf(why.next.atMs),
      state: why.next.state,
      because: why.next.because,
    },
    expires_at: timeOf(sandbox.hardExpiresAtMs),
    idle_timeout_seconds: Math.round(sandbox.idleTimeoutMs / 1000),
  };
}
