import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessClaims } from '../../../src/protocol/claims.js';
import { parse } from '../../../src/protocol/parse.js';
import { LOGIN_SCOPES } from '../../../src/protocol/scopes.js';
import {
  CLI_CLIENT_ID,
  deviceCodeAnswer,
  discoveryAnswer,
  GRANT_TYPES,
  tokenAnswer,
} from '../../../src/protocol/shapes/issuer.js';
import { hashId } from '../../../src/server/issuer/device-codes.js';
import { Clients } from '../../../src/server/store/clients.js';
import { OidcPayloads } from '../../../src/server/store/oidc-payloads.js';
import { Users } from '../../../src/server/store/users.js';
import { proves } from '../../requirements.js';
import { runProgram, temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import {
  beginLogin,
  claimsOf,
  get,
  login,
  poll,
  post,
  refresh,
  signedIn,
} from './support/oauth.js';
import type { Person } from './support/person.js';
import { passTime } from './support/time.js';
import { AUDIENCE, createWorld, PASSWORD, type World } from './support/world.js';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld();
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

describe('the device flow, by bare HTTP', () => {
  it('discovery names every endpoint at its path, and the five grants', async () => {
    const { body: document } = await get(`${world.url}/.well-known/openid-configuration`);
    expect(parse(discoveryAnswer, document, 'INTERNAL', '').ok).toBe(true);
    expect(document).toMatchObject({
      issuer: world.url,
      device_authorization_endpoint: `${world.url}/device/code`,
      token_endpoint: `${world.url}/token`,
      jwks_uri: `${world.url}/jwks`,
      authorization_endpoint: `${world.url}/authorize`,
      userinfo_endpoint: `${world.url}/userinfo`,
      revocation_endpoint: `${world.url}/revoke`,
      introspection_endpoint: `${world.url}/introspect`,
      code_challenge_methods_supported: ['S256'],
    });
    expect(document.grant_types_supported).toEqual(
      expect.arrayContaining(Object.values(GRANT_TYPES)),
    );
    expect(document.scopes_supported).toEqual(expect.arrayContaining([...LOGIN_SCOPES]));
  });

  it("URLs are built from the configured address, whatever the request's headers say", async () => {
    const headers = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    };
    const response = await fetch(`${world.url}/.well-known/openid-configuration`, { headers });
    expect(await response.text()).not.toContain('evil.example');
    const begun = await beginLogin(world.url, undefined, headers);
    expect(begun.verification_uri).toBe(`${world.url}/device`);
  });

  it('goes as seed 001 prints it: code, pending, approval, a token for fifteen minutes', async () => {
    const begun = await beginLogin(world.url);
    expect(parse(deviceCodeAnswer, begun, 'INTERNAL', '').ok).toBe(true);
    expect(begun).toMatchObject({
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: `${world.url}/device`,
      verification_uri_complete: `${world.url}/device?user_code=${begun.user_code}`,
      expires_in: 600,
      interval: 5,
    });
    expect(await poll(world.url, begun.device_code)).toMatchObject({
      status: 400,
      body: { error: 'authorization_pending' },
    });

    const done = await ada.decide(begun.user_code, 'approve');
    expect(done.text).toContain('Approved');
    await passTime(world.db, begun.device_code, 5);
    const { status, body, headers } = await poll(world.url, begun.device_code);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toContain('no-store');
    expect(parse(tokenAnswer, body, 'INTERNAL', '').ok).toBe(true);
    expect(body).toMatchObject({
      token_type: 'Bearer',
      expires_in: 900,
      scope: LOGIN_SCOPES.join(' '),
    });

    expect(claimsOf(body.access_token, 0)).toMatchObject({ alg: 'RS256', typ: 'at+jwt' });
    const claims = claimsOf(body.access_token);
    expect(parse(accessClaims, claims, 'INTERNAL', '').ok).toBe(true);
    expect(claims).toEqual({
      iss: world.url,
      sub: 'usr_ada',
      aud: AUDIENCE,
      client_id: CLI_CLIENT_ID,
      scope: LOGIN_SCOPES.join(' '),
      principal: 'user',
      tenant: 'default',
      iat: expect.any(Number),
      exp: claims.iat + 900,
      jti: expect.stringMatching(/^tok_/),
    });
    expect(await poll(world.url, begun.device_code)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });

  it('a denied login answers access_denied, also when asked again', async () => {
    const begun = await beginLogin(world.url);
    expect((await ada.decide(begun.user_code, 'deny')).text).toContain('Denied');
    expect(await poll(world.url, begun.device_code)).toMatchObject({
      status: 400,
      body: { error: 'access_denied' },
    });
    await passTime(world.db, begun.device_code, 5);
    expect(await poll(world.url, begun.device_code)).toMatchObject({
      status: 400,
      body: { error: 'access_denied' },
    });
  });

  it('a code that ran out answers expired_token, one that never was invalid_grant', async () => {
    await using brief = await createWorld({ issuer: { deviceCodeSeconds: 1 } });
    const begun = await beginLogin(brief.url);
    expect(begun.expires_in).toBe(1);
    const payloads = new OidcPayloads(brief.db);
    await eventually(
      async () =>
        (await payloads.find('DeviceCode', hashId(begun.device_code)))?.isExpired === true,
    );
    expect(await poll(brief.url, begun.device_code)).toMatchObject({
      status: 400,
      body: { error: 'expired_token' },
    });
    expect(await poll(brief.url, 'never-was')).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });

  it('a code is no use to another client, and stays good for its own', async () => {
    await world.addClient({ clientId: 'other', kind: 'public', grants: [GRANT_TYPES.deviceCode] });
    const begun = await beginLogin(world.url);
    await ada.decide(begun.user_code, 'approve');
    expect(await poll(world.url, begun.device_code, 'other')).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    expect((await poll(world.url, begun.device_code)).status).toBe(200);
  });

  it('requests that are wrong get the errors of RFC 6749', async () => {
    expect(await post(`${world.url}/device/code`, { client_id: 'nobody' })).toMatchObject({
      status: 401,
      body: { error: 'invalid_client' },
    });
    expect(await post(`${world.url}/device/code`, {})).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    });
    expect(
      await post(`${world.url}/token`, { client_id: CLI_CLIENT_ID, grant_type: 'password' }),
    ).toMatchObject({
      status: 400,
      body: { error: 'unsupported_grant_type' },
    });
    expect(
      await post(`${world.url}/token`, {
        client_id: CLI_CLIENT_ID,
        grant_type: GRANT_TYPES.deviceCode,
      }),
    ).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    });
  });

  it('a script of plain curl walks through it, and meets every error of the RFC', async () => {
    await using brief = await createWorld({ issuer: { deviceCodeSeconds: 1 } });
    using folder = temporaryFolder();
    const script = join(import.meta.dirname, 'device-flow.sh');
    const env = {
      URL: world.url,
      BRIEF_URL: brief.url,
      ACCOUNT: 'ada',
      PASSWORD,
      JAR: join(folder.path, 'cookies'),
    };
    const { code, stdout, stderr } = await runProgram('sh', [script], { env });
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual([
      'authorization_pending',
      'slow_down',
      'access_denied',
      'expired_token',
      'token Bearer 900',
      'sub usr_ada',
      'refreshed Bearer 900',
      'active true',
      'revoked 200',
      'active false',
    ]);
    expect(code).toBe(0);
  });
});

describe('what an approver gives', () => {
  it('unticked scopes are not given, now or at a refresh, and the answer says what was', async () => {
    const body = await login(world, {
      person: ada,
      choice: { scopes: ['read:sandbox', 'exec:sandbox'] },
    });
    expect(body.scope).toBe('read:sandbox exec:sandbox');
    expect(claimsOf(body.access_token).scope).toBe('read:sandbox exec:sandbox');
    const again = await refresh(world.url, body.refresh_token);
    expect(again.body.scope).toBe('read:sandbox exec:sandbox');
  });

  it('with everything unticked a login knows who somebody is, and may do nothing', async () => {
    for (const scope of [undefined, 'read:sandbox']) {
      const body = await login(world, {
        person: ada,
        choice: { scopes: [] },
        ...(scope !== undefined && { scope }),
      });
      expect(claimsOf(body.access_token)).toMatchObject({ sub: 'usr_ada', scope: '' });
    }
  });

  it('a form that posts more than was offered gives no more', async () => {
    const body = await login(world, {
      person: ada,
      scope: 'read:sandbox',
      choice: { scopes: ['read:sandbox', 'exec:sandbox', 'admin:sandbox'] },
    });
    expect(body.scope).toBe('read:sandbox');
  });

  it('a login pinned to threads carries them in every token', async () => {
    const body = await login(world, {
      person: ada,
      choice: { threads: 'thr_one, thr_two thr_one' },
    });
    expect(claimsOf(body.access_token).threads).toEqual(['thr_one', 'thr_two']);
    const again = await refresh(world.url, body.refresh_token);
    expect(claimsOf(again.body.access_token).threads).toEqual(['thr_one', 'thr_two']);
  });

  it('what is no thread id is shown again to be corrected, and nothing is approved', async () => {
    const begun = await beginLogin(world.url);
    const page = await ada.decide(begun.user_code, 'approve', {
      threads: 'thr_one no/thread',
      scopes: ['exec:sandbox'],
      ttl: '1h',
    });
    expect(page.status).toBe(400);
    expect(page.text).toContain('Thread ids have letters');
    // What was chosen stays so: a box that was unticked is not ticked again behind somebody's back.
    expect([...page.text.matchAll(/value="([^"]+)" checked/g)].map((match) => match[1])).toEqual([
      'exec:sandbox',
      '1h',
    ]);
    expect(page.text).toContain('value="thr_one no/thread"');
    expect(await poll(world.url, begun.device_code)).toMatchObject({
      body: { error: 'authorization_pending' },
    });
  });

  it('a shortened login ends when it was to end, its last token included', async () => {
    const first = await login(world, { person: ada, choice: { ttl: '1h' } });
    const leave = (seconds: number) => leaveOfLogin(world, first.access_token, seconds);
    expect(await leave(100)).toBeGreaterThan(3_590);
    const second = await refresh(world.url, first.refresh_token);
    expect(second.body.expires_in).toBeLessThanOrEqual(100);
    await leave(-1);
    expect(await refresh(world.url, second.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });
});

/** Makes what is left of a login so many seconds; how many it were. */
async function leaveOfLogin({ db }: World, accessToken: string, seconds: number): Promise<number> {
  const payloads = new OidcPayloads(db);
  const token = await payloads.find('AccessToken', claimsOf(accessToken).jti);
  const grant = await payloads.find('Grant', token?.grantId ?? '');
  if (grant === undefined) throw new Error('there is no grant');
  const now = Math.floor(Date.now() / 1000);
  await payloads.upsert({
    ...grant,
    payload: { ...grant.payload, exp: now + seconds },
    expiresInMs: 3_600_000,
  });
  return Number(grant.payload['exp']) - now;
}

describe('limits on scopes', () => {
  it('a client gets nothing its row does not allow, and unknown words are dropped', async () => {
    await world.addClient({
      clientId: 'reader',
      kind: 'public',
      grants: [GRANT_TYPES.deviceCode],
      allowedScopes: ['read:sandbox'],
    });
    const begun = await post(`${world.url}/device/code`, {
      client_id: 'reader',
      scope: 'read:sandbox exec:sandbox fly:moon',
    });
    const page = await ada.compare(begun.body.user_code);
    expect(page.text).toContain('It asked for exec:sandbox too');
    await ada.decide(begun.body.user_code, 'approve', {
      scopes: ['read:sandbox', 'exec:sandbox', 'fly:moon'],
    });
    const { body } = await poll(world.url, begun.body.device_code, 'reader');
    expect(body.scope).toBe('read:sandbox');
    expect(body.refresh_token).toBeUndefined();
  });

  it('a user gives nothing they do not have, and what they lose is gone at the next refresh', async () => {
    await world.addUser('carl', ['read:sandbox', 'write:sandbox']);
    const carl = await signedIn(world.url, 'carl');
    const body = await login(world, { person: carl });
    expect(body.scope).toBe('read:sandbox write:sandbox');
    await new Users(world.db).setScopes('usr_carl', ['read:sandbox']);
    const narrowed = await refresh(world.url, body.refresh_token);
    expect(narrowed.body.scope).toBe('read:sandbox');
    await new Users(world.db).setDisabled('usr_carl', true);
    expect(await refresh(world.url, narrowed.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    expect((await carl.get('/device')).headers.get('location')).toContain('/sign-in');
  });

  it('what a client loses is gone at the next refresh, and a disabled client is unknown', async () => {
    await world.addClient({
      clientId: 'shrinking',
      kind: 'public',
      grants: [GRANT_TYPES.deviceCode, GRANT_TYPES.refreshToken],
    });
    const begun = await post(`${world.url}/device/code`, {
      client_id: 'shrinking',
      scope: 'read:sandbox exec:sandbox',
    });
    await ada.decide(begun.body.user_code, 'approve');
    const { body } = await poll(world.url, begun.body.device_code, 'shrinking');
    await new Clients(world.db).setAllowedScopes('shrinking', ['read:sandbox']);
    const fields = { grant_type: 'refresh_token', client_id: 'shrinking' };
    const again = await post(`${world.url}/token`, {
      ...fields,
      refresh_token: body.refresh_token,
    });
    expect(again.body.scope).toBe('read:sandbox');
    await new Clients(world.db).setDisabled('shrinking', true);
    expect(
      await post(`${world.url}/token`, { ...fields, refresh_token: again.body.refresh_token }),
    ).toMatchObject({
      status: 401,
      body: { error: 'invalid_client' },
    });
  });
});

describe('the pace', () => {
  it(
    proves('early polls are slowed for good, get nothing, and slow nobody else', 'OA-02'),
    async () => {
      const begun = await beginLogin(world.url);
      const beside = await beginLogin(world.url);
      expect(begun).toMatchObject({ interval: 5, expires_in: 600 });
      expect(await poll(world.url, begun.device_code)).toMatchObject({
        status: 400,
        body: { error: 'authorization_pending' },
      });
      expect((await poll(world.url, beside.device_code)).body.error).toBe('authorization_pending');

      for (let second = 1; second <= 10; second++) {
        await passTime(world.db, begun.device_code, 1);
        expect(await poll(world.url, begun.device_code)).toMatchObject({
          status: 400,
          body: { error: 'slow_down' },
        });
        if (second === 5) await ada.decide(begun.user_code, 'approve');
        if (second % 5 === 0) {
          await passTime(world.db, beside.device_code, 5);
          expect((await poll(world.url, beside.device_code)).body.error).toBe(
            'authorization_pending',
          );
        }
      }
      // Ten early polls: the gap is 55 s, counted from the last poll in time. 44 more are one too few.
      await passTime(world.db, begun.device_code, 44);
      expect(await poll(world.url, begun.device_code)).toMatchObject({
        status: 400,
        body: { error: 'slow_down' },
      });
      await passTime(world.db, begun.device_code, 5);
      expect((await poll(world.url, begun.device_code)).body.error).toBe('slow_down');
      await passTime(world.db, begun.device_code, 6);
      expect(await poll(world.url, begun.device_code)).toMatchObject({
        status: 200,
        body: { token_type: 'Bearer' },
      });
    },
  );

  it('one login too many from one address is put off', async () => {
    await using busy = await createWorld();
    await beginLogin(busy.url);
    await busy.db.run("UPDATE attempts SET count = 1000 WHERE bucket LIKE 'device %'");
    const { status, headers } = await post(`${busy.url}/device/code`, { client_id: CLI_CLIENT_ID });
    expect(status).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
