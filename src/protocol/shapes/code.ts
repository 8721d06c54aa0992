/** Code execution (S4): the `execute_code` dictionary, its limits, and the audit row that each call leaves. */
import * as z from 'zod/mini';
import { sha256, text } from '../frame-fields.js';
import { pageOf, pageQuery } from './envelope.js';
import {
  count,
  duration,
  invocationId,
  maybe,
  name,
  principalId,
  sessionId,
  threadId,
  timestamp,
} from './fields.js';

export const CODE_MAX_CHARS = 1024 * 1024;
/** What the caller sees of each output, cut on a character boundary. The whole is kept. */
export const CODE_OUTPUT_BYTES = { stdout: 256 * 1024, stderr: 32 * 1024 } as const;
/** Calls in one UTC day of a tenant, and in one UTC hour of an agent. 0 is a kill switch. */
export const QUOTA_DEFAULTS = { tenant_daily: 1000, agent_hourly: 100 } as const;
export const AUDIT_RETENTION_DAYS = { default: 30, max: 180 } as const;

export const LANGUAGES = ['python', 'javascript', 'bash'] as const;
export const ENVIRONMENTS = ['default-public', 'internal-only'] as const;
export const QUOTA_DIMENSIONS = ['tenant_daily', 'agent_hourly'] as const;

/** How a call ended, and the class an agent can react to; the first two names are S4's. */
export const CODE_ERRORS = {
  provisioning: 'SandboxProvisioning',
  cap_exceeded: 'SandboxCapExceeded',
  timeout: 'SandboxTimeout',
  oom: 'SandboxOutOfMemory',
  error: 'SandboxCodeError',
} as const;

export const EXIT_STATUSES = [
  'ok',
  'error',
  'timeout',
  'oom',
  'cap_exceeded',
  'provisioning',
] as const;

export const codeRequest = z.object({
  thread_id: threadId,
  code: z.string().check(z.maxLength(CODE_MAX_CHARS)),
  language: z.optional(z.enum(LANGUAGES)),
  /** Calls of one turn share a sandbox session; each is counted and audited by itself. */
  turn_id: z.optional(text(1, 128)),
  timeout_ms: z.optional(duration),
});

export type CodeRequest = z.output<typeof codeRequest>;

const visible = {
  stdout: z.string().check(z.maxLength(CODE_OUTPUT_BYTES.stdout)),
  stderr: z.string().check(z.maxLength(CODE_OUTPUT_BYTES.stderr)),
};

const extras = {
  invocation_id: maybe(invocationId),
  session_id: maybe(sessionId),
  stdout_bytes: maybe(count),
  stderr_bytes: maybe(count),
  stdout_truncated: maybe(z.boolean()),
  stderr_truncated: maybe(z.boolean()),
};

/** The dictionary is the answer in both cases, with status 200: a breached cap is something an agent can explain. */
export const codeAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    ...visible,
    exit_status: z.literal('ok'),
    duration_ms: count,
    ...extras,
  }),
  z.object({
    ok: z.literal(false),
    error: text(1, 64),
    error_message: text(0, 4096),
    exit_status: z.enum(EXIT_STATUSES),
    stdout: maybe(visible.stdout),
    stderr: maybe(visible.stderr),
    duration_ms: maybe(count),
    /** Of a breached cap: which, and when its next window starts. */
    dimension: maybe(z.enum(QUOTA_DIMENSIONS)),
    resets_at: maybe(timestamp),
    ...extras,
  }),
]);

export type CodeAnswer = z.output<typeof codeAnswer>;

/** A row of `sandbox_invocations`: exactly one for each call, never changed. */
export const invocation = z.object({
  id: invocationId,
  created_at: timestamp,
  tenant_id: name,
  agent_id: principalId,
  session_id: maybe(sessionId),
  thread_id: threadId,
  turn_id: maybe(text(1, 128)),
  executed_code_hash: sha256,
  exit_status: z.enum(EXIT_STATUSES),
  failure_reason: maybe(text(0, 4096)),
  duration_ms: count,
  /** Before anything was cut. */
  stdout_bytes: count,
  stderr_bytes: count,
  stdout_truncated: z.boolean(),
  stderr_truncated: z.boolean(),
});

export type Invocation = z.output<typeof invocation>;

export const invocationPage = pageOf(invocation);

export const invocationQuery = z.extend(pageQuery, { thread_id: z.optional(threadId) });

/** Which output to read, all of it: what a call answers with is cut. */
export const outputQuery = z.object({ stream: z.optional(z.enum(['stdout', 'stderr'])) });
