/** Sessions in the words of the wire: snake_case begins here. */
import type {
  HeartbeatAnswer,
  RefreshAnswer,
  SessionAnswer,
  SessionState,
} from '../../../protocol/shapes/sessions.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import type { Negotiated } from '../sessions/negotiation.js';
import type { Renewed } from '../tokens/refresh.js';

/** What is being started has no place yet; looking at it shows where it will be reached through the server. */
export type PlaceOf = (sandbox: SandboxRecord) => {
  readonly httpUrl: string;
  readonly wsUrl: string;
};

export function toSessionAnswer(
  negotiated: Negotiated,
  place: PlaceOf,
  isFull: boolean,
): SessionAnswer {
  const { session, sandbox, minted, words, adjustments } = negotiated;
  const expiresAt = timeOf(minted.expiresAtMs);
  const token = minted.token.reveal();
  return {
    session_id: session.id,
    thread_id: session.threadId,
    sandbox: toAccess(sandbox, place),
    token,
    expires_at: expiresAt,
    refresh_before: timeOf(minted.refreshBeforeMs),
    ...(isFull && {
      binding: toBinding(session, sandbox),
      dataplane: toDataplane(sandbox, place),
      credentials: {
        token_type: 'Bearer',
        access_token: token,
        expires_at: expiresAt,
        granted_capabilities: [...words],
      },
      policy: toPolicy(sandbox),
    }),
    ...(adjustments.length > 0 && { adjustments: [...adjustments] }),
  };
}

export function toSessionState(
  session: SessionRecord,
  sandbox: SandboxRecord,
  place: PlaceOf,
): SessionState {
  return {
    session_id: session.id,
    thread_id: session.threadId,
    sandbox: toAccess(sandbox, place),
    binding: toBinding(session, sandbox),
    policy: toPolicy(sandbox),
  };
}

export function toRefreshAnswer(renewed: Renewed, isFull: boolean): RefreshAnswer {
  const { adjustments, words } = renewed;
  const expiresAt = timeOf(renewed.expiresAtMs);
  const token = renewed.token.reveal();
  return {
    token,
    expires_at: expiresAt,
    refresh_before: timeOf(renewed.refreshBeforeMs),
    ...(isFull && {
      credentials: {
        token_type: 'Bearer',
        access_token: token,
        expires_at: expiresAt,
        granted_capabilities: [...words],
      },
    }),
    ...(adjustments.length > 0 && { adjustments: [...adjustments] }),
  };
}

export function toHeartbeatAnswer(session: SessionRecord, sandbox: SandboxRecord): HeartbeatAnswer {
  return {
    session_id: session.id,
    sandbox_id: sandbox.id,
    state: sandbox.state,
    lease_expires_at: timeOf(sandbox.leaseExpiresAtMs),
  };
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function toAccess(sandbox: SandboxRecord, place: PlaceOf) {
  return { id: sandbox.id, provider: sandbox.provider, ...toDataplane(sandbox, place) };
}

function toDataplane(sandbox: SandboxRecord, place: PlaceOf) {
  const { httpUrl, wsUrl } = place(sandbox);
  return { http_base_url: httpUrl, ws_base_url: wsUrl };
}

function toBinding(session: SessionRecord, sandbox: SandboxRecord) {
  return {
    id: session.id,
    scope: { type: session.scopeType, id: session.threadId },
    sandbox_id: sandbox.id,
    provider: sandbox.provider,
    state: sandbox.state,
    lease_expires_at: timeOf(sandbox.leaseExpiresAtMs),
  };
}

function toPolicy({ idleTimeoutMs, hardExpiresAtMs, createdAtMs }: SandboxRecord) {
  return {
    idle_timeout_seconds: Math.round(idleTimeoutMs / 1000),
    hard_ttl_seconds: Math.round((hardExpiresAtMs - createdAtMs) / 1000),
  };
}
