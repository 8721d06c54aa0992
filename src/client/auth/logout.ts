/** Ends a login: at the issuer if it can be reached, and here in any case. */
import { AilsdError } from '../../protocol/errors.js';
import type { CredentialKey } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import { withLoginLock } from './login-lock.js';
import { revokeLogin } from './revoke.js';
import type { AuthWorld } from './world.js';

export interface EndedLogin {
  readonly key: CredentialKey;
  /** Why the issuer may not know of it; absent where it does. */
  readonly notRevoked: AilsdError | undefined;
}

/** Whether there was such a login to end is for the caller to know; one that has gone meanwhile is ended. */
export async function endLogin(
  world: AuthWorld,
  store: CredentialStore,
  key: CredentialKey,
  signal?: AbortSignal,
): Promise<EndedLogin> {
  const { clock, configFolder } = world;
  const lock = { store, folder: configFolder, clock, signal };
  return withLoginLock(key, lock, async () => {
    // First there, then here: a process that dies between the two leaves a login that says it is over, not a live one
    // that nobody remembers.
    const kept = await store.get(key).catch(asUnreadable);
    const notRevoked =
      kept === undefined || kept instanceof AilsdError
        ? kept
        : await revokeLogin(world, kept, signal);
    await store.delete(key);
    return { key, notRevoked };
  });
}

/** What can't be read can't be shown to the issuer either; it is removed all the same. */
function asUnreadable(error: unknown): AilsdError {
  if (error instanceof AilsdError) return error;
  return new AilsdError('NOT_LOGGED_IN', 'the stored login cannot be read', { cause: error });
}
