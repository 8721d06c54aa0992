/** What every place that keeps logins promises. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.js';
import { keyOf } from '../../src/client/credentials/credential.js';
import type { CredentialStore } from '../../src/client/credentials/credential-store.js';
import { makeCredential, revealed } from '../client/credentials/support/credentials.js';

/** `open` gives an empty store; a second call of `again` is what another process would open. */
export interface OpenStore {
  readonly store: CredentialStore;
  /** The same place, opened anew; absent where nothing outlives the process. */
  readonly again?: () => CredentialStore;
}

export function describeCredentialStore(
  name: string,
  open: () => OpenStore | Promise<OpenStore>,
): void {
  describe(`a credential store: ${name}`, () => {
    it('gives back what it was given, to whoever opens it next', async () => {
      const { store, again } = await open();
      const full = makeCredential({ name: 'Ada "L" \u{1f511} Łovelace\n', account: 'a b#c|d/é' });
      const bare = makeCredential({
        account: 'bare',
        name: undefined,
        tenant: undefined,
        threads: undefined,
        refreshToken: undefined,
        scopes: [],
      });
      await store.set(full);
      await store.set(bare);
      for (const opened of [store, again?.() ?? store]) {
        expect(revealed(await opened.get(keyOf(full)))).toEqual(revealed(full));
        expect(revealed(await opened.get(keyOf(bare)))).toEqual({
          issuer: bare.issuer,
          clientId: bare.clientId,
          account: 'bare',
          scopes: [],
          accessToken: 'access-1',
          accessExpiresAtMs: bare.accessExpiresAtMs,
          obtainedAtMs: bare.obtainedAtMs,
        });
        expect(new Set((await opened.list()).map((key) => key.account))).toEqual(
          new Set(['a b#c|d/é', 'bare']),
        );
      }
    });

    it('tells logins apart by issuer, client and account, each alone', async () => {
      const { store } = await open();
      const base = makeCredential();
      const others = [
        { ...base, issuer: 'https://issuer.test/' },
        { ...base, clientId: 'other' },
        { ...base, account: 'usr_2' },
      ].map((one, index) => ({ ...one, accessToken: new Secret(`other-${index}`) }));
      await store.set(base);
      for (const other of others) await store.set(other);
      for (const other of [base, ...others]) {
        expect((await store.get(other))?.accessToken.reveal()).toBe(other.accessToken.reveal());
      }
      expect(await store.delete(base)).toBe(true);
      expect(await store.delete(base)).toBe(false);
      expect(await store.get(base)).toBeUndefined();
      expect((await store.list()).length).toBe(3);
    });

    it('replaces a login by a longer and by a shorter one, and leaves nothing of the old', async () => {
      const { store, again } = await open();
      for (const length of [10, 9_000, 40, 16_000, 5_000, 10]) {
        const credential = makeCredential({
          accessToken: new Secret('a'.repeat(length)),
          refreshToken: new Secret('r'.repeat(length)),
        });
        await store.set(credential);
        const opened = again?.() ?? store;
        expect(revealed(await opened.get(credential))).toEqual(revealed(credential));
        expect(await opened.list()).toEqual([keyOf(credential)]);
      }
    });

    it('knows which login is in use at each issuer', async () => {
      const { store } = await open();
      const [ada, bob] = ['ada', 'bob'].map((account) => makeCredential({ account }));
      const elsewhere = makeCredential({ issuer: 'https://elsewhere.test' });
      if (ada === undefined || bob === undefined) throw new Error('unreachable');
      const current = async (): Promise<string | undefined> =>
        (await store.current(ada.issuer))?.account;
      expect(await current()).toBeUndefined();
      await store.set(ada);
      await store.set(elsewhere, { makeCurrent: true });
      expect(await current()).toBe('ada');
      await store.set(bob, { makeCurrent: true });
      expect(await current()).toBe('bob');
      // A refresh of another changes nothing.
      await store.set(ada);
      expect(await current()).toBe('bob');
      await store.set(ada, { makeCurrent: true });
      expect(await current()).toBe('ada');
      await store.set(makeCredential({ account: 'eve' }));
      await store.delete(ada);
      expect(await current()).toBeUndefined();
      expect((await store.current(elsewhere.issuer))?.account).toBe(elsewhere.account);
    });

    it('refuses a login that it could not give back, and keeps the one it has', async () => {
      const { store } = await open();
      const good = makeCredential();
      await store.set(good);
      const bad = [
        { accessToken: new Secret('') },
        { accessToken: new Secret('x'.repeat(16_385)) },
        { accessExpiresAtMs: Number.NaN },
        { scopes: Array.from({ length: 257 }, () => 's') },
      ];
      for (const part of bad) {
        await expect(store.set({ ...good, ...part })).rejects.toMatchObject({
          code: 'LOGIN_FAILED',
        });
      }
      expect(revealed(await store.get(good))).toEqual(revealed(good));
    });

    it('never shows a token when it is printed', async () => {
      const { store } = await open();
      await store.set(makeCredential());
      const credential = await store.get(makeCredential());
      const printed = [credential, store].map(
        (one) => inspect(one, { depth: 9 }) + JSON.stringify(one),
      );
      expect(printed.join()).not.toMatch(/access-1|refresh-1/);
      expect(store.place).not.toBe('');
    });
  });
}
