import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../src/protocol/shapes/issuer.js';
import { hashId } from '../../../src/server/issuer/device-codes.js';
import { Audit } from '../../../src/server/store/audit.js';
import { Clients } from '../../../src/server/store/clients.js';
import { Users } from '../../../src/server/store/users.js';
import { hashClientSecret } from '../../../src/server/tokens/client-secret.js';
import { introspect, login, post, refresh, signedIn } from './support/oauth.js';
import type { Person } from './support/person.js';
import { AGENT, createWorld, type World } from './support/world.js';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld({ replicas: 2 });
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

async function reuses(): Promise<number> {
  return (await new Audit(world.db).list({ event: 'refresh_reuse' }, { limit: 1_000 })).entries
    .length;
}

async function isActive(token: string): Promise<boolean> {
  return (await introspect(world.url, token)).body.active;
}

describe('refresh tokens', () => {
  it('an old one ends the whole family, is audited once, and other families go on', async () => {
    const before = await reuses();
    const first = await login(world, { person: ada });
    const other = await login(world, { person: ada });
    const second = await refresh(world.url, first.refresh_token);
    expect(second.status).toBe(200);
    expect(second.body.refresh_token).not.toBe(first.refresh_token);
    expect(await isActive(first.access_token)).toBe(true);
    expect(await isActive(second.body.access_token)).toBe(true);

    expect(await refresh(world.url, first.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    expect(await refresh(world.url, second.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    expect(await isActive(first.access_token)).toBe(false);
    expect(await isActive(second.body.access_token)).toBe(false);
    expect(await refresh(world.url, first.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    expect(await reuses()).toBe(before + 1);
    const { entries } = await new Audit(world.db).list(
      { event: 'refresh_reuse', subject: 'usr_ada' },
      { limit: 1_000 },
    );
    expect(entries.at(-1)).toMatchObject({
      clientId: CLI_CLIENT_ID,
      details: { address: '127.0.0.1' },
    });

    expect(await isActive(other.access_token)).toBe(true);
    expect((await refresh(world.url, other.refresh_token)).status).toBe(200);
  });

  it('one of another client is refused and stays good', async () => {
    await world.addClient({
      clientId: 'thief',
      kind: 'public',
      grants: [GRANT_TYPES.refreshToken],
    });
    const { refresh_token: token } = await login(world, { person: ada });
    const stolen = await post(`${world.url}/token`, {
      grant_type: 'refresh_token',
      client_id: 'thief',
      refresh_token: token,
    });
    expect(stolen).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect((await refresh(world.url, token)).status).toBe(200);
  });

  it('narrows on request and never widens', async () => {
    const { refresh_token: token } = await login(world, {
      person: ada,
      choice: { scopes: ['read:sandbox', 'exec:sandbox'] },
    });
    const ask = (refreshToken: string, scope: string) =>
      post(`${world.url}/token`, {
        grant_type: 'refresh_token',
        client_id: CLI_CLIENT_ID,
        refresh_token: refreshToken,
        scope,
      });
    expect(await ask(token, 'read:sandbox write:sandbox')).toMatchObject({
      status: 400,
      body: { error: 'invalid_scope' },
    });
    const narrowed = await ask(token, 'read:sandbox');
    expect(narrowed.body.scope).toBe('read:sandbox');
    expect((await refresh(world.url, narrowed.body.refresh_token)).body.scope).toBe(
      'read:sandbox exec:sandbox',
    );
  });

  it('a revoked one takes its access tokens along; the client of another changes nothing', async () => {
    const { refresh_token: token, access_token: access } = await login(world, { person: ada });
    await post(`${world.url}/revoke`, {
      client_id: AGENT.clientId,
      client_secret: AGENT.secret,
      token,
    });
    expect(await isActive(access)).toBe(true);
    expect((await post(`${world.url}/revoke`, { client_id: CLI_CLIENT_ID, token })).status).toBe(
      200,
    );
    expect(await isActive(access)).toBe(false);
    expect((await refresh(world.url, token)).status).toBe(400);
    expect(
      (await post(`${world.url}/revoke`, { client_id: CLI_CLIENT_ID, token: 'never-was' })).status,
    ).toBe(200);
  });

  it('the store keeps none of them: what it has is digests', async () => {
    const body = await login(world, { person: ada });
    const rows = await world.db.query('SELECT id, payload, uid FROM oidc_payloads');
    const kept = JSON.stringify(rows);
    for (const secret of [body.refresh_token, body.access_token, ada.cookie.split('=')[1] ?? '']) {
      expect(kept).not.toContain(secret);
    }
    expect(kept).toContain(hashId(body.refresh_token));
  });
});

describe('a refresh whose answer was lost', () => {
  const keyed = () => ({ 'idempotency-key': randomUUID() });

  it('sent again with the same key, gets the same answer, from any replica', async () => {
    const { refresh_token: token } = await login(world, { person: ada });
    const key = keyed();
    const first = await refresh(world.url, token, key);
    expect(first.status).toBe(200);
    const again = await refresh(world.replicas[1] ?? '', token, key);
    expect(again).toMatchObject({ status: 200, body: first.body });
    expect(again.headers.get('cache-control')).toContain('no-store');
    expect((await refresh(world.url, first.body.refresh_token)).status).toBe(200);
  });

  it('sent again while the first is still under way, gets its answer too', async () => {
    for (let round = 0; round < 10; round++) {
      const { refresh_token: token } = await login(world, { person: ada });
      const key = keyed();
      const answers = await Promise.all(
        [0, 1, 0, 1].map((at) => refresh(world.replicas[at] ?? '', token, key)),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1);
    }
  });

  it('a copy of the token without the key, or with another, is reuse', async () => {
    for (const stolen of [{}, keyed(), { 'idempotency-key': 'short' }]) {
      const before = await reuses();
      const { refresh_token: token } = await login(world, { person: ada });
      const first = await refresh(world.url, token, keyed());
      expect(await refresh(world.url, token, stolen)).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      });
      expect(await refresh(world.url, first.body.refresh_token)).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      });
      expect(await reuses()).toBe(before + 1);
    }
  });

  it('once its successor was used, the key is worth nothing', async () => {
    const { refresh_token: token } = await login(world, { person: ada });
    const key = keyed();
    const first = await refresh(world.url, token, key);
    const second = await refresh(world.url, first.body.refresh_token, keyed());
    expect(second.status).toBe(200);
    expect((await refresh(world.url, token, key)).status).toBe(400);
    expect((await refresh(world.url, second.body.refresh_token)).status).toBe(400);
  });

  it('after a minute the key is worth nothing', async () => {
    const { refresh_token: token } = await login(world, { person: ada });
    const key = keyed();
    expect((await refresh(world.url, token, key)).status).toBe(200);
    await world.db.run(
      "UPDATE oidc_payloads SET expires_at = expires_at - 60000 WHERE kind = 'RefreshAnswer'",
    );
    expect((await refresh(world.url, token, key)).status).toBe(400);
  });

  it('a key that is guessable is no key', async () => {
    const { refresh_token: token } = await login(world, { person: ada });
    const key = { 'idempotency-key': '1' };
    expect((await refresh(world.url, token, key)).status).toBe(200);
    expect((await refresh(world.url, token, key)).status).toBe(400);
  });
});

describe('tokens of ours', () => {
  it('an access token is revoked by itself, and only by its own client', async () => {
    const { access_token: token, refresh_token: rest } = await login(world, { person: ada });
    await post(`${world.url}/revoke`, {
      client_id: AGENT.clientId,
      client_secret: AGENT.secret,
      token,
    });
    expect(await isActive(token)).toBe(true);
    expect((await post(`${world.url}/revoke`, { client_id: CLI_CLIENT_ID, token })).status).toBe(
      200,
    );
    expect(await isActive(token)).toBe(false);
    expect((await refresh(world.url, rest)).status).toBe(200);
  });

  it('a disabled client takes its tokens along', async () => {
    await world.addClient({
      clientId: 'leaving',
      secretHash: hashClientSecret(new Secret('leaving-secret')),
      grants: [GRANT_TYPES.clientCredentials],
    });
    const { body } = await post(`${world.url}/token`, {
      grant_type: 'client_credentials',
      client_id: 'leaving',
      client_secret: 'leaving-secret',
      scope: 'read:sandbox',
    });
    expect((await introspect(world.url, body.access_token, AGENT)).body.active).toBe(true);
    await new Clients(world.db).setDisabled('leaving', true);
    expect((await introspect(world.url, body.access_token, AGENT)).body).toEqual({ active: false });
  });

  it('introspection tells a client of its own tokens, a service of its tenant’s, and nobody else', async () => {
    await world.addClient({ clientId: 'public2', kind: 'public', grants: [] });
    const { access_token: token } = await login(world, { person: ada });
    expect((await introspect(world.url, token)).body).toMatchObject({
      active: true,
      sub: 'usr_ada',
      client_id: CLI_CLIENT_ID,
      token_type: 'Bearer',
    });
    expect((await introspect(world.url, token, AGENT)).body.active).toBe(true);
    expect((await introspect(world.url, token, { clientId: 'public2' })).body).toEqual({
      active: false,
    });
    expect((await introspect(world.url, token, { ...AGENT, secret: 'wrong-secret' })).status).toBe(
      401,
    );
    expect((await introspect(world.url, `${token.slice(0, -4)}AAAA`)).body).toEqual({
      active: false,
    });
    expect((await introspect(world.url, 'no token')).body).toEqual({ active: false });
  });

  it('userinfo answers the bearer of a good token, and nobody else', async () => {
    const { access_token: token, id_token: idToken } = await login(world, { person: ada });
    const ask = (bearer: string) =>
      fetch(`${world.url}/userinfo`, { headers: { authorization: `Bearer ${bearer}` } });
    expect(await (await ask(token)).json()).toEqual({
      sub: 'usr_ada',
      name: 'ada',
      preferred_username: 'ada',
      tenant: 'default',
    });
    for (const bad of [idToken, `${token.slice(0, -4)}AAAA`, 'x']) {
      const refused = await ask(bad);
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    }
    expect((await fetch(`${world.url}/userinfo`)).status).toBe(401);
    await new Users(world.db).setDisabled('usr_ada', true);
    expect((await ask(token)).status).toBe(401);
    await new Users(world.db).setDisabled('usr_ada', false);
  });
});
