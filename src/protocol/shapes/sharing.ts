/** Sharing and narrowing (S3 phase 3): grants, smaller tokens, revocation, invites and snapshots of one session. */
import * as z from 'zod/mini';
import { token } from '../frame-fields.js';
import { adjustments, pageOf } from './envelope.js';
import {
  count,
  duration,
  grantedCapabilities,
  grantId,
  label,
  maybe,
  principalId,
  requestedCapabilities,
  sandboxId,
  sessionId,
  snapshotId,
  threadId,
  timestamp,
  tokenId,
  wsBaseUrl,
} from './fields.js';

/** Who is let in: they negotiate a token of their own. */
export const grantee = z.object({ type: z.enum(['user', 'agent']), id: principalId });

export const grantRequest = z.object({
  grantee,
  capabilities: requestedCapabilities,
  expires_at: z.optional(timestamp),
});

export const grant = z.object({
  id: grantId,
  session_id: sessionId,
  grantee,
  capabilities: grantedCapabilities,
  expires_at: maybe(timestamp),
  created_at: timestamp,
  created_by: principalId,
});

export type Grant = z.output<typeof grant>;

export const grantPage = pageOf(grant);

/** A token for one with fewer scopes and no longer a life. */
export const downscopeRequest = z.object({
  current_token: token,
  scopes: requestedCapabilities,
  ttl: z.optional(duration),
});

export const downscopeAnswer = z.object({
  token,
  expires_at: timestamp,
  scopes: grantedCapabilities,
  refresh_before: maybe(timestamp),
  adjustments: maybe(adjustments),
});

export const revokeRequest = z.object({ jti: tokenId });

/** An invite for `/execute` or `/computer` (S0). The room `*` and elevation are for admins. */
export const inviteRequest = z.object({
  endpoint: z.enum(['execute', 'computer']),
  room: z.optional(z.union([threadId, z.literal('*')])),
  elevated: z.optional(z.boolean()),
});

export const inviteAnswer = z.object({
  /** Single use. */
  token,
  expires_at: timestamp,
  /** Where to take it; the caller adds `token` and the rest of the query. */
  url: wsBaseUrl,
});

export const snapshotRequest = z.object({ name: z.optional(label) });

export const snapshot = z.object({
  id: snapshotId,
  session_id: sessionId,
  sandbox_id: sandboxId,
  name: maybe(label),
  size_bytes: maybe(count),
  created_at: timestamp,
});

export type Snapshot = z.output<typeof snapshot>;

export const snapshotPage = pageOf(snapshot);
