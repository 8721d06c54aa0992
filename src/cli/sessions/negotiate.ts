/** `session get` and `session ensure`: negotiates, and prints what came of it. The token is printed for programs only. */
import type { Adjusted, Negotiated } from '../../client/sessions/answer.js';
import { Asker } from '../../client/sessions/asker.js';
import type { SessionMode } from '../../client/sessions/negotiate.js';
import { negotiateRemembered } from '../../client/sessions/remembered.js';
import type { NegotiateCommandOptions } from '../commands/session.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { timeText } from '../login/time-text.js';
import { startTimeoutMs } from './options.js';
import { createSessionWorld } from './session-world.js';
import { threadIfNamed, threadOf } from './thread-argument.js';
import { whileStarting } from './while-starting.js';

export async function runNegotiate(
  context: Context,
  mode: SessionMode,
  named: string | undefined,
  options: NegotiateCommandOptions,
): Promise<void> {
  using world = createSessionWorld(context, options);
  const given = world.givenAccess();
  if (given !== undefined) {
    const { printGivenAccess } = await import('./print-given.js');
    return printGivenAccess(context, world, given, threadIfNamed(context, named));
  }
  const { cap, ttl, agent, template, provider, hint } = options;
  const thread = threadOf(context, named);
  const request = {
    thread,
    mode,
    capabilities: cap,
    ttlSeconds: ttl,
    actor: agent === true ? ('agent' as const) : undefined,
    template,
    provider,
    sandboxHint: hint,
  };
  const wait = { signal: context.signal, startTimeoutMs: startTimeoutMs(options) };
  const text = `waiting for the sandbox of ${thread} to start`;
  const { negotiated } = await whileStarting(context, text, () =>
    negotiateRemembered(world, new Asker(world), request, wait),
  );
  context.output.result(toDocument(negotiated), () => toText(negotiated, context));
  for (const one of negotiated.adjustments) context.output.notice(adjustmentText(one));
  if (negotiated.state === 'suspended') {
    context.output.notice(`nothing runs in it: \`ailsd session ensure ${thread}\` starts it again`);
  }
}

/** The wire's answer again, whole: what AILSD_SANDBOX and --sandbox take. */
export function toDocument(negotiated: Negotiated): object {
  const { sessionId, threadId, sandboxId, provider, httpUrl, wsUrl, fresh } = negotiated;
  const { grantedWords, state, leaseExpiresAtMs, policy, adjustments } = negotiated;
  const place = { http_base_url: httpUrl, ws_base_url: wsUrl };
  const token = fresh.token.reveal();
  const ends = timestamp(fresh.expiresAtMs);
  return {
    session_id: sessionId,
    thread_id: threadId,
    sandbox: { id: sandboxId, provider, ...place },
    token,
    expires_at: ends,
    refresh_before: timestamp(fresh.refreshBeforeMs),
    binding: state && {
      id: sessionId,
      scope: { type: 'thread', id: threadId },
      sandbox_id: sandboxId,
      provider,
      state,
      lease_expires_at: timestamp(leaseExpiresAtMs),
    },
    dataplane: place,
    credentials: grantedWords && {
      token_type: 'Bearer',
      access_token: token,
      expires_at: ends,
      granted_capabilities: grantedWords,
    },
    policy: policy && {
      idle_timeout_seconds: policy.idleTimeoutSeconds,
      hard_ttl_seconds: policy.hardTtlSeconds,
    },
    adjustments,
  };
}

/** What the server did not say is not said. */
function timestamp(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

function toText(negotiated: Negotiated, { style }: Context): string {
  const { sessionId, threadId, sandboxId, provider, httpUrl, wsUrl, fresh } = negotiated;
  const { capabilities, state = 'there', leaseExpiresAtMs } = negotiated;
  const lease = leaseExpiresAtMs === undefined ? '' : `kept until ${timeText(leaseExpiresAtMs)}`;
  const rows: [string, string][] = [
    ['sandbox', `${escapeText(sandboxId)} at ${escapeText(provider)}`],
    ['session', escapeText(sessionId)],
    ['http', escapeText(httpUrl)],
    ['ws', escapeText(wsUrl)],
    ['allowed', capabilities?.join(' ') ?? ''],
    ['token', `until ${timeText(fresh.expiresAtMs)}; printed with --json`],
    ['lease', lease],
  ];
  const said = rows.filter(([, value]) => value !== '');
  const width = Math.max(...said.map(([name]) => name.length));
  const lines = said.map(([name, value]) => `  ${style.dim(name.padEnd(width))}  ${value}`);
  const paint = state === 'active' ? style.good : style.warn;
  return [`${style.bold(escapeText(threadId))} is ${paint(escapeText(state))}`, ...lines].join(
    '\n',
  );
}

export function adjustmentText({ field, requested, granted }: Adjusted): string {
  if (granted === null) return `${field}: ${requested} was not granted`;
  return `${field}: ${requested} was asked for, ${granted} was granted`;
}
