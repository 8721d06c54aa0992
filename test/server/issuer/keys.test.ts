import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { Secret } from '../../../src/base/secret.js';
import { KeyRing } from '../../../src/server/issuer/key-ring.js';
import { IssuerKeys } from '../../../src/server/store/keys.js';
import { migrate } from '../../../src/server/store/migrations.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { createAccessTokenVerifier } from '../../../src/server/tokens/access-token.js';
import { createSigningKey, RETIRED_KEY_SECONDS } from '../../../src/server/tokens/signing-keys.js';
import { temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { claimsOf, get, introspect, login, refresh, signedIn } from './support/oauth.js';
import { type Person, type Seen, xsrfOf } from './support/person.js';
import { AUDIENCE, createWorld, type World } from './support/world.js';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld({ replicas: 2 });
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

async function jwks(url: string): Promise<{ keys: Record<string, string>[] }> {
  return (await get(`${url}/jwks`)).body;
}

function kidOf(token: string): string {
  return claimsOf(token, 0).kid;
}

describe('signing keys', () => {
  it('only public halves are shown', async () => {
    const { keys } = await jwks(world.url);
    expect(keys).toHaveLength(1);
    expect(Object.keys(keys[0] ?? {}).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
  });

  it('tokens pass the verifier that the broker uses', async () => {
    const verify = createAccessTokenVerifier({
      issuer: world.url,
      audience: AUDIENCE,
      clock: systemClock,
      jwks: { fetch: () => jwks(world.url) },
    });
    const { access_token: token, id_token: idToken } = await login(world, {
      person: ada,
      choice: { threads: 'thr_one' },
    });
    expect(await verify(new Secret(token))).toMatchObject({
      sub: 'usr_ada',
      kind: 'user',
      tenant: 'default',
      threads: ['thr_one'],
    });
    await expect(verify(new Secret(idToken))).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('a rotation by another process is used within seconds, and what the old key signed stays good', async () => {
    const before = await login(world, { person: ada });
    const next = await createSigningKey();
    await new IssuerKeys(world.db).rotate({ ...next, purpose: 'signing' });
    for (const url of world.replicas) {
      await eventually(async () => (await jwks(url)).keys.length === 2);
      expect((await jwks(url)).keys.map(({ kid }) => kid)).toEqual(
        expect.arrayContaining([next.kid, kidOf(before.access_token)]),
      );
    }
    const after = await refresh(world.url, before.refresh_token);
    expect(kidOf(after.body.access_token)).toBe(next.kid);
    expect((await introspect(world.url, before.access_token)).body.active).toBe(true);
    expect((await introspect(world.url, after.body.access_token)).body.active).toBe(true);

    // A quarter of an hour and some slack later nothing it signed is alive.
    await world.db.run(
      'UPDATE issuer_keys SET retired_at = retired_at - ? WHERE retired_at IS NOT NULL',
      [RETIRED_KEY_SECONDS * 1000],
    );
    await eventually(async () => (await jwks(world.url)).keys.length === 1);
    expect((await introspect(world.url, before.access_token)).body).toEqual({ active: false });
  });

  it('pages that were open during a rotation can still be sent', async () => {
    const page = await ada.get('/device');
    const material = new Secret(randomBytes(32).toString('base64url'));
    await new IssuerKeys(world.db).rotate({ kid: 'cookie-next', purpose: 'cookie', material });
    const visit = ada.cookie.split('=')[1] ?? '';
    const isSealedAnew = ({ text }: Seen) => {
      const [at = '', seal] = /name="xsrf" value="([^"]+)"/.exec(text)?.[1]?.split('.') ?? [];
      return (
        seal ===
        createHmac('sha256', material.reveal()).update(`xsrf\0${visit}\0${at}`).digest('base64url')
      );
    };
    expect(isSealedAnew(page)).toBe(false);
    await eventually(async () => isSealedAnew(await ada.get('/device')));
    expect((await ada.post('/sign-out', { xsrf: xsrfOf(page) })).text).toContain('Signed out');
    await ada.signIn();
  });

  it('keys, logins and browser sessions survive a restart', async () => {
    using folder = temporaryFolder();
    const storeUrl = join(folder.path, 'store.db');
    let kids: string[];
    let tokens: { refresh_token: string };
    let cookie: string;
    {
      await using first = await createWorld({ storeUrl });
      const person = await signedIn(first.url);
      tokens = await login(first, { person });
      kids = (await jwks(first.url)).keys.map(({ kid }) => kid ?? '');
      cookie = person.cookie;
    }
    await using second = await createWorld({ storeUrl });
    expect((await jwks(second.url)).keys.map(({ kid }) => kid)).toEqual(kids);
    expect((await refresh(second.url, tokens.refresh_token)).status).toBe(200);
    expect(
      (await fetch(`${second.url}/device`, { headers: { cookie }, redirect: 'manual' })).status,
    ).toBe(200);
  });

  it('several that start at once on an empty store agree on their keys', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'store.db');
    await using first = await openStore(path);
    await migrate(first);
    const states = await Promise.all(
      Array.from({ length: 4 }, async () => {
        await using db = await openStore(path);
        const ring = await KeyRing.open({ db, clock: systemClock, logger: silentLogger });
        return (await ring.current()).version;
      }),
    );
    expect(new Set(states).size).toBe(1);
    expect(await new IssuerKeys(first).list('signing')).toHaveLength(1);
    expect(await new IssuerKeys(first).list('cookie')).toHaveLength(1);
  });
});
