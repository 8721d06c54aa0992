/** Sandboxes as things to be listed, looked at, renamed, started and stopped (S1). */
import * as z from 'zod/mini';
import { pageOf, pageQuery } from './envelope.js';
import {
  label,
  maybe,
  name,
  principalId,
  sandboxId,
  sessionId,
  threadId,
  timestamp,
} from './fields.js';
import { SANDBOX_STATES, sandboxState } from './sessions.js';

export const sandbox = z.object({
  id: sandboxId,
  name: maybe(label),
  provider: name,
  state: sandboxState,
  thread_id: maybe(threadId),
  session_id: maybe(sessionId),
  /** The `sub` it belongs to. */
  owner: principalId,
  template: maybe(name),
  created_at: timestamp,
  last_active_at: maybe(timestamp),
  /** When it goes idle unless something keeps it. */
  lease_expires_at: maybe(timestamp),
  /** When it ends whatever happens. */
  expires_at: maybe(timestamp),
});

export type Sandbox = z.output<typeof sandbox>;

export const sandboxPage = pageOf(sandbox);

export const sandboxQuery = z.extend(pageQuery, {
  state: z.optional(z.enum(SANDBOX_STATES)),
  thread_id: z.optional(threadId),
});

export const sandboxPatch = z.object({ name: label });
