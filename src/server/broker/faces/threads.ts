/** `/threads/{thread_id}/sandbox` (S3): the same sessions, asked for by thread and answered with endpoints and scopes. */
import { Secret } from '../../../base/secret.js';
import { parseThreadId } from '../../../protocol/ids.js';
import { underBaseUrl } from '../../../protocol/routes.js';
import {
  type ThreadSandboxAnswer,
  type ThreadSandboxRequest,
  threadRefreshRequest,
  threadSandboxRequest,
} from '../../../protocol/shapes/threads.js';
import type { Call, RouteCode } from '../../http/call.js';
import { type FoundSession, findThreadSession, noSession } from '../sessions/find.js';
import { heartbeat } from '../sessions/heartbeat.js';
import type { Negotiated, NegotiationMode } from '../sessions/negotiation.js';
import { refreshSession } from '../sessions/refresh.js';
import { releaseSession } from '../sessions/release.js';
import type { FaceParts } from './face-parts.js';
import { callerOf, idempotencyKeyOf, waitMsOf } from './request-headers.js';
import { type PlaceOf, timeOf, toHeartbeatAnswer } from './session-shapes.js';
import { noteSession } from './sessions.js';

type ThreadRoute =
  | 'negotiateThreadSandbox'
  | 'getThreadSandbox'
  | 'releaseThreadSandbox'
  | 'refreshThreadSandbox'
  | 'heartbeatThreadSandbox';

export function threadRoutes(parts: FaceParts): Record<ThreadRoute, RouteCode> {
  const { broker, replica, negotiator, place } = parts;
  const { db } = broker;
  const find = async (call: Call): Promise<FoundSession> => {
    const found = await findThreadSession(db, call.parameter('thread_id'), callerOf(call));
    noteSession(call, found);
    return found;
  };
  const negotiate = async (call: Call, mode: NegotiationMode, asked: ThreadSandboxRequest) => {
    const id = parseThreadId(call.parameter('thread_id'));
    const negotiated = await negotiator.negotiate({
      caller: callerOf(call),
      scope: { type: 'thread', id },
      mode,
      requested: asked.scopes,
      vocabulary: 'canonical',
      capabilitiesField: 'scopes',
      hint: asked.sandbox_id,
      hintField: 'sandbox_id',
      template: asked.template,
      ttl: asked.ttl,
      key:
        mode === 'get'
          ? undefined
          : idempotencyKeyOf(call, 'negotiateThreadSandbox', { ...asked, thread_id: id }),
      waitMs: waitMsOf(call),
      signal: call.exchange.signal,
    });
    noteSession(call, negotiated);
    return { body: toThreadAnswer(negotiated, place) };
  };
  return {
    negotiateThreadSandbox: async (call) =>
      negotiate(call, 'ensure', await call.body(threadSandboxRequest)),
    getThreadSandbox: (call) => negotiate(call, 'get', {}),
    releaseThreadSandbox: async (call) => {
      await releaseSession(broker, replica, await find(call), callerOf(call));
      return { status: 204 };
    },
    refreshThreadSandbox: async (call) => {
      const asked = await call.body(threadRefreshRequest);
      const found = await find(call);
      if (asked.sandbox_id !== undefined && asked.sandbox_id !== found.sandbox.id)
        throw noSession();
      const renewed = await refreshSession(parts.refresh, found, {
        caller: callerOf(call),
        currentToken: new Secret(asked.current_token),
        ttl: asked.ttl,
      });
      call.exchange.note({ token_jti: renewed.jti });
      return {
        body: {
          token: renewed.token.reveal(),
          expires_at: timeOf(renewed.expiresAtMs),
          refresh_before: timeOf(renewed.refreshBeforeMs),
        },
      };
    },
    heartbeatThreadSandbox: async (call) => {
      const found = await find(call);
      return { body: toHeartbeatAnswer(found.session, await heartbeat(db, found)) };
    },
  };
}

function toThreadAnswer(negotiated: Negotiated, place: PlaceOf): ThreadSandboxAnswer {
  const { session, sandbox, minted, words, adjustments } = negotiated;
  const { httpUrl, wsUrl } = place(sandbox);
  return {
    sandbox_id: sandbox.id,
    endpoints: { http: httpUrl, ws: underBaseUrl(wsUrl, '/ws') },
    token: minted.token.reveal(),
    expires_at: timeOf(minted.expiresAtMs),
    scopes: [...words],
    refresh_before: timeOf(minted.refreshBeforeMs),
    session_id: session.id,
    ...(adjustments.length > 0 && { adjustments: [...adjustments] }),
  };
}
