/** Keeps a new login and makes it the one in use at its issuer; the one it takes the place of is ended. */
import type { Credential } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import { withLoginLock } from './login-lock.js';
import { revokeLogin } from './revoke.js';
import type { AuthWorld } from './world.js';

/** Not while another process renews the login it replaces: that one would write the old family over the new. */
export async function keepLogin(
  world: AuthWorld,
  store: CredentialStore,
  credential: Credential,
  signal?: AbortSignal,
): Promise<void> {
  const lock = { store, folder: world.configFolder, clock: world.clock };
  const replaced = await withLoginLock(credential, lock, async () => {
    const before = await store.get(credential).catch(() => undefined);
    await store.set(credential, { makeCurrent: true });
    return before;
  });
  // Nobody holds its tokens any more. Where the issuer can't be told, they end by themselves.
  if (replaced?.refreshToken !== undefined && !isSameFamily(replaced, credential)) {
    await revokeLogin(world, replaced, signal);
  }
}

function isSameFamily(before: Credential, after: Credential): boolean {
  if (before.refreshToken === undefined || after.refreshToken === undefined) return false;
  return before.refreshToken.equals(after.refreshToken);
}
