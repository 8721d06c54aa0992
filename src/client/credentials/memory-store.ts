/** Keeps logins for as long as the process lives, and nowhere else. */
import type { Credential, CredentialKey } from './credential.js';
import { CredentialSet } from './credential-set.js';
import type { CredentialStore, SetOptions } from './credential-store.js';

export class MemoryStore implements CredentialStore {
  readonly kind = 'memory';
  readonly place = 'the memory of this process';
  #set = CredentialSet.empty;

  async get(key: CredentialKey): Promise<Credential | undefined> {
    return this.#set.get(key);
  }

  async current(issuer: string): Promise<Credential | undefined> {
    return this.#set.current(issuer);
  }

  async set(credential: Credential, options?: SetOptions): Promise<void> {
    this.#set = this.#set.with(credential, options);
  }

  async delete(key: CredentialKey): Promise<boolean> {
    const was = this.#set.get(key) !== undefined;
    this.#set = this.#set.without(key);
    return was;
  }

  async list(): Promise<readonly CredentialKey[]> {
    return this.#set.list();
  }
}
