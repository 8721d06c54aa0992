import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI_CLIENT_ID } from '../../../src/protocol/shapes/issuer.js';
import { claimsOf, post, refresh, signedIn } from './support/oauth.js';
import { Person, scopesOf, xsrfOf } from './support/person.js';
import { createWorld, type World } from './support/world.js';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld();
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

interface Begun {
  readonly path: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

function request(changes: Readonly<Record<string, string | undefined>> = {}): Begun {
  const verifier = randomBytes(32).toString('base64url');
  const redirectUri = changes['redirect_uri'] ?? 'http://127.0.0.1:54321/callback';
  const fields = {
    client_id: CLI_CLIENT_ID,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid read:sandbox exec:sandbox',
    state: 'the-state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) query.set(name, value);
  return { path: `/authorize?${query}`, verifier, redirectUri };
}

async function location(answer: Promise<{ readonly headers: Headers }>): Promise<string> {
  return (await answer).headers.get('location') ?? '';
}

/** To the consent page and through it; where the browser is sent in the end. */
async function decide(
  person: Person,
  begun: Begun,
  fields: readonly [string, string][],
): Promise<URL> {
  const consent = await location(person.get(begun.path));
  expect(consent).toMatch(/^\/consent\//);
  const page = await person.get(consent);
  expect(page.status).toBe(200);
  const resume = await location(person.post(consent, [['xsrf', xsrfOf(page)], ...fields]));
  expect(resume).toMatch(new RegExp(`^${world.url}/authorize/`));
  return new URL(await location(person.get(resume)));
}

function redeem(begun: Begun, code: string | null, changes = {}) {
  return post(`${world.url}/token`, {
    grant_type: 'authorization_code',
    client_id: CLI_CLIENT_ID,
    code: code ?? '',
    redirect_uri: begun.redirectUri,
    code_verifier: begun.verifier,
    ...changes,
  });
}

describe('a login in the browser', () => {
  it('comes back to any port of loopback with a code that PKCE redeems once', async () => {
    for (const port of [1025, 54321]) {
      const begun = request({ redirect_uri: `http://127.0.0.1:${port}/callback` });
      const back = await decide(ada, begun, [
        ['decision', 'approve'],
        ['scope', 'read:sandbox'],
        ['scope', 'exec:sandbox'],
        ['ttl', '8h'],
      ]);
      expect(back.origin).toBe(`http://127.0.0.1:${port}`);
      expect(back.searchParams.get('state')).toBe('the-state');
      expect(back.searchParams.get('iss')).toBe(world.url);
      const answer = await redeem(begun, back.searchParams.get('code'));
      expect(answer).toMatchObject({
        status: 200,
        body: { scope: 'read:sandbox exec:sandbox', expires_in: 900 },
      });
      expect(claimsOf(answer.body.access_token)).toMatchObject({
        sub: 'usr_ada',
        principal: 'user',
      });
      expect(claimsOf(answer.body.id_token)).toMatchObject({ sub: 'usr_ada', aud: CLI_CLIENT_ID });
      const second = await refresh(world.url, answer.body.refresh_token);
      expect(second.status).toBe(200);
      // RFC 6749 section 4.1.2: a code that comes a second time was stolen, and what it gave ends.
      expect(await redeem(begun, back.searchParams.get('code'))).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      });
      expect((await refresh(world.url, second.body.refresh_token)).status).toBe(400);
    }
  });

  it('may be asked for by POST as well (OpenID Connect Core section 3.1.2.1)', async () => {
    const { searchParams } = new URL(request().path, world.url);
    const answer = await ada.post('/authorize', [...searchParams]);
    expect(answer.status).toBe(303);
    const again = answer.headers.get('location') ?? '';
    expect(await location(ada.get(again))).toMatch(/^\/consent\//);
  });

  it('with a parameter that is too long is refused, and nothing is kept of it', async () => {
    const kept = () => world.db.query('SELECT id FROM oidc_payloads');
    const before = (await kept()).length;
    for (const name of ['state', 'nonce', 'login_hint', 'x_unknown']) {
      const begun = request({ [name]: 'x'.repeat(2_049) });
      expect((await ada.get(begun.path)).status, name).toBe(400);
      const { searchParams } = new URL(begun.path, world.url);
      expect((await ada.post('/authorize', [...searchParams])).status, name).toBe(400);
    }
    expect(await kept()).toHaveLength(before);
    const longest = request({ state: 'x'.repeat(2_048) });
    expect(await location(ada.get(longest.path))).toMatch(/^\/consent\//);
  });

  it('is begun a thousand times from one address, then waits', async () => {
    await using busy = await createWorld();
    await fetch(busy.url + request().path, { redirect: 'manual' });
    await busy.db.run("UPDATE attempts SET count = 999 WHERE bucket = 'authorize 127.0.0.1'");
    const { path } = request();
    expect((await fetch(busy.url + path, { redirect: 'manual' })).status).toBe(303);
    const limited = await fetch(busy.url + path, { redirect: 'manual' });
    expect(limited.status).toBe(429);
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(500);
  });

  it('narrowed: fewer scopes, and threads', async () => {
    const begun = request();
    const back = await decide(ada, begun, [
      ['decision', 'approve'],
      ['scope', 'read:sandbox'],
      ['threads', 'thr_one'],
    ]);
    const { body } = await redeem(begun, back.searchParams.get('code'));
    expect(claimsOf(body.access_token)).toMatchObject({
      scope: 'read:sandbox',
      threads: ['thr_one'],
    });
  });

  it('denied: the program learns it', async () => {
    const back = await decide(ada, request(), [['decision', 'deny']]);
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'access_denied',
      state: 'the-state',
    });
  });

  it('asks for a sign-in first, and comes back to the same question', async () => {
    const person = new Person(world.url);
    const consent = await location(person.get(request().path));
    const signIn = await location(person.get(consent));
    expect(signIn).toBe(`/sign-in?next=${encodeURIComponent(consent)}`);
    const form = await person.get(signIn);
    const next = /name="next" value="([^"]+)"/.exec(form.text)?.[1] ?? '';
    const back = await person.post('/sign-in', {
      xsrf: xsrfOf(form),
      next,
      login: 'ada',
      password: 'correct horse battery staple',
    });
    expect(back.headers.get('location')).toBe(consent);
    const page = await person.get(consent);
    expect(scopesOf(page)).toEqual(['read:sandbox', 'exec:sandbox']);
    expect(page.headers.get('content-security-policy')).toContain(
      "form-action 'self' http://127.0.0.1:54321;",
    );
  });

  it('asks each time anew, whoever was asked before in this browser', async () => {
    const begun = request();
    await decide(ada, begun, [
      ['decision', 'approve'],
      ['scope', 'read:sandbox'],
    ]);
    await world.addUser('bob');
    const page = await ada.get('/device');
    await ada.post('/sign-out', { xsrf: xsrfOf(page) });
    await ada.signIn('bob');
    const again = request();
    const back = await decide(ada, again, [
      ['decision', 'approve'],
      ['scope', 'read:sandbox'],
    ]);
    const { body } = await redeem(again, back.searchParams.get('code'));
    expect(claimsOf(body.access_token).sub).toBe('usr_bob');
    const silent = new URL(await location(ada.get(request({ prompt: 'none' }).path)));
    expect(silent.searchParams.get('error')).toBe('login_required');
    await ada.post('/sign-out', { xsrf: xsrfOf(await ada.get('/device')) });
    await ada.signIn('ada');
  });

  it('without PKCE, or with another verifier, there is no token', async () => {
    const plain = new URL(
      await location(
        ada.get(request({ code_challenge: undefined, code_challenge_method: undefined }).path),
      ),
    );
    expect(plain.searchParams.get('error')).toBe('invalid_request');
    const begun = request();
    const back = await decide(ada, begun, [
      ['decision', 'approve'],
      ['scope', 'read:sandbox'],
    ]);
    const wrong = await redeem(begun, back.searchParams.get('code'), {
      code_verifier: randomBytes(32).toString('base64url'),
    });
    expect(wrong).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  });

  it('a redirect to anywhere else is not followed: the error stays here', async () => {
    for (const uri of [
      'https://evil.example/callback',
      'http://127.0.0.1.evil.example/callback',
      'http://127.0.0.1:80@evil.example/callback',
      'http://127.0.0.1:54321/elsewhere',
      'http://10.0.0.1:54321/callback',
    ]) {
      const page = await ada.get(request({ redirect_uri: uri }).path);
      expect(page.status, uri).toBe(400);
      expect(page.headers.get('location')).toBeNull();
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(page.text).toContain('That did not work');
    }
  });

  it('a question is decided with proof of its page, in its own browser', async () => {
    const consent = await location(ada.get(request().path));
    const page = await ada.get(consent);
    const answer = await ada.post(consent, {
      xsrf: 'x',
      decision: 'approve',
      scope: 'read:sandbox',
    });
    expect(answer.status).toBe(400);
    const other = await signedIn(world.url);
    expect((await other.get(consent)).status).toBe(400);
    expect((await other.post(consent, { xsrf: xsrfOf(page), decision: 'approve' })).status).toBe(
      400,
    );
    expect((await ada.post(consent, { xsrf: xsrfOf(page) })).status).toBe(200);
    expect(
      (await ada.post('/consent/never-was', { xsrf: xsrfOf(page), decision: 'approve' })).status,
    ).toBe(400);
    expect(
      (await ada.post(consent, { xsrf: xsrfOf(page), decision: 'approve', threads: 'no/thread' }))
        .status,
    ).toBe(400);
  });
});
