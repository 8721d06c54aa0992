/** Clears away what nobody needs any more: rows of tokens and invites that are long over, snapshots of ended sessions. */

import { Invites } from '../../store/invites.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { type SnapshotParts, sweepSnapshots } from './snapshots.js';

const EVERY_MS = 60_000;
/** A day: whoever joins a sandbox's log with ours finds the row as well as the audit. */
const TOKEN_AGE_MS = 86_400_000;
/** Past any difference of clocks: an invite whose row is gone must have expired everywhere. */
const INVITE_AGE_MS = 600_000;
const ROWS_AT_ONCE = 1_000;

/** Until the signal aborts. Any number of replicas may do it at once. */
export async function tidy(parts: SnapshotParts, signal: AbortSignal): Promise<void> {
  const { clock, logger } = parts;
  while (!signal.aborted) {
    try {
      await tidyOnce(parts);
    } catch (error) {
      logger.warn('tidying: the store could not be asked', { error });
    }
    try {
      await clock.sleep(EVERY_MS, signal);
    } catch {
      return;
    }
  }
}

export async function tidyOnce(parts: SnapshotParts): Promise<void> {
  const issued = new IssuedTokens(parts.db);
  while ((await issued.sweepExpired(TOKEN_AGE_MS, ROWS_AT_ONCE)) >= ROWS_AT_ONCE);
  const invites = new Invites(parts.db);
  while ((await invites.sweepExpired(INVITE_AGE_MS, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
  await sweepSnapshots(parts);
}
