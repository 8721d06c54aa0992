/** A token that stays good for as long as something runs: renewed on a timer before it expires, and told when it was. */
import { AilsdError } from '../../protocol/errors.js';
import { type Access, currentAccess } from './access.js';
import type { AuthWorld } from './world.js';

/** Renewing failed for now: how long until the next try, and how long after a token that did not change. */
const AGAIN_MS = 5_000;
/** A token that nobody renews for us may have been replaced in its file: looked at this long before it ends. */
const BEFORE_END_MS = 60_000;

/**
 * The access now, and every one that follows it, until the signal aborts. Ends after an access that can't change. Throws
 * what `currentAccess` throws, but while the last token is still good an issuer that can't be reached is only tried again.
 */
export async function* freshAccess(world: AuthWorld, signal: AbortSignal): AsyncGenerator<Access> {
  let access = await currentAccess(world, { signal });
  yield access;
  for (;;) {
    const at = access.renewAtMs ?? lookAgainAtMs(access);
    if (at === undefined) return;
    const waitMs = Math.max(at - world.clock.now(), AGAIN_MS);
    if (!(await slept(world, waitMs, signal))) return;
    const next = await renewed(world, access, signal);
    if (next === undefined || next.token.equals(access.token)) continue;
    access = next;
    yield access;
  }
}

function lookAgainAtMs({ expiresAtMs }: Access): number | undefined {
  return expiresAtMs === undefined ? undefined : expiresAtMs - BEFORE_END_MS;
}

async function slept(world: AuthWorld, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await world.clock.sleep(ms, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** Nothing where it did not work this time and there is still time. */
async function renewed(
  world: AuthWorld,
  last: Access,
  signal: AbortSignal,
): Promise<Access | undefined> {
  try {
    return await currentAccess(world, { signal });
  } catch (error) {
    const isOver = last.expiresAtMs !== undefined && last.expiresAtMs <= world.clock.now();
    if (error instanceof AilsdError && error.row.retryable && !isOver) return undefined;
    throw error;
  }
}
