/** One change of a login at a time over all processes: renewing, ending and replacing it never cross each other. */
import type { Clock } from '../../base/clock.js';
import type { CredentialKey } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import { withRefreshLock } from '../credentials/refresh-lock.js';

export interface LoginLockOptions {
  readonly store: CredentialStore;
  readonly folder: string | undefined;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number | undefined;
}

export function withLoginLock<T>(
  key: CredentialKey,
  { store, folder, clock, signal, waitMs }: LoginLockOptions,
  work: () => Promise<T>,
): Promise<T> {
  // What only this process knows of, no other changes.
  if (store.kind === 'memory' || folder === undefined) return work();
  return withRefreshLock(key, { folder, clock, signal, waitMs }, work);
}
