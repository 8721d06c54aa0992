import { describe, expect, it } from 'vitest';
import { ailsd } from '../support/cli.js';
import { type Answer, accessToken, startFakeIssuer } from '../support/fake-issuer.js';
import { loggedIn } from '../support/stored-login.js';

/** The document, the exit code and the error's code word. */
async function whoami(env: Readonly<Record<string, string>>) {
  const { code, stdout, stderr } = await ailsd(['whoami', '--json'], { env });
  const document = stdout === '' ? undefined : JSON.parse(stdout);
  return { code, document, error: stderr === '' ? undefined : JSON.parse(stderr).error };
}

function always(path: string, answer: Answer) {
  return (request: { path: string }): Answer | undefined =>
    request.path === path ? answer : undefined;
}

function refusal(status: number, code: string): Answer {
  return { json: { error: { code, message: 'no \u001b[2J', retryable: false } }, status };
}

describe('whoami', () => {
  it('a good login: valid, with account, scopes, tenant, server, expiry and place', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const { code, document, error } = await whoami(home.env);
    expect([code, error]).toEqual([0, undefined]);
    expect(document).toMatchObject({
      state: 'valid',
      server: issuer.url,
      account: 'ada',
      principal: 'user',
      tenant: 'default',
      client_id: 'ailsd-cli',
      scopes: ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'],
      source: null,
      stored: { kind: 'file', place: `${home.folder}/credentials.json` },
    });
    expect(Date.parse(document.expires_at)).toBeGreaterThan(Date.now());
    const { stdout } = await ailsd(['whoami'], { env: home.env });
    expect(stdout).toContain(`${home.folder}/credentials.json`);
  });

  it('a server that refuses the token and the refresh: revoked, 4', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = ({ path }) => {
      if (path === '/v1/whoami') return refusal(401, 'UNAUTHENTICATED');
      return path === '/token' ? { json: { error: 'invalid_grant' }, status: 400 } : undefined;
    };
    const { code, document, error } = await whoami(home.env);
    expect([code, document.state, error.code]).toEqual([4, 'revoked', 'LOGIN_REVOKED']);
    expect(home.read()).toBe(undefined);
  });

  it('a token that was ended while the login goes on is replaced: valid', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    let refusals = 1;
    issuer.script = ({ path }) =>
      path === '/v1/whoami' && refusals-- > 0 ? refusal(401, 'UNAUTHENTICATED') : undefined;
    const { code, document } = await whoami(home.env);
    expect([code, document.state]).toEqual([0, 'valid']);
    expect(issuer.grants('refresh_token')).toHaveLength(1);
  });

  it('a server that keeps refusing what it has just given out: revoked, without a loop', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const before = issuer.requests.length;
    issuer.script = always('/v1/whoami', refusal(401, 'UNAUTHENTICATED'));
    const { code, document } = await whoami(home.env);
    expect([code, document.state]).toEqual([4, 'revoked']);
    expect(issuer.grants('refresh_token')).toHaveLength(1);
    const asked = issuer.requests.slice(before).filter(({ path }) => path === '/v1/whoami');
    expect(asked).toHaveLength(2);
  });

  const away: [string, Answer, string, number][] = [
    ['a cut line', 'cut', 'unreachable', 7],
    ['503 in the envelope', refusal(503, 'BACKEND_UNAVAILABLE'), 'unreachable', 7],
    ['500 in HTML', { body: '<h1>500</h1>', status: 500, type: 'text/html' }, 'unreachable', 7],
    ['429', refusal(429, 'RATE_LIMITED'), 'rate_limited', 8],
    ['429 of a gateway', { body: 'slow', status: 429, type: 'text/plain' }, 'rate_limited', 8],
  ];
  it.each(away)('%s says nothing about the login', async (_, answer, state, exit) => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = always('/v1/whoami', answer);
    const { code, document, error } = await whoami(home.env);
    expect([code, document.state]).toEqual([exit, state]);
    expect(document).toMatchObject({ account: 'ada', stored: { kind: 'file' } });
    expect(error.exit_code).toBe(exit);
    expect(home.read()).not.toBe(undefined);
  });

  it('a 403 is not a bad token', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = always('/v1/whoami', refusal(403, 'FORBIDDEN'));
    const { code, error } = await whoami(home.env);
    expect([code, error.code]).toEqual([5, 'FORBIDDEN']);
  });

  it('a variable that the server refuses, or that has expired, is named', async () => {
    await using issuer = await startFakeIssuer();
    const env = { AILSD_URL: issuer.url };
    const refused = await whoami({ ...env, AILSD_TOKEN: 'forged' });
    expect([refused.code, refused.document.state]).toEqual([4, 'revoked']);
    expect(refused.error.message).toContain('AILSD_TOKEN');
    const old = accessToken({ iss: issuer.url, sub: 'ada', scope: '', lifeSeconds: -60 });
    const expired = await whoami({ ...env, AILSD_TOKEN: old });
    expect([expired.code, expired.document.state]).toEqual([4, 'expired']);
    const empty = await whoami({ ...env, AILSD_TOKEN: '' });
    expect([empty.code, empty.document]).toEqual([4, undefined]);
  });

  it('nobody logged in: NOT_LOGGED_IN, 4', async () => {
    await using issuer = await startFakeIssuer();
    const env = { AILSD_URL: issuer.url };
    const { code, document, error } = await whoami(env);
    expect([code, error.code]).toEqual([4, 'NOT_LOGGED_IN']);
    expect(document).toMatchObject({
      state: 'none',
      server: issuer.url,
      account: null,
      scopes: [],
    });
    expect(await ailsd(['whoami'], { env })).toMatchObject({ code: 4, stdout: '' });
    expect(issuer.requests).toHaveLength(0);
  });

  it('what the login cannot do is said, as at the login', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    expect((await ailsd(['whoami'], { env: home.env })).stdout).not.toContain('cannot');
    const narrow = {
      sub: 'ada',
      principal: 'user',
      tenant: 'default',
      client_id: 'ailsd-cli',
      scopes: ['read:sandbox'],
      expires_at: new Date(Date.now() + 900_000).toISOString(),
    };
    issuer.script = always('/v1/whoami', { json: narrow });
    const { stdout } = await ailsd(['whoami'], { env: home.env });
    expect(stdout).toMatch(/cannot .*\(exec:sandbox\)/);
  });

  it('what the server says is printed escaped', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = always('/v1/whoami', refusal(403, 'FORBIDDEN'));
    const { stderr } = await ailsd(['whoami'], { env: home.env });
    expect(stderr).toContain('\\x1b[2J');
    expect(stderr).not.toContain('\u001b');
  });
});
