import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { Secret } from '../../../src/base/secret.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../src/protocol/shapes/issuer.js';
import { KEYS_MIN_AGE_MS, KeyRing } from '../../../src/server/issuer/key-ring.js';
import { Clients } from '../../../src/server/store/clients.js';
import { IssuerKeys } from '../../../src/server/store/keys.js';
import { Users } from '../../../src/server/store/users.js';
import { hashClientSecret } from '../../../src/server/tokens/client-secret.js';
import { hashPassword } from '../../../src/server/tokens/password.js';
import { createSigningKey } from '../../../src/server/tokens/signing-keys.js';
import { startPostgres } from '../../support/postgres.js';
import {
  type Answer,
  claimsOf,
  exchange,
  introspect,
  login,
  post,
  refresh,
  signedIn,
} from './support/oauth.js';
import { AGENT, createWorld, PASSWORD, type World } from './support/world.js';

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const SERVICE = { clientId: 'service', secret: 'service-secret' } as const;

function service(client: { clientId: string; secret: string }, scope?: string): Promise<Answer> {
  return post(`${world.url}/token`, {
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.secret,
    ...(scope !== undefined && { scope }),
  });
}

async function addService(clientId: string, tenant = 'default'): Promise<void> {
  await world.addClient({
    clientId,
    tenant,
    secretHash: hashClientSecret(new Secret(SERVICE.secret)),
    grants: [GRANT_TYPES.clientCredentials, GRANT_TYPES.tokenExchange],
    allowedScopes: ['read:sandbox', 'exec:sandbox'],
  });
}

describe('a service', () => {
  beforeAll(() => addService(SERVICE.clientId));

  it('that asks for no scope in particular gets what its row allows', async () => {
    const { status, body } = await service(SERVICE);
    expect({ status, scope: body.scope }).toEqual({
      status: 200,
      scope: 'read:sandbox exec:sandbox',
    });
    expect(claimsOf(body.access_token).scope).toBe('read:sandbox exec:sandbox');
    expect((await service(SERVICE, 'read:sandbox')).body.scope).toBe('read:sandbox');
  });

  it('takes what was made of its token with it: by revocation, and by being disabled', async () => {
    for (const end of [
      (token: string) =>
        post(`${world.url}/revoke`, {
          token,
          client_id: SERVICE.clientId,
          client_secret: SERVICE.secret,
        }),
      () => new Clients(world.db).setDisabled(SERVICE.clientId, true),
    ]) {
      const own: string = (await service(SERVICE)).body.access_token;
      const made = await exchange(world.url, AGENT, { subject_token: own });
      const token: string = made.body.access_token;
      const again = await exchange(world.url, AGENT, { subject_token: token });
      expect((await introspect(world.url, again.body.access_token, AGENT)).body.active).toBe(true);
      await end(own);
      for (const ended of [token, again.body.access_token]) {
        expect((await introspect(world.url, ended, AGENT)).body).toEqual({ active: false });
        expect((await exchange(world.url, AGENT, { subject_token: ended })).body.error).toBe(
          'invalid_grant',
        );
      }
    }
  });

  it("of another tenant does not exchange a user's token", async () => {
    await addService('stranger', 't2');
    const { access_token: subject } = await login(world);
    const stranger = { clientId: 'stranger', secret: SERVICE.secret };
    expect(await exchange(world.url, stranger, { subject_token: subject })).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });
});

describe('logins of a user end for good', () => {
  const ways: readonly [string, (users: Users) => Promise<unknown>][] = [
    [
      'by a new password',
      async (users) => users.setPasswordHash('usr_ada', await hashPassword(new Secret(PASSWORD))),
    ],
    ['by hand', (users) => users.endLogins('usr_ada')],
    [
      'by being shut out, and stay ended when let in again',
      async (users) => {
        await users.setDisabled('usr_ada', true);
        await users.setDisabled('usr_ada', false);
      },
    ],
  ];
  it.each(ways)('%s', async (_name, end) => {
    const person = await signedIn(world.url);
    const body = await login(world, { person });
    const made = await exchange(world.url, AGENT, { subject_token: body.access_token });
    expect((await introspect(world.url, body.access_token)).body.active).toBe(true);
    await end(new Users(world.db));
    expect((await introspect(world.url, body.access_token)).body).toEqual({ active: false });
    expect((await introspect(world.url, made.body.access_token, AGENT)).body.active).toBe(false);
    expect((await refresh(world.url, body.refresh_token)).body.error).toBe('invalid_grant');
    expect((await person.get('/device')).status).not.toBe(200);
    const fresh = await login(world);
    expect((await refresh(world.url, fresh.refresh_token)).status).toBe(200);
  });
});

it('a key that was made elsewhere just now is known at its first use, and looked for at a bounded rate', async () => {
  const clock = new ManualClock();
  const ring = await KeyRing.open({ db: world.db, clock, logger: silentLogger });
  const key = await createSigningKey();
  await clock.advance(KEYS_MIN_AGE_MS);
  expect(await ring.verifier(key.kid)).toBeUndefined();
  await new IssuerKeys(world.db).rotate({ ...key, purpose: 'signing' });
  expect(await ring.verifier(key.kid)).toBeUndefined();
  await clock.advance(KEYS_MIN_AGE_MS);
  expect(await ring.verifier(key.kid)).toBeDefined();
});

it('while the store is away, programs are told to try again, and people on a page', async () => {
  const postgres = await startPostgres();
  if (postgres.kind === 'skipped') return;
  let isStopped = false;
  try {
    await using away = await createWorld({ storeUrl: await postgres.server.createDatabase() });
    const body = await login(away);
    isStopped = true;
    await postgres.server[Symbol.asyncDispose]();
    const begin = { client_id: CLI_CLIENT_ID, scope: 'openid' };
    const answers = [
      await refresh(away.url, body.refresh_token),
      await introspect(away.url, body.access_token),
      await post(`${away.url}/device/code`, begin),
    ];
    for (const { status, headers, body: says } of answers) {
      expect({ status, error: says.error, after: headers.get('retry-after') }).toEqual({
        status: 503,
        error: 'temporarily_unavailable',
        after: '1',
      });
    }
    const authorize = await fetch(
      `${away.url}/authorize?client_id=${CLI_CLIENT_ID}&response_type=code&redirect_uri=http://127.0.0.1/callback`,
      { redirect: 'manual' },
    );
    expect(authorize.status).toBe(503);
    expect(await authorize.json()).toMatchObject({ error: 'temporarily_unavailable' });
    for (const path of ['/authorize?client_id=x&response_type=code', '/device', '/sign-in']) {
      const page = await fetch(`${away.url}${path}`, {
        headers: {
          accept: 'text/html,application/xhtml+xml',
          cookie: `ailsd_session=${'a'.repeat(43)}`,
        },
        redirect: 'manual',
      });
      const type = page.headers.get('content-type');
      expect([path, page.status, type]).toEqual([path, 503, 'text/html; charset=utf-8']);
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(await page.text()).toContain('Not just now');
    }
    const home = await fetch(away.url, { headers: { accept: 'text/html' } });
    expect([home.status, await home.text()]).toEqual([200, expect.stringContaining('/device')]);
  } finally {
    if (!isStopped) await postgres.server[Symbol.asyncDispose]();
  }
});
