/** `/v1/sandbox/sessions` (S2): the MVP shape and the full one, over the same sessions. */
import { Secret } from '../../../base/secret.js';
import type { Face } from '../../../protocol/errors.js';
import { ROUTES, type RouteName } from '../../../protocol/routes.js';
import { pageQuery } from '../../../protocol/shapes/envelope.js';
import {
  faceOf,
  type NegotiateRequest,
  negotiateRequest,
  refreshRequest,
} from '../../../protocol/shapes/sessions.js';
import type { Answer, Call, RouteCode } from '../../http/call.js';
import { requireScope } from '../../http/principal.js';
import { Sessions } from '../../store/sessions.js';
import { type FoundSession, findSession } from '../sessions/find.js';
import { heartbeat } from '../sessions/heartbeat.js';
import type { Negotiation } from '../sessions/negotiation.js';
import { refreshSession } from '../sessions/refresh.js';
import { releaseSession } from '../sessions/release.js';
import { inFace } from './face-errors.js';
import type { FaceParts } from './face-parts.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf, idempotencyKeyOf, waitMsOf } from './request-headers.js';
import {
  toHeartbeatAnswer,
  toRefreshAnswer,
  toSessionAnswer,
  toSessionState,
} from './session-shapes.js';

type SessionRoute =
  | 'negotiateSession'
  | 'listSessions'
  | 'getSession'
  | 'refreshSession'
  | 'refreshBindingToken'
  | 'heartbeatSession'
  | 'releaseSession';

export function sessionRoutes(parts: FaceParts): Record<SessionRoute, RouteCode> {
  const { broker, replica, negotiator, place } = parts;
  const { db } = broker;
  const find = async (call: Call): Promise<FoundSession> => {
    const found = await findSession(db, call.parameter('session_id'), callerOf(call));
    noteSession(call, found);
    return found;
  };
  const refresh =
    (face: Face): RouteCode =>
    (call) =>
      inFace(face, async () => {
        requireScope(call.principal, ROUTES.refreshSession.scopes);
        const { current_token: token, ttl } = await call.body(refreshRequest);
        const currentToken = token === undefined ? undefined : new Secret(token);
        const found = await find(call);
        const caller = callerOf(call);
        const renewed = await refreshSession(parts.refresh, found, { caller, currentToken, ttl });
        call.exchange.note({ token_jti: renewed.jti });
        return { body: toRefreshAnswer(renewed, face === 'full') };
      });
  return {
    negotiateSession: async (call) => {
      const request = await call.body(negotiateRequest);
      const face = faceOf(request);
      return inFace(face, async () => {
        requireScope(call.principal, ROUTES.negotiateSession.scopes);
        const negotiated = await negotiator.negotiate(toNegotiation(call, request, face));
        noteSession(call, negotiated);
        return { body: toSessionAnswer(negotiated, place, face === 'full') };
      });
    },
    listSessions: async (call) => {
      const page = pageAsked(call.query(pageQuery));
      const { tenant, sub, threads } = call.principal;
      const asked = { limit: page.limit + 1, after: page.after, threads };
      const held = await new Sessions(db).list({ tenant, sub }, asked);
      const body = toPage(
        held,
        page,
        ({ session }) => session.id,
        ({ session, sandbox }) => toSessionState(session, sandbox, place),
      );
      return { body };
    },
    getSession: (call) =>
      inFace('full', async (): Promise<Answer> => {
        const { session, sandbox } = await find(call);
        return { body: toSessionState(session, sandbox, place) };
      }),
    refreshSession: refresh('mvp'),
    refreshBindingToken: refresh('full'),
    heartbeatSession: (call) =>
      inFace('full', async (): Promise<Answer> => {
        const found = await find(call);
        return { body: toHeartbeatAnswer(found.session, await heartbeat(db, found)) };
      }),
    releaseSession: (call) =>
      inFace('mvp', async (): Promise<Answer> => {
        requireScope(call.principal, ROUTES.releaseSession.scopes);
        await releaseSession(broker, replica, await find(call), callerOf(call));
        return { status: 204 };
      }),
  };
}

/** For the log's line; the audit has its own. */
export function noteSession(
  { exchange }: Call,
  { session }: { readonly session: FoundSession['session'] },
): void {
  exchange.note({
    thread_id: session.threadId,
    session_id: session.id,
    sandbox_id: session.sandboxId,
  });
}

const ROUTE: RouteName = 'negotiateSession';

function toNegotiation(call: Call, request: NegotiateRequest, face: Face): Negotiation {
  const scope = request.scope ?? { type: 'thread' as const, id: threadOf(request) };
  return {
    caller: callerOf(call),
    scope,
    mode: request.mode,
    actor: request.actor?.type,
    requested: request.requested_capabilities,
    vocabulary: face === 'full' ? 's2' : 'canonical',
    capabilitiesField: 'requested_capabilities',
    hint: request.sandbox_hint,
    hintField: 'sandbox_hint',
    providerPreference: request.provider_preference,
    template: request.template,
    ttl: request.ttl,
    key: idempotencyKeyOf(call, ROUTE, request),
    waitMs: waitMsOf(call),
    signal: call.exchange.signal,
  };
}

/** The shape sees to it that one of the two is there. */
function threadOf({ thread_id: threadId }: NegotiateRequest) {
  if (threadId === undefined) throw new Error('a request without a thread passed its shape');
  return threadId;
}
