import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { Person } from '../../server/issuer/support/person.js';
import { PASSWORD } from '../../server/issuer/support/world.js';
import { ailsd, BIN, cleanEnvironment } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { startServer, type TestServer } from '../../support/server.js';
import { expectWholeStore, type LoginHome, loginHome } from '../../support/stored-login.js';

const SOAK = process.env['AILSD_SOAK'] === '1';
const PROCESSES = 50;

function serverWithAda(): Promise<TestServer> {
  return startServer({ users: [{ name: 'ada', password: PASSWORD }] });
}

/** `ailsd login` in one process, ada with her browser in another. */
async function login(
  server: TestServer,
  home: LoginHome,
  choice: { readonly scopes?: readonly string[]; readonly threads?: string } = {},
  decision: 'approve' | 'deny' = 'approve',
) {
  const child = spawn(process.execPath, [BIN, 'login', '--json'], {
    env: cleanEnvironment(home.env),
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  try {
    await eventually(() => stderr.includes('\n'));
    const ada = new Person(server.url);
    await ada.signIn('ada', PASSWORD);
    const page = await ada.decide(JSON.parse(stderr).user_code, decision, choice);
    expect(page.status, page.text.slice(-400)).toBe(200);
    return { code: await ended, stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

function refresh(server: TestServer, refreshToken: unknown): Promise<Response> {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: 'ailsd-cli',
    refresh_token: String(refreshToken),
  });
  return fetch(`${server.url}/token`, { method: 'POST', body });
}

/** Mostly waiting for the issuer's five seconds: all at once. */
describe.concurrent('against our own issuer', () => {
  it(
    'logs in, is somebody, renews once for many processes, and logs out',
    async () => {
      await using server = await serverWithAda();
      using home = loginHome(server.url);
      const { code, stdout, stderr } = await login(server, home);
      expect([code, stderr.split('\n').length]).toEqual([0, 2]);
      expect(JSON.parse(stdout)).toMatchObject({
        not_granted: [],
        renewable: true,
        tenant: 'default',
        name: 'ada',
        account: expect.stringMatching(/^usr_/),
      });
      const { login_expires_at: end } = JSON.parse(stdout);
      expect(Math.abs(Date.parse(end) - Date.now() - 30 * 86_400_000)).toBeLessThan(60_000);
      const who = await ailsd(['whoami', '--json'], { env: home.env });
      expect(JSON.parse(who.stdout)).toMatchObject({
        state: 'valid',
        principal: 'user',
        client_id: 'ailsd-cli',
        name: 'ada',
        login_expires_at: end,
      });

      for (let round = 0; round < (SOAK ? 20 : 1); round += 1) {
        const before = home.read()?.credentials[0]?.['refresh_token'];
        home.expire();
        const runs = Array.from({ length: PROCESSES }, () => ailsd(['whoami'], { env: home.env }));
        const failed = (await Promise.all(runs)).filter((result) => result.code !== 0);
        expect(failed).toEqual([]);
        // A second refresh would have ended the family: that this one works says that there was none.
        expect(home.read()?.credentials[0]?.['refresh_token']).not.toBe(before);
        expectWholeStore(home.folder);
      }

      const renewed = JSON.parse((await ailsd(['whoami', '--json'], { env: home.env })).stdout);
      expect(renewed.name).toBe('ada');
      expect(Math.abs(Date.parse(renewed.login_expires_at) - Date.parse(end))).toBeLessThan(5_000);

      const last = home.read()?.credentials[0];
      const out = await ailsd(['logout', '--json'], { env: home.env });
      expect(JSON.parse(out.stdout).removed).toMatchObject([{ revoked: true }]);
      expect((await refresh(server, last?.['refresh_token'])).status).toBe(400);
    },
    SOAK ? 600_000 : 60_000,
  );

  it('learns what the approver narrowed, and says so', async () => {
    await using server = await serverWithAda();
    using home = loginHome(server.url);
    const { code, stdout } = await login(server, home, {
      scopes: ['read:sandbox', 'exec:sandbox'],
      threads: 'thr_demo',
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      scopes: ['read:sandbox', 'exec:sandbox'],
      not_granted: ['write:sandbox', 'attach:sandbox'],
      threads: ['thr_demo'],
    });
    using denied = loginHome(server.url);
    expect(await login(server, denied, {}, 'deny')).toMatchObject({ code: 4 });
    expect(denied.read()).toBe(undefined);
  });

  it('an old refresh token presented by a stranger ends the login: 4, removed, one request', async () => {
    await using server = await serverWithAda();
    using home = loginHome(server.url);
    expect(await login(server, home)).toMatchObject({ code: 0 });
    const first = home.read()?.credentials[0]?.['refresh_token'];
    home.expire();
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    expect((await refresh(server, first)).status).toBe(400);
    home.expire();
    const { code, stderr } = await ailsd(['token'], { env: home.env });
    expect(code).toBe(4);
    expect(stderr).toContain('LOGIN_REVOKED');
    expect(home.read()).toBe(undefined);
  });

  it('a service with its secret is somebody, in an empty home', async () => {
    await using server = await serverWithAda();
    const { clientId, clientSecret } = server.admin;
    const env = {
      AILSD_URL: server.url,
      AILSD_CLIENT_ID: clientId,
      AILSD_CLIENT_SECRET: clientSecret,
    };
    const { code, stdout, stderr } = await ailsd(['whoami', '--json'], { env });
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({
      state: 'valid',
      principal: 'service',
      source: 'AILSD_CLIENT_SECRET',
    });
    const wrong = await ailsd(['whoami'], {
      env: { ...env, AILSD_CLIENT_SECRET: 'wrong-wrong-wrong-wrong' },
    });
    expect(wrong.code).toBe(4);
    expect(wrong.stderr).toContain('AILSD_CLIENT_SECRET');
  });

  it('logs in by redirect too', async () => {
    await using server = await serverWithAda();
    using home = loginHome(server.url);
    const child = spawn(process.execPath, [BIN, 'login', '--web', '--json'], {
      env: cleanEnvironment(home.env),
    });
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    try {
      await eventually(() => stderr.includes('\n'));
      const ada = new Person(server.url);
      await ada.signIn('ada', PASSWORD);
      const start = await fetch(JSON.parse(stderr).verification_uri, { redirect: 'manual' });
      const back = await followToLoopback(ada, new URL(start.headers.get('location') ?? ''));
      expect(await (await fetch(back)).text()).toContain('Logged in');
      expect(await ended, stderr).toBe(0);
      expect(home.read()?.credentials).toHaveLength(1);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

/** Follows the issuer's own redirects, approving what it asks, until it sends the browser back to the program. */
async function followToLoopback(person: Person, start: URL): Promise<string> {
  let next = start;
  for (let step = 0; step < 10; step += 1) {
    const seen = await person.get(next.pathname + next.search);
    const location = seen.headers.get('location') ?? (await consentTo(person, next, seen.text));
    next = new URL(location, start);
    if (next.pathname === '/callback') return next.href;
  }
  throw new Error('the issuer never sent the browser back');
}

async function consentTo(person: Person, page: URL, text: string): Promise<string> {
  const action = /<form[^>]*action="([^"]+)"/.exec(text)?.[1] ?? page.pathname;
  const inputs = [...text.matchAll(/<(?:input|button)[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g)];
  const fields = inputs
    .map((match): [string, string] => [match[1] ?? '', match[2] ?? ''])
    .filter(([name, value]) => name !== 'decision' || value === 'approve');
  const seen = await person.post(action, fields);
  const location = seen.headers.get('location');
  if (location === null)
    throw new Error(`no redirect after consent (${seen.status}): ${seen.text.slice(-600)}`);
  return location;
}
