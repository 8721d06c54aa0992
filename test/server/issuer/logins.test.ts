import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../../support/server.js';
import {
  type Answer,
  beginLogin,
  claimsOf,
  exchange,
  introspect,
  LOGIN_SCOPE,
  poll,
  post,
  refresh,
  signedIn,
} from './support/oauth.js';
import type { Choice } from './support/person.js';
import { PASSWORD } from './support/world.js';

let server: TestServer;
beforeAll(async () => {
  const users = ['ada', 'bob', 'eve', 'dan', 'kim', 'sam', 'rex'].map((name) => ({
    name,
    password: PASSWORD,
  }));
  server = await startServer({ users });
});
afterAll(() => server[Symbol.asyncDispose]());

async function login(
  name: string,
  options: { readonly choice?: Choice; readonly machine?: string } = {},
): Promise<Answer['body']> {
  const begun = await post(`${server.url}/device/code`, {
    client_id: 'ailsd-cli',
    scope: LOGIN_SCOPE,
    ...(options.machine !== undefined && { machine_name: options.machine }),
  });
  const person = await signedIn(server.url, name);
  expect((await person.decide(begun.body.user_code, 'approve', options.choice)).status).toBe(200);
  return (await poll(server.url, begun.body.device_code)).body;
}

async function call(method: string, path: string, token: string) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${server.url}${path}`, { method, headers });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

async function loginsOf({ access_token: token }: Answer['body']) {
  const { status, body } = await call('GET', '/v1/logins', token);
  expect(status).toBe(200);
  return body.items;
}

describe('the life of a login', () => {
  it.each([
    ['1h', 3_600],
    ['30d', 2_592_000],
  ])('%s: told with the tokens, and no longer after a refresh', async (ttl, seconds) => {
    const first = await login('ada', { choice: { ttl } });
    expect(first.refresh_token_expires_in).toBeGreaterThan(seconds - 60);
    expect(first.refresh_token_expires_in).toBeLessThanOrEqual(seconds);
    const second = await refresh(server.url, first.refresh_token);
    expect(second.body.refresh_token_expires_in).toBeLessThanOrEqual(
      first.refresh_token_expires_in,
    );
    expect(second.body.refresh_token_expires_in).toBeGreaterThan(seconds - 60);
  });
});

describe('one’s own logins', () => {
  it('are listed with what tells them apart, the caller’s marked; nobody else’s are', async () => {
    const lost = await login('bob', { machine: 'thinkpad.local', choice: { ttl: '8h' } });
    const here = await login('bob');
    await login('ada');
    const items = await loginsOf(here);
    expect(items).toHaveLength(2);
    expect(items[1]).toMatchObject({
      client_id: 'ailsd-cli',
      machine_name: 'thinkpad.local',
      address: '127.0.0.1',
      current: false,
      scopes: ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'],
    });
    expect(items[0]).toMatchObject({ current: true });
    expect(items[0].machine_name).toBe(undefined);
    const life = Date.parse(items[1].expires_at) - Date.parse(items[1].created_at);
    expect(Math.abs(life - 8 * 3_600_000)).toBeLessThan(2_000);
    await refresh(server.url, lost.refresh_token);
    const [, after] = await loginsOf(here);
    expect(Date.parse(after.last_used_at)).toBeGreaterThan(Date.parse(items[1].last_used_at));
    expect(after.created_at).toBe(items[1].created_at);
  });

  it('ended, one has neither tokens nor a refresh, and can end nothing itself', async () => {
    const lost = await login('dan');
    const here = await login('dan');
    const [, { id }] = await loginsOf(here);
    expect(await call('DELETE', `/v1/logins/${id}`, here.access_token)).toMatchObject({
      status: 204,
    });
    expect((await refresh(server.url, lost.refresh_token)).body.error).toBe('invalid_grant');
    expect((await introspect(server.url, lost.access_token)).body.active).toBe(false);
    expect((await introspect(server.url, here.access_token)).body.active).toBe(true);
    expect(await loginsOf(here)).toHaveLength(1);
    expect((await call('GET', '/v1/logins', lost.access_token)).status).toBe(401);
    expect((await call('DELETE', '/v1/logins', lost.access_token)).status).toBe(401);
    expect((await call('DELETE', `/v1/logins/${id}`, here.access_token)).status).toBe(404);
    expect((await refresh(server.url, here.refresh_token)).status).toBe(200);
  });

  it('somebody else’s is not there to be ended', async () => {
    const theirs = await login('ada');
    const [{ id }] = await loginsOf(theirs);
    const mine = await login('bob');
    const other = await call('DELETE', `/v1/logins/${id}`, mine.access_token);
    const none = await call('DELETE', '/v1/logins/login_0', mine.access_token);
    expect([other.status, none.status]).toEqual([404, 404]);
    expect(other.body.error.message).toBe(none.body.error.message);
    expect((await refresh(server.url, theirs.refresh_token)).status).toBe(200);
  });

  it('a login that is pinned to threads sees and ends itself alone', async () => {
    const whole = await login('eve');
    const pinned = await login('eve', { choice: { threads: 'thr_demo' } });
    expect(await loginsOf(pinned)).toMatchObject([{ current: true, threads: ['thr_demo'] }]);
    const { id } = (await loginsOf(whole)).find((one: { current: boolean }) => one.current);
    expect((await call('DELETE', `/v1/logins/${id}`, pinned.access_token)).status).toBe(404);
    expect((await call('DELETE', '/v1/logins', pinned.access_token)).status).toBe(403);
    expect(await loginsOf(whole)).toHaveLength(2);
  });

  it('an agent and a service have nothing to do with them', async () => {
    const mine = await login('ada');
    const client = { clientId: server.admin.clientId, secret: server.admin.clientSecret };
    const agent = await exchange(server.url, client, { subject_token: mine.access_token });
    const service = await post(`${server.url}/token`, {
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: client.secret,
    });
    for (const token of [agent.body.access_token, service.body.access_token]) {
      expect((await call('GET', '/v1/logins', token)).status).toBe(403);
      expect((await call('DELETE', '/v1/logins', token)).status).toBe(403);
    }
  });

  it('all at once: terminals and browsers, and a new one works', async () => {
    const first = await login('kim');
    const second = await login('kim');
    const browser = await signedIn(server.url, 'kim');
    expect((await browser.get('/device')).status).toBe(200);
    expect((await call('DELETE', '/v1/logins', second.access_token)).status).toBe(204);
    for (const one of [first, second]) {
      expect((await refresh(server.url, one.refresh_token)).body.error).toBe('invalid_grant');
      expect((await introspect(server.url, one.access_token)).body.active).toBe(false);
    }
    expect((await browser.get('/device')).status).toBe(303);
    expect(await loginsOf(await login('kim'))).toHaveLength(1);
  });
});

describe('what an operator changes', () => {
  it('narrower scopes hold from the next token on, wider ones not beyond what was approved', async () => {
    const mine = await login('sam', { choice: { scopes: ['read:sandbox', 'exec:sandbox'] } });
    await server.operate('user-scopes', { name: 'sam', scopes: ['read:sandbox'] });
    const narrowed = await refresh(server.url, mine.refresh_token);
    expect(narrowed.body.scope).toBe('read:sandbox');
    expect(claimsOf(narrowed.body.access_token).scope).toBe('read:sandbox');
    const all = ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'];
    await server.operate('user-scopes', { name: 'sam', scopes: all });
    const widened = await refresh(server.url, narrowed.body.refresh_token);
    expect(widened.body.scope).not.toContain('write:sandbox');
  });

  it('a user that is removed has no login, no browser and no name any more', async () => {
    const mine = await login('rex');
    const browser = await signedIn(server.url, 'rex');
    await server.operate('user-rm', { name: 'rex' });
    expect((await refresh(server.url, mine.refresh_token)).body.error).toBe('invalid_grant');
    expect((await introspect(server.url, mine.access_token)).body.active).toBe(false);
    expect((await call('GET', '/v1/logins', mine.access_token)).status).toBe(401);
    expect((await browser.get('/device')).status).toBe(303);
    await server.operate('user-add', { name: 'rex', password: PASSWORD });
    expect((await refresh(server.url, mine.refresh_token)).body.error).toBe('invalid_grant');
    expect((await browser.get('/device')).status).toBe(303);
    expect(await loginsOf(await login('rex'))).toHaveLength(1);
  });
});

describe('whoami', () => {
  it('says how people know the account, and what a service is called', async () => {
    const mine = await login('ada');
    const person = await call('GET', '/v1/whoami', mine.access_token);
    expect(person.body).toMatchObject({ name: 'ada', sub: expect.stringMatching(/^usr_/) });
    const service = await post(`${server.url}/token`, {
      grant_type: 'client_credentials',
      client_id: server.admin.clientId,
      client_secret: server.admin.clientSecret,
    });
    const program = await call('GET', '/v1/whoami', service.body.access_token);
    expect(program.body).toMatchObject({ name: 'first administrator', principal: 'service' });
  });
});

describe('the address alone', () => {
  it('is a page for a browser, and for programs nothing', async () => {
    const page = await fetch(server.url, { headers: { accept: 'text/html,*/*;q=0.8' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(await page.text()).toMatch(/ailsd server.*href="\/device"/s);
    const posted = await fetch(server.url, { method: 'POST', headers: { accept: 'text/html' } });
    expect(posted.status).toBe(405);
    const program = await fetch(server.url);
    expect(program.status).toBe(404);
    expect(await program.json()).toMatchObject({ error: { code: 'NOT_FOUND' } });
  });
});

describe('the page of consent', () => {
  it.each([
    ['laptop-7', 'laptop-7'],
    ['<b>bank</b>', undefined],
    ['your own laptop', undefined],
    ['xn--\u202e', undefined],
  ])('a machine that says it is %j is shown as %j', async (machine, shown) => {
    const begun = await post(`${server.url}/device/code`, {
      client_id: 'ailsd-cli',
      scope: LOGIN_SCOPE,
      machine_name: machine,
    });
    const page = await (await signedIn(server.url)).compare(begun.body.user_code);
    const said = /says it is<\/span> ([^<]*)</.exec(page.text)?.[1];
    expect([page.status, said]).toEqual([200, shown]);
    const without = await beginLogin(server.url);
    const plain = await (await signedIn(server.url)).compare(without.user_code);
    expect(plain.text).not.toContain('says it is');
  });
});
