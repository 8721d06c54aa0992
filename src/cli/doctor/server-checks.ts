/** What `doctor` asks the server in use: whether it is there and ready, whether the clocks agree, whether the login works. */
import type { Whoami } from '../../client/auth/whoami.js';
import type { Context } from '../context.js';
import type { Asked } from './ask-server.js';
import type { Finding } from './check.js';

export async function checkServer(context: Context): Promise<Finding> {
  const asked = await askServer(context);
  if (asked === undefined) return NO_SERVER;
  const { url, status, tookMs } = asked;
  const way = url.startsWith('https:') ? 'TLS' : 'no TLS, which is fine on this machine alone';
  if (status === 200) return { state: 'ok', detail: `${url} is ready (${tookMs} ms, ${way})` };
  if (status === 503) {
    return {
      state: 'failed',
      detail: `${url} is there, but can do no work`,
      hint: 'tell whoever runs it: its store may be away',
    };
  }
  return {
    state: 'warning',
    detail: `${url} answered ${status} where an ailsd server says that it is ready`,
    hint: 'check the address with `ailsd config get url`',
  };
}

const MOST_DRIFT_MS = 30_000;

/** `undefined`: nobody else's clock is known. A token's times are taken half a minute too early or late, not more. */
export async function clockDifference(context: Context): Promise<Finding | undefined> {
  const asked = await askServer(context).catch(() => undefined);
  if (asked?.dateMs === undefined) return undefined;
  const aheadMs = asked.nowMs - asked.dateMs;
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  // The header is cut to whole seconds.
  const text =
    seconds <= 1
      ? 'as the server'
      : `${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the server`;
  const detail = `${new Date(asked.nowMs).toISOString()}, ${text}`;
  if (Math.abs(aheadMs) <= MOST_DRIFT_MS) return { state: 'ok', detail };
  return {
    state: 'failed',
    detail,
    hint: 'set the clock of whichever is wrong: tokens are only valid near the right time',
  };
}

export async function checkLogin(context: Context): Promise<Finding> {
  if (urlOf(context) === undefined) return NO_SERVER;
  const { askLogin } = await import('./ask-server.js');
  return loginFinding(await askLogin(context));
}

function loginFinding(found: Whoami): Finding {
  if (found.state === 'valid') {
    const { sub, name } = found.answer;
    const { origin } = found.access;
    const who = name === undefined || name === sub ? sub : `${name} (${sub})`;
    const from = origin.kind === 'variable' ? origin.variable : origin.place;
    return { state: 'ok', detail: `${who}, from ${from}` };
  }
  const { message: detail, hint } = found.failure;
  switch (found.state) {
    case 'none':
      return { state: 'warning', detail: 'not logged in', hint: 'run `ailsd login`' };
    case 'unreachable':
    case 'rate_limited':
      return { state: 'skipped', detail: `nothing can be told: ${detail}` };
    case 'expired':
    case 'revoked':
      return { state: 'failed', detail, hint };
  }
}

/** Once, however many want to know. */
function askServer(context: Context): Promise<Asked | undefined> {
  const asked = asking.get(context) ?? ask(context);
  asking.set(context, asked);
  return asked;
}

const asking = new WeakMap<Context, Promise<Asked | undefined>>();

async function ask(context: Context): Promise<Asked | undefined> {
  const url = urlOf(context);
  if (url === undefined) return undefined;
  const { askReadiness } = await import('./ask-server.js');
  return askReadiness(context, url);
}

const NO_SERVER: Finding = { state: 'skipped', detail: 'no server is set' };

/** Settings that can't be read are the finding of another check. */
function urlOf({ settings }: Context): string | undefined {
  try {
    return settings.find('url')?.value;
  } catch {
    return undefined;
  }
}
