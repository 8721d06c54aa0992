/** Commands: the same request and result at a sandbox (`/v1/exec`) and, through the relay, at the broker (S1). */
import * as z from 'zod/mini';
import { argv, env, outcome, path, sha256, text } from '../frame-fields.js';
import { pageOf } from './envelope.js';
import {
  commandId,
  count,
  duration,
  maybe,
  queryFlag,
  queryNumber,
  sandboxId,
  timestamp,
} from './fields.js';

const STDIN_MAX_CHARS = 1024 * 1024;

/** How bytes that are not UTF-8 travel in JSON; left out when they are. */
const encoding = z.literal('base64');

export const execRequest = z.object({
  argv: argv.check(z.meta({ type: 'array', items: { type: 'string' }, minItems: 1 })),
  /** The caller's own name for it: what runs or ran under it is answered with, and never run again. */
  command_id: z.optional(commandId),
  cwd: z.optional(path),
  env: z.optional(env.check(z.meta({ type: 'object', additionalProperties: { type: 'string' } }))),
  stdin: z.optional(z.string().check(z.maxLength(STDIN_MAX_CHARS))),
  stdin_encoding: z.optional(encoding),
  timeout_ms: z.optional(duration),
  /** What is kept of each output; the rest is counted and dropped. */
  stdout_max_bytes: z.optional(duration),
  stderr_max_bytes: z.optional(duration),
  /** Answer at once, with 202, and let it run. */
  background: z.optional(z.boolean()),
});

export type ExecRequest = z.output<typeof execRequest>;

/** How it ended and who says so, kept under the command's id after every connection is gone. */
export const commandOutcome = z.object({
  origin: outcome.origin,
  exit_code: maybe(z.int().check(z.minimum(0), z.maximum(0xffff_ffff))),
  signal: maybe(text(1, 32)),
  timed_out: z.boolean(),
  oom: z.boolean(),
  stdout_sha256: maybe(sha256),
  stderr_sha256: maybe(sha256),
});

const command = {
  id: commandId,
  state: z.enum(['running', 'ended']),
  argv: z.array(z.string().check(z.maxLength(128 * 1024))).check(z.maxLength(65_536)),
  started_at: timestamp,
  ended_at: maybe(timestamp),
  duration_ms: maybe(count),
  outcome: maybe(commandOutcome),
};

/** A command without its output: what a list holds, and what starting one in the background answers. */
export const commandState = z.object({ ...command, sandbox_id: maybe(sandboxId) });

export type CommandState = z.output<typeof commandState>;

const OUTPUT_MAX_CHARS = 16 * 1024 * 1024;
const output = z.string().check(z.maxLength(OUTPUT_MAX_CHARS));

/** A command that has ended, with as much of its output as the limits let through. */
export const commandResult = z.object({
  ...command,
  sandbox_id: maybe(sandboxId),
  outcome: commandOutcome,
  stdout: output,
  stdout_encoding: maybe(encoding),
  stdout_bytes: count,
  stdout_truncated: z.boolean(),
  stderr: output,
  stderr_encoding: maybe(encoding),
  stderr_bytes: count,
  stderr_truncated: z.boolean(),
});

export type CommandResult = z.output<typeof commandResult>;

export const commandPage = pageOf(commandState);

export const logQuery = z.object({
  /** Go on as new lines come, until the command or the sandbox ends. */
  follow: z.optional(queryFlag),
  /** Only the last so many lines of what is there already. */
  tail: z.optional(queryNumber(0, 100_000)),
});

export const commandLogQuery = z.object({
  ...logQuery.shape,
  /** The first bytes the caller lacks of each output. */
  stdout_offset: z.optional(queryNumber(0, Number.MAX_SAFE_INTEGER)),
  stderr_offset: z.optional(queryNumber(0, Number.MAX_SAFE_INTEGER)),
});

export type CommandLogQuery = z.output<typeof commandLogQuery>;

/** One piece of a log; a log is such objects, one a line. */
export const logChunk = z.object({
  at: timestamp,
  stream: z.enum(['stdout', 'stderr', 'system']),
  offset: maybe(count),
  data: output,
  encoding: maybe(encoding),
});

export type LogChunk = z.output<typeof logChunk>;
