import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { LOGIN_SCOPES } from '../../../src/protocol/scopes.js';
import { Users } from '../../../src/server/store/users.js';
import { hashPassword } from '../../../src/server/tokens/password.js';
import { get } from './support/oauth.js';
import { Person, xsrfOf } from './support/person.js';
import { createWorld, PASSWORD, type World } from './support/world.js';

let world: World;
beforeAll(async () => {
  world = await createWorld({ proxies: ['127.0.0.1'] });
});
afterAll(() => world[Symbol.asyncDispose]());

const from = (address: string) => new Person(world.url, { 'x-forwarded-for': address });

describe('signing in', () => {
  it('with the right password gives a session under a new id, in a cookie that scripts and other sites never see', async () => {
    const person = from('198.51.100.1');
    await person.get('/sign-in');
    const before = person.cookie;
    const answer = await person.signIn();
    expect(answer).toMatchObject({ status: 303 });
    expect(answer.headers.get('location')).toBe('/device');
    expect(answer.headers.get('set-cookie')).toMatch(
      /^ailsd_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/,
    );
    expect(person.cookie).not.toBe(before);
    expect((await person.get('/device')).text).toContain('Signed in as ada');
    expect((await person.get('/sign-in')).headers.get('location')).toBe('/device');
  });

  it('behind https the cookie is bound to this host', async () => {
    await using secure = await createWorld({ issuer: { url: 'https://login.example' } });
    const page = await fetch(`${secure.replicas[0]}/sign-in`);
    expect(page.headers.get('set-cookie')).toMatch(/^__Host-ailsd_session=[\w-]{43}; .*; Secure$/);
    const { body: discovery } = await get(`${secure.replicas[0]}/.well-known/openid-configuration`);
    expect(discovery.token_endpoint).toBe('https://login.example/token');
  });

  it('a wrong password, an account that is not there and one that is disabled look alike', async () => {
    await world.addUser('gone');
    await new Users(world.db).setDisabled('usr_gone', true);
    const texts = [];
    for (const [name, password] of [
      ['ada', 'wrong'],
      ['nobody', PASSWORD],
      ['gone', PASSWORD],
    ] as const) {
      const answer = await from('198.51.100.2').signIn(name, password);
      expect(answer.status).toBe(401);
      texts.push(answer.text.replace(/value="[^"]*"/g, ''));
    }
    expect(new Set(texts).size).toBe(1);
  });

  it('five wrong passwords hold this account at this address up, the right one included, and no other', async () => {
    const statuses = [];
    for (let tries = 0; tries < 6; tries++)
      statuses.push((await from('198.51.100.3').signIn('ada', 'wrong')).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
    const right = await from('198.51.100.3').signIn();
    expect(right.status).toBe(429);
    expect(Number(right.headers.get('retry-after'))).toBeGreaterThan(500);
    expect((await from('198.51.100.4').signIn()).status).toBe(303);
  });

  it('every spelling of an account shares its limit, and a name with more in it is no account', async () => {
    const spellings = ['ada', 'default/ada', ' ada ', ' default/ada', 'default/ada '];
    for (const name of spellings)
      expect((await from('198.51.100.30').signIn(name, 'wrong')).status, name).toBe(401);
    for (const name of spellings)
      expect((await from('198.51.100.30').signIn(name)).status, name).toBe(429);
    for (const name of ['default/ada/1', 'default/ada/', 'ada/', '/ada', 'default//ada'])
      expect((await from('198.51.100.31').signIn(name)).status, name).toBe(401);
  });

  it('an account that is not there is limited as one that is', async () => {
    const statuses = [];
    for (const name of ['nobody', 'default/nobody', 'nobody', 'default/nobody', 'nobody', 'nobody'])
      statuses.push((await from('198.51.100.32').signIn(name, 'wrong')).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });

  it('an address that tries many accounts is held up', async () => {
    await from('198.51.100.5').signIn('one', 'wrong');
    await world.db.run(
      "UPDATE attempts SET count = 20 WHERE bucket = 'password address 198.51.100.5'",
    );
    expect((await from('198.51.100.5').signIn('two', 'wrong')).status).toBe(429);
  });

  it('people of another tenant name it', async () => {
    const passwordHash = await hashPassword(new Secret('another password'));
    await new Users(world.db).add({
      id: 'usr_acme_ada',
      tenant: 'acme',
      name: 'ada',
      passwordHash,
      scopes: LOGIN_SCOPES,
    });
    const person = from('198.51.100.6');
    expect((await person.signIn('acme/ada', 'another password')).status).toBe(303);
    expect((await from('198.51.100.6').signIn('ada', 'another password')).status).toBe(401);
  });

  it('leads on to pages of ours and nowhere else', async () => {
    for (const next of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/device@evil',
      '/sign-in',
      'javascript:alert(1)',
      '/device?user_code=BBBB%0d%0aX: y\n',
    ]) {
      const person = from('198.51.100.7');
      const page = await person.get(`/sign-in?next=${encodeURIComponent(next)}`);
      expect(page.text).toContain('name="next" value="/device"');
    }
    const person = from('198.51.100.7');
    const page = await person.get('/sign-in');
    const answer = await person.post('/sign-in', {
      xsrf: xsrfOf(page),
      next: 'https://evil.example',
      login: 'ada',
      password: PASSWORD,
    });
    expect(answer.headers.get('location')).toBe('/device');
  });

  it('needs the proof of its page: nobody is signed in by another site', async () => {
    const person = from('198.51.100.8');
    const page = await person.get('/sign-in');
    const form = { next: '/device', login: 'ada', password: PASSWORD };
    expect((await person.post('/sign-in', form)).status).toBe(400);
    expect(
      (
        await person.post(
          '/sign-in',
          { ...form, xsrf: xsrfOf(page) },
          { origin: 'https://evil.example' },
        )
      ).status,
    ).toBe(400);
    expect(
      (await from('198.51.100.8').post('/sign-in', { ...form, xsrf: xsrfOf(page) })).status,
    ).toBe(400);
  });

  it('signing out ends the session, in the store too', async () => {
    const person = from('198.51.100.9');
    await person.signIn();
    const { cookie } = person;
    const page = await person.get('/device');
    expect((await person.post('/sign-out', {})).status).toBe(400);
    expect((await person.post('/sign-out', { xsrf: xsrfOf(page) })).text).toContain('Signed out');
    const replayed = await fetch(`${world.url}/device`, {
      headers: { cookie },
      redirect: 'manual',
    });
    expect(replayed.status).toBe(303);
  });

  it('pages answer HEAD like GET without its body, and other methods with 405', async () => {
    for (const path of ['/device', '/sign-in', '/consent/x', '/sign-in/callback']) {
      const head = await fetch(`${world.url}${path}`, { method: 'HEAD', redirect: 'manual' });
      const plain = await fetch(`${world.url}${path}`, { redirect: 'manual' });
      expect(head.status, path).toBe(plain.status);
      expect(await head.text()).toBe('');
      for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        const answer = await fetch(`${world.url}${path}`, { method });
        expect(answer.status, `${method} ${path}`).toBe(405);
        expect(await answer.text()).not.toContain('googleapis');
      }
    }
  });

  it('forms of another type or size are not read', async () => {
    const person = from('198.51.100.10');
    await person.get('/sign-in');
    const big = await person.post('/sign-in', { xsrf: 'x', login: 'a'.repeat(40_000) });
    expect(big.status).toBe(400);
    const json = await fetch(`${world.url}/sign-in`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json', cookie: person.cookie },
    });
    expect(json.status).toBe(400);
  });
});
