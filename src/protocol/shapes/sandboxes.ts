/** Sandboxes as things to be listed, looked at, renamed, started and stopped (S1). */
import * as z from 'zod/mini';
import { pageOf, pageQuery } from './envelope.js';
import {
  count,
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

/** What keeps a sandbox from going to sleep. */
export const sandboxKeeper = z.object({
  /** `lease`: heartbeats and attaching; the others are looked at when the lease is over. */
  by: z.enum(['lease', 'shells', 'viewers', 'commands']),
  /** How many there are; absent for the lease. */
  count: maybe(count),
  /** Absent: as long as there are any. */
  until: maybe(timestamp),
});

/** Why a sandbox is alive, until when, and what happens then. */
export const sandboxWhy = z.object({
  sandbox_id: sandboxId,
  session_id: maybe(sessionId),
  thread_id: maybe(threadId),
  state: sandboxState,
  /** The server's time, which decides. */
  now: timestamp,
  last_active_at: timestamp,
  kept_by: z.array(sandboxKeeper).check(z.maxLength(8)),
  /** False: its provider could not say what goes on inside. */
  activity_known: z.boolean(),
  /** What happens next if nothing keeps it any longer; `state` is what it becomes. */
  next: z.object({
    at: timestamp,
    state: sandboxState,
    because: z.enum(['idle_timeout', 'hard_ttl', 'start_deadline']),
  }),
  /** When it ends whatever happens. */
  expires_at: timestamp,
  idle_timeout_seconds: count,
});

export type SandboxWhy = z.output<typeof sandboxWhy>;
