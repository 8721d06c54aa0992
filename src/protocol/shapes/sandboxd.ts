/** What a provider gives a sandbox's daemon, as files, and what the daemon says about its sandboxes. Never sent to a client. */
import * as z from 'zod/mini';
import { env, text } from '../frame-fields.js';
import { ENVIRONMENTS } from './code.js';
import { commandOutcome } from './commands.js';
import {
  commandId,
  count,
  dictionary,
  httpBaseUrl,
  name,
  sandboxId,
  threadId,
  tokenId,
  wsBaseUrl,
} from './fields.js';

/** `spec.json`: what a sandbox is. Written once, before the sandbox is started. */
export const sandboxSpec = z.object({
  id: sandboxId,
  thread_id: threadId,
  environment: z.enum(ENVIRONMENTS),
  template: z.optional(name),
  /** Injected into every process of the user, by the client's policy. */
  env,
  limits: z.object({
    memory_bytes: count,
    pids: count,
    disk_bytes: count,
    shells: count,
    commands: count,
  }),
  /** By which a restarted broker finds what it made. */
  labels: dictionary(name, text(0, 256), 16),
});

export type SandboxSpec = z.output<typeof sandboxSpec>;

/** 32 bytes as base64url. */
const key = z.string().check(z.regex(/^[A-Za-z0-9_-]{43}$/, '32 bytes as base64url'));

/**
 * `access.json`: whose tokens count. Replaced whole whenever it changes, and looked at before anybody is let in: a daemon that was away
 * when it changed applies it before it serves anything.
 */
export const sandboxAccessFile = z.object({
  /** Grows with every change; an older one never replaces a newer. */
  generation: count,
  /** Tokens signed by any of these count. */
  keys: z.array(key).check(z.minLength(1), z.maxLength(4)),
  /** Tokens that do not count from `from` on (epoch ms); forgotten after `until`, when they have expired anyway. */
  ended: z.array(z.object({ jti: tokenId, from: count, until: count })).check(z.maxLength(10_000)),
  /** Where opaque tokens are asked about; absent: there are none. */
  opaque_check_url: z.optional(httpBaseUrl),
});

export type SandboxAccessFile = z.output<typeof sandboxAccessFile>;

/** What a daemon says about one of its sandboxes. */
export const sandboxView = z.object({
  id: sandboxId,
  /** `stopped`: its files are there, its processes are not. */
  state: z.enum(['running', 'stopped']),
  labels: dictionary(name, text(0, 256), 16),
  http_base_url: httpBaseUrl,
  ws_base_url: wsBaseUrl,
  /** What keeps it busy. */
  open_shells: count,
  attached_viewers: count,
  running_commands: count,
  /** Epoch ms of the last input, output to a viewer, command or file call. */
  last_active_at: count,
  access_generation: count,
});

export type SandboxView = z.output<typeof sandboxView>;

/** What of an output lies in its file. */
const storedOutput = z.object({ start: count, end: count, bytes: count });

/** A line of `commands.jsonl`: a command as it was when the line was written; of several with one id the last counts. */
export const commandRecord = z.object({
  id: commandId,
  argv: z.array(z.string()),
  /** Epoch ms. */
  started_at: count,
  ended_at: z.optional(count),
  outcome: z.optional(commandOutcome),
  stdout: z.optional(storedOutput),
  stderr: z.optional(storedOutput),
  /** It was never started after all. */
  forgotten: z.optional(z.boolean()),
});

export type CommandRecord = z.output<typeof commandRecord>;

/** How well the workload is kept apart from the host. */
export const isolationReport = z.object({
  kind: z.enum(['namespaces', 'none']),
  egress_control: z.boolean(),
  memory_limit: z.boolean(),
  pid_limit: z.boolean(),
  /** Why it is no better, for the operator. */
  reason: z.optional(text(0, 1024)),
});

export type IsolationReport = z.output<typeof isolationReport>;

export const daemonHealth = z.object({
  pid: count,
  version: text(1, 64),
  port: count,
  isolation: isolationReport,
});

export type DaemonHealth = z.output<typeof daemonHealth>;

/** `GET /sandboxes` of the control channel. */
export const sandboxViews = z.object({ items: z.array(sandboxView) });

/** An answer that says no more than that it was done. */
export const nothing = z.object({});
