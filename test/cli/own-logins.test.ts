import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../server/issuer/support/oauth.js';
import { Person } from '../server/issuer/support/person.js';
import { PASSWORD } from '../server/issuer/support/world.js';
import { ailsd } from '../support/cli.js';
import { startFakeIssuer } from '../support/fake-issuer.js';
import { startServer, type TestServer } from '../support/server.js';
import { type LoginHome, loggedIn, loginHome } from '../support/stored-login.js';

let server: TestServer;
beforeAll(async () => {
  const users = ['ada', 'bob', 'eve'].map((name) => ({ name, password: PASSWORD }));
  server = await startServer({ users });
});
afterAll(() => server[Symbol.asyncDispose]());

async function post(
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<Answer['body']> {
  const body = new URLSearchParams({ client_id: 'ailsd-cli', ...fields });
  return (await fetch(`${server.url}${path}`, { method: 'POST', body })).json();
}

/** A login as `ailsd login` makes it, without the five seconds between its polls. */
async function tokensOf(name: string, machine = hostname()) {
  const scope = 'read:sandbox write:sandbox exec:sandbox attach:sandbox';
  const begun = await post('/device/code', { scope, machine_name: machine });
  const person = new Person(server.url);
  await person.signIn(name, PASSWORD);
  await person.decide(begun.user_code, 'approve');
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  return post('/token', { grant_type, device_code: begun.device_code });
}

/** At home with the token of such a login. */
async function atHome(name: string): Promise<LoginHome> {
  const home = loginHome(server.url);
  const { access_token: input } = await tokensOf(name);
  expect(await ailsd(['login', '--with-token'], { env: home.env, input })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`as ${name} \\(usr_[0-9a-f]+\\)`)),
  });
  return home;
}

async function isOver(refreshToken: string): Promise<boolean> {
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken };
  return (await post('/token', fields)).error === 'invalid_grant';
}

describe('whoami --logins', () => {
  it('lists the logins made anywhere, and marks the one in use', async () => {
    using home = await atHome('ada');
    await tokensOf('ada', 'old-laptop');
    const { stdout } = await ailsd(['whoami', '--logins', '--json'], { env: home.env });
    const { items } = JSON.parse(stdout);
    expect(items.map((one: Record<string, unknown>) => [one['machine_name'], one['current']]))
      // The latest first.
      .toEqual([
        ['old-laptop', false],
        [hostname(), true],
      ]);
    const text = await ailsd(['whoami', '--logins'], { env: home.env });
    const lines = text.stdout.split('\n');
    expect(lines.find((line) => line.startsWith('*'))).toContain(items[1].id);
    expect(lines.find((line) => line.includes('old-laptop (127.0.0.1)'))).toContain(items[0].id);
    expect(text.stderr).toContain('ailsd logout --login ID');
  });

  it('a server that knows no such thing: 7, and it is said', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const { code, stderr } = await ailsd(['whoami', '--logins'], { env: home.env });
    expect([code, stderr]).toEqual([7, expect.stringContaining('does not tell about logins')]);
  });
});

describe('logout', () => {
  it('--login ends one made elsewhere and leaves this one; its own id ends this one', async () => {
    using home = await atHome('bob');
    const lost = await tokensOf('bob', 'lost');
    const list = async () =>
      JSON.parse((await ailsd(['whoami', '--logins', '--json'], { env: home.env })).stdout).items;
    const [other, own] = await list();
    const ended = await ailsd(['logout', '--login', other.id, '--json'], { env: home.env });
    expect([ended.code, JSON.parse(ended.stdout)]).toEqual([0, { removed: [], ended: [other.id] }]);
    expect(await isOver(lost.refresh_token)).toBe(true);
    expect(await list()).toMatchObject([{ id: own.id, current: true }]);
    const again = await ailsd(['logout', '--login', other.id], { env: home.env });
    expect([again.code, again.stderr]).toEqual([3, expect.stringContaining(other.id)]);
    const self = await ailsd(['logout', '--login', own.id], { env: home.env });
    expect(self).toMatchObject({ code: 0, stdout: expect.stringContaining('Logged out of') });
    expect(home.read()).toBe(undefined);
  });

  it('--everywhere ends all of them, and forgets this one', async () => {
    using home = await atHome('eve');
    const lost = await tokensOf('eve');
    expect(await ailsd(['logout', '--everywhere'], { env: home.env })).toMatchObject({ code: 0 });
    expect(await isOver(lost.refresh_token)).toBe(true);
    expect(home.read()).toBe(undefined);
  });

  it('--everywhere keeps the login where the server cannot be told: 7', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = ({ path }) => (path === '/v1/logins' ? 'cut' : undefined);
    expect(await ailsd(['logout', '--everywhere'], { env: home.env })).toMatchObject({ code: 7 });
    expect(home.read()?.credentials).toHaveLength(1);
  });

  it.each([['--all'], ['--everywhere']])('--login and %s do not go together', async (other) => {
    expect(await ailsd(['logout', '--login', 'x', other])).toMatchObject({ code: 2 });
  });
});
