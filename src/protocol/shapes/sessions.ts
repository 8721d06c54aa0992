/** Sessions (S2): one path, an MVP face (`thread_id`) and a full face (`scope`, `actor`, capabilities), one answer for both. */
import * as z from 'zod/mini';
import type { Face } from '../errors.js';
import { token } from '../frame-fields.js';
import { adjustments, pageOf } from './envelope.js';
import {
  bearerType,
  count,
  duration,
  grantedCapabilities,
  httpBaseUrl,
  maybe,
  name,
  plainId,
  principalId,
  requestedCapabilities,
  sandboxId,
  sessionId,
  threadId,
  timestamp,
  wsBaseUrl,
} from './fields.js';

/** `get` and `attach_only` never create, `create_only` always does, `ensure` does when it must. */
export const SESSION_MODES = ['get', 'ensure', 'attach_only', 'create_only'] as const;

/** What a session is bound to. Threads are what everything here is about; the others are S2's, for providers that have them. */
export const SCOPE_TYPES = ['thread', 'workspace', 'assistant', 'deployment'] as const;

export const SANDBOX_STATES = [
  'provisioning',
  'active',
  'idle',
  'suspended',
  'terminated',
  'failed',
] as const;

export const sandboxState = z.enum(SANDBOX_STATES);
export const scopeRef = z.object({ type: z.enum(SCOPE_TYPES), id: threadId });

/** Who will use it. `id` is for the log alone: who somebody is, the token says. */
export const actorRef = z.object({
  type: z.enum(['human', 'agent']),
  id: z.optional(principalId),
});

export const negotiateRequest = z
  .object({
    thread_id: z.optional(threadId),
    scope: z.optional(scopeRef),
    mode: z.enum(SESSION_MODES),
    actor: z.optional(actorRef),
    requested_capabilities: z.optional(requestedCapabilities),
    /** A sandbox the caller had before, to be used again if it can be. */
    sandbox_hint: z.optional(plainId),
    provider_preference: z.optional(name),
    template: z.optional(name),
    ttl: z.optional(duration),
  })
  .check(
    z.refine((request) => request.thread_id !== undefined || request.scope !== undefined, {
      path: ['thread_id'],
      error: 'given, unless scope is',
    }),
    z.refine(
      ({ thread_id, scope }) =>
        thread_id === undefined ||
        scope === undefined ||
        (scope.type === 'thread' && scope.id === thread_id),
      { path: ['scope', 'id'], error: 'the same as thread_id when both are given' },
    ),
    z.meta({ anyOf: [{ required: ['thread_id'] }, { required: ['scope'] }] }),
  );

export type NegotiateRequest = z.output<typeof negotiateRequest>;

/** Which face a request speaks: anything that only the full protocol has makes it full. */
export function faceOf(request: NegotiateRequest): Face {
  const isFull =
    request.mode === 'attach_only' ||
    request.mode === 'create_only' ||
    FULL_ONLY.some((field) => request[field] !== undefined);
  return isFull ? 'full' : 'mvp';
}

const FULL_ONLY = [
  'scope',
  'actor',
  'requested_capabilities',
  'sandbox_hint',
  'provider_preference',
] as const;

export const sandboxAccess = z.object({
  id: sandboxId,
  provider: name,
  http_base_url: httpBaseUrl,
  ws_base_url: wsBaseUrl,
});

export const binding = z.object({
  id: sessionId,
  scope: scopeRef,
  sandbox_id: sandboxId,
  provider: name,
  state: sandboxState,
  lease_expires_at: timestamp,
});

export const dataplane = z.object({ http_base_url: httpBaseUrl, ws_base_url: wsBaseUrl });

export const credentials = z.object({
  token_type: bearerType,
  access_token: token,
  expires_at: timestamp,
  granted_capabilities: grantedCapabilities,
});

export const policy = z.object({ idle_timeout_seconds: count, hard_ttl_seconds: count });

/** The MVP fields, always; the full ones when the request was full. */
export const sessionAnswer = z.object({
  session_id: sessionId,
  thread_id: threadId,
  sandbox: sandboxAccess,
  token,
  expires_at: timestamp,
  refresh_before: maybe(timestamp),
  binding: maybe(binding),
  dataplane: maybe(dataplane),
  credentials: maybe(credentials),
  policy: maybe(policy),
  adjustments: maybe(adjustments),
});

export type SessionAnswer = z.output<typeof sessionAnswer>;

/** What a server that knows only the full protocol answers. */
export const bindingAnswer = z.object({
  binding,
  dataplane,
  credentials,
  policy: maybe(policy),
});

/** What a client reads: ours first, since it holds everything. */
export const negotiateAnswer = z.union([sessionAnswer, bindingAnswer]);

/** A session as it stands. Looking at one gives nobody a token. */
export const sessionState = z.object({
  session_id: sessionId,
  thread_id: threadId,
  sandbox: sandboxAccess,
  binding,
  policy,
});

export type SessionState = z.output<typeof sessionState>;

export const sessionPage = pageOf(sessionState);

export const refreshRequest = z.object({
  /** Proves possession where the route asks for it. */
  current_token: z.optional(token),
  ttl: z.optional(duration),
});

/** The same for both names of the route; `refresh-token` adds `credentials`. */
export const refreshAnswer = z.object({
  token,
  expires_at: timestamp,
  refresh_before: maybe(timestamp),
  credentials: maybe(credentials),
  adjustments: maybe(adjustments),
});

export type RefreshAnswer = z.output<typeof refreshAnswer>;

/** Any object will do, as will no body at all. */
export const emptyRequest = z.object({});

export const heartbeatAnswer = z.object({
  session_id: sessionId,
  sandbox_id: sandboxId,
  state: sandboxState,
  /** Alive until then, whoever else calls. */
  lease_expires_at: timestamp,
});

export type HeartbeatAnswer = z.output<typeof heartbeatAnswer>;
