/** Removes what has run out, now and then, for as long as the issuer runs. */
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { Attempts } from '../store/attempts.js';
import type { Db } from '../store/db.js';
import { OidcPayloads } from '../store/oidc-payloads.js';
import type { KeyRing } from './key-ring.js';

export const SWEEP_EVERY_MS = 60_000;

/** At once, so that nobody waits long for the one writer of SQLite. */
const BATCH = 500;

/** A device code that has run out is remembered this long: who polls late is told `expired_token`. */
export const EXPIRED_GRACE_MS = 60 * 60 * 1000;

export interface SweepParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keys: KeyRing;
  readonly signal: AbortSignal;
}

export async function sweepForever({ db, clock, logger, keys, signal }: SweepParts): Promise<void> {
  const payloads = new OidcPayloads(db);
  const attempts = new Attempts(db);
  for (;;) {
    await clock.sleep(SWEEP_EVERY_MS, signal);
    try {
      while ((await payloads.sweepExpired(BATCH, EXPIRED_GRACE_MS)) === BATCH)
        signal.throwIfAborted();
      while ((await attempts.sweepExpired(BATCH)) === BATCH) signal.throwIfAborted();
      await keys.prune();
    } catch (error) {
      signal.throwIfAborted();
      // The store may be away for a while; the next round finds what this one left.
      logger.warn('sweeping failed', { error });
    }
  }
}
