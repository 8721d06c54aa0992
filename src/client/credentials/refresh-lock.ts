/** Only one process at a time refreshes a login: a refresh token that is used twice ends the login for good. */
import type { Clock } from '../../base/clock.js';
import type { CredentialKey } from './credential.js';
import { type HeldLock, withLock } from './process-lock.js';

export interface RefreshLockOptions {
  /** The configuration folder: shared by all that use the same login. */
  readonly folder: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for another's refresh. */
  readonly waitMs?: number | undefined;
}

/** Longer than a refresh may take, network limits included, so that a slow issuer does not fail those who wait. */
export const REFRESH_WAIT_MS = 75_000;

/** Inside, read the login again first: whoever was before us has most likely refreshed it. */
export function withRefreshLock<T>(
  key: CredentialKey,
  { folder, clock, signal, waitMs = REFRESH_WAIT_MS }: RefreshLockOptions,
  work: (lock: HeldLock) => Promise<T>,
): Promise<T> {
  return withLock({ folder, name: `refresh-${shortName(key)}`, clock, signal, waitMs }, work);
}

/** FNV-1a over the key. Two logins of one name would only wait for each other. */
export function shortName({ issuer, clientId, account }: CredentialKey): string {
  let hash = 0x811c9dc5;
  for (const character of JSON.stringify([issuer, clientId, account])) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  return (hash >>> 0).toString(36);
}
