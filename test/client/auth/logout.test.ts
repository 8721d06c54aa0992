import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { endLogin } from '../../../src/client/auth/logout.js';
import { MemoryStore } from '../../../src/client/credentials/memory-store.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { makeCredential } from '../credentials/support/credentials.js';

/** As a keychain does whose entry somebody has cut short. */
class UnreadableStore extends MemoryStore {
  override async get(): Promise<never> {
    throw new AilsdError('NOT_LOGGED_IN', 'the keychain holds a login that cannot be read');
  }
}

it('a login that cannot be read is removed, and it is said that the issuer was not told', async () => {
  const store = new UnreadableStore();
  const credential = makeCredential();
  await store.set(credential);
  const world = {
    url: () => credential.issuer,
    variable: () => undefined,
    openStore: () => Promise.reject(new Error('not asked for')),
    configFolder: undefined,
    userId: undefined,
    http: () => Promise.reject(new Error('nobody is asked')),
    clock: systemClock,
  };
  const { notRevoked } = await endLogin(world, store, credential);
  expect(notRevoked?.message).toContain('cannot be read');
  expect(await store.list()).toEqual([]);
});
