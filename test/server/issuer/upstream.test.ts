import { createServer } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { LOGIN_SCOPES } from '../../../src/protocol/scopes.js';
import type { UpstreamConfig } from '../../../src/server/issuer/upstream-login.js';
import { Users } from '../../../src/server/store/users.js';
import { type Company, startCompany } from './support/company.js';
import { beginLogin, claimsOf, poll } from './support/oauth.js';
import { Person, type Seen, xsrfOf } from './support/person.js';
import { createWorld, type World } from './support/world.js';

let company: Company;
let world: World;
let config: UpstreamConfig;
beforeAll(async () => {
  company = await startCompany();
  config = {
    issuer: company.url,
    clientId: company.clientId,
    clientSecret: new Secret(company.clientSecret),
    name: 'Example Corp',
    newAccounts: { tenant: 'corp', scopes: LOGIN_SCOPES },
  };
  world = await createWorld({ issuer: { upstream: config } });
  company.allow(`${world.url}/sign-in/callback`);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await company[Symbol.asyncDispose]();
});
beforeEach(() => {
  company.employee = 'emp-1';
});

async function leave(person: Person, next = '/device'): Promise<Seen> {
  const page = await person.get('/sign-in');
  return person.post('/sign-in/company', { xsrf: xsrfOf(page), next });
}

/** Follows the company's redirects until they lead back to us; does not take the last step. */
async function untilBack(person: Person, seen: Seen): Promise<string> {
  let to = seen.headers.get('location') ?? '';
  for (let steps = 0; steps < 10 && !to.startsWith(`${world.url}/`); steps++) {
    to = new URL((await person.get(to)).headers.get('location') ?? '', company.url).href;
  }
  return to;
}

describe('the company login', () => {
  it('signs somebody in, makes their account once, and leads on to where they were going', async () => {
    const person = new Person(world.url);
    const signIn = await person.get('/sign-in');
    expect(signIn.text).toContain('Continue with Example Corp');
    expect(signIn.headers.get('content-security-policy')).toContain(
      `form-action 'self' ${company.url};`,
    );

    const begun = await beginLogin(world.url);
    const left = await leave(person, `/device?user_code=${begun.user_code}`);
    const asked = new URL(left.headers.get('location') ?? '');
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const back = await person.get(await untilBack(person, left));
    expect(back.headers.get('location')).toBe(`/device?user_code=${begun.user_code}`);
    await person.decide(begun.user_code, 'approve');
    const { body } = await poll(world.url, begun.device_code);
    const claims = claimsOf(body.access_token);
    expect(claims).toMatchObject({ tenant: 'corp', principal: 'user' });

    const users = new Users(world.db);
    const user = await users.findByUpstream({ issuer: company.url, subject: 'emp-1' });
    expect(user).toMatchObject({ id: claims.sub, tenant: 'corp', name: 'name.of.emp-1' });
    const again = new Person(world.url);
    await again.get(await untilBack(again, await leave(again)));
    expect((await again.get('/device')).text).toContain('Signed in as name.of.emp-1');
    expect(await users.list('corp', 10)).toHaveLength(1);
  });

  it('what comes back counts once, and only in the browser that left', async () => {
    const victim = new Person(world.url);
    const to = await untilBack(victim, await leave(victim));
    const other = new Person(world.url);
    await other.get('/sign-in');
    expect((await other.get(to)).status).toBe(400);
    expect((await new Person(world.url).get(to)).status).toBe(400);
    const { cookie } = victim;
    expect((await victim.get(to)).status).toBe(303);
    expect((await fetch(to, { headers: { cookie }, redirect: 'manual' })).status).toBe(400);
    const forged = new URL(to);
    forged.searchParams.set('state', 'x'.repeat(43));
    expect((await victim.get(forged.href)).status).toBe(400);
  });

  it('an answer in the name of another issuer is refused', async () => {
    const person = new Person(world.url);
    const to = new URL(await untilBack(person, await leave(person)));
    to.searchParams.set('iss', 'https://other.example');
    expect((await person.get(to.href)).status).toBe(400);
  });

  it('a no at the company is a no here', async () => {
    company.employee = undefined;
    const person = new Person(world.url);
    const answer = await person.get(await untilBack(person, await leave(person)));
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('Example Corp did not sign you in');
    expect((await person.get('/device')).status).toBe(303);
  });

  it('a disabled account stays out, and without leave to make accounts a newcomer does', async () => {
    const users = new Users(world.db);
    await users.add({
      id: 'usr_out',
      tenant: 'corp',
      name: 'out',
      scopes: [],
      upstream: { issuer: company.url, subject: 'emp-out' },
    });
    await users.setDisabled('usr_out', true);
    company.employee = 'emp-out';
    const person = new Person(world.url);
    expect((await person.get(await untilBack(person, await leave(person)))).status).toBe(403);

    const { newAccounts: _, ...closed } = config;
    await using strict = await createWorld({ issuer: { upstream: closed, url: world.url } });
    company.employee = 'emp-new';
    const newcomer = new Person(strict.replicas[0] ?? '');
    const to = new URL(await untilBack(newcomer, await leave(newcomer)));
    const answer = await newcomer.get(`${to.pathname}${to.search}`);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('You have no account here');
  });

  it('while it can’t be reached local accounts go on, and it says so', async () => {
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen(0, '127.0.0.1', resolve));
    const address = dead.address();
    const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    await new Promise((resolve) => dead.close(resolve));
    await using alone = await createWorld({ issuer: { upstream: { ...config, issuer } } });
    const person = new Person(alone.url);
    const answer = await leave(person);
    expect(answer.status).toBe(502);
    expect((await person.signIn()).status).toBe(303);
  });
});
