/** Keeps a new login and makes it the one in use at its issuer. */
import type { Credential } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import { withLoginLock } from './login-lock.js';
import type { AuthWorld } from './world.js';

/** Not while another process renews the login it replaces: that one would write the old family over the new. */
export async function keepLogin(
  { configFolder, clock }: AuthWorld,
  store: CredentialStore,
  credential: Credential,
): Promise<void> {
  const lock = { store, folder: configFolder, clock };
  await withLoginLock(credential, lock, () => store.set(credential, { makeCurrent: true }));
}
