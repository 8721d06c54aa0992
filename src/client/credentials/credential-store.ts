/** Where logins are kept between runs: one interface, whatever keeps them. */
import type { Credential, CredentialKey } from './credential.js';

export type StoreKind = 'keyring' | 'file' | 'memory';

export interface CredentialStore {
  readonly kind: StoreKind;
  /** For people: `whoami` prints it. */
  readonly place: string;
  get(key: CredentialKey): Promise<Credential | undefined>;
  /** The login in use at an issuer: the one last made current, or the only one there. */
  current(issuer: string): Promise<Credential | undefined>;
  /** Keeps it in the place of what had the same key; either the old or the new is there at every moment. */
  set(credential: Credential, options?: SetOptions): Promise<void>;
  /**
   * Makes sure that the next `set` of this login has room, or throws CREDENTIALS_UNWRITABLE; disposing gives up what is
   * left of it. Only for the holder of the login's lock. Absent where there is nothing to make sure of.
   */
  reserve?(key: CredentialKey): Promise<Disposable>;
  /** Whether it was there. If it was the current one, its issuer has none any more. */
  delete(key: CredentialKey): Promise<boolean>;
  list(): Promise<readonly CredentialKey[]>;
}

export interface SetOptions {
  /** A login makes itself the current one of its issuer; a refresh leaves that as it is. */
  readonly makeCurrent?: boolean | undefined;
}

/** More logins than this are a mistake in a loop. */
export const MOST_CREDENTIALS = 64;
