/** The two questions `doctor` has for a server, each with a limit of time; loaded only where a server is set. */
import { askWhoami, type Whoami } from '../../client/auth/whoami.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';

/** Shorter than what a check may take, so that the finding says what was waited for. */
const ASK_TIMEOUT_MS = 2_500;

export interface Asked {
  readonly url: string;
  readonly status: number;
  readonly tookMs: number;
  /** Of the answer's `Date`, and what it was here then. */
  readonly dateMs: number | undefined;
  readonly nowMs: number;
}

export async function askReadiness(context: Context, url: string): Promise<Asked> {
  using world = createAuthWorld(context);
  const http = await world.http();
  const begin = world.clock.monotonic();
  const answer = await inTime(context, url, (signal) =>
    http.request({ url: `${url}/readyz`, signal }),
  );
  const dateMs = Date.parse(answer.headers['date'] ?? '');
  return {
    url,
    status: answer.status,
    tookMs: Math.round(world.clock.monotonic() - begin),
    dateMs: Number.isNaN(dateMs) ? undefined : dateMs,
    nowMs: world.clock.now(),
  };
}

export async function askLogin(context: Context): Promise<Whoami> {
  using world = createAuthWorld(context);
  return await inTime(context, world.url(), (signal) => askWhoami(world, signal));
}

async function inTime<T>(
  { signal }: Context,
  url: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(ASK_TIMEOUT_MS);
  try {
    return await work(AbortSignal.any([signal, limit]));
  } catch (error) {
    if (!limit.aborted || error !== limit.reason) throw error;
    throw new AilsdError('UNREACHABLE', `${url} did not answer within ${ASK_TIMEOUT_MS} ms`);
  }
}
