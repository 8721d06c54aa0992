/** The thread face (S3): the same sessions, asked for by thread and answered with endpoints and scopes. */
import * as z from 'zod/mini';
import { token } from '../frame-fields.js';
import { adjustments } from './envelope.js';
import {
  duration,
  grantedCapabilities,
  httpBaseUrl,
  maybe,
  name,
  requestedCapabilities,
  sandboxId,
  sessionId,
  timestamp,
  wsBaseUrl,
} from './fields.js';

export const threadSandboxRequest = z.object({
  /** A sandbox the caller had before, to be used again if it can be. */
  sandbox_id: z.optional(sandboxId),
  scopes: z.optional(requestedCapabilities),
  ttl: z.optional(duration),
  template: z.optional(name),
});

export type ThreadSandboxRequest = z.output<typeof threadSandboxRequest>;

export const threadSandboxAnswer = z.object({
  sandbox_id: sandboxId,
  endpoints: z.object({
    http: httpBaseUrl,
    /** The shell's own address; the other sockets are found from `http`. */
    ws: wsBaseUrl,
  }),
  token,
  expires_at: timestamp,
  scopes: grantedCapabilities,
  refresh_before: maybe(timestamp),
  session_id: maybe(sessionId),
  adjustments: maybe(adjustments),
});

export type ThreadSandboxAnswer = z.output<typeof threadSandboxAnswer>;

export const threadRefreshRequest = z.object({
  sandbox_id: z.optional(sandboxId),
  /** Proves possession: of this sandbox, by the same subject, at most one lease old. */
  current_token: token,
  ttl: z.optional(duration),
});

export const threadRefreshAnswer = z.object({
  token,
  expires_at: timestamp,
  refresh_before: maybe(timestamp),
});
