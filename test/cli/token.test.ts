import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd, BIN, type CliResult, cleanEnvironment, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { type Answer, accessToken, startFakeIssuer } from '../support/fake-issuer.js';
import { expectWholeStore, type LoginHome, loggedIn, quickly } from '../support/stored-login.js';

const SOAK = process.env['AILSD_SOAK'] === '1';
const PROCESSES = 50;
const ROUNDS = SOAK ? 20 : 3;

describe('one refresh for many processes', () => {
  it(
    proves(`${PROCESSES} processes at once make one refresh request, and all go on`, 'OA-07'),
    async () => {
      await using issuer = await startFakeIssuer({ tokenDelayMs: 300 });
      using home = await loggedIn(issuer);
      for (let round = 0; round < ROUNDS; round += 1) {
        home.expire();
        const before = issuer.grants('refresh_token').length;
        const results = await many(PROCESSES, home);
        expect(failures(results)).toEqual([]);
        expect(issuer.grants('refresh_token').length - before).toBe(1);
        expectWholeStore(home.folder);
      }
      expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    },
    SOAK ? 600_000 : 60_000,
  );

  it(
    proves('the lock of a killed process is taken over within 5 s, and the login goes on', 'OA-07'),
    async () => {
      await using issuer = await startFakeIssuer({ tokenDelayMs: 300 });
      using home = await loggedIn(issuer);
      home.expire();
      let silent = true;
      issuer.script = ({ path }): Answer | undefined =>
        path === '/token' && silent ? 'silence' : undefined;
      const holder = spawn(process.execPath, [BIN, 'token'], { env: cleanEnvironment(home.env) });
      const ended = new Promise((resolve) => holder.on('close', resolve));
      await eventually(() => issuer.grants('refresh_token').length === 1);
      const waiting = many(10, home);
      holder.kill('SIGKILL');
      await ended;
      silent = false;
      const killedAt = performance.now();
      expect(failures(await waiting)).toEqual([]);
      const [, second, ...more] = issuer.grants('refresh_token');
      expect((second?.at ?? Number.NaN) - killedAt).toBeLessThan(5_000);
      expect(more).toEqual([]);
      expect(lockFiles(home)).toEqual([]);
    },
  );

  it(proves('invalid_grant: the store is read again before giving up', 'OA-07'), async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    home.expire();
    const spent = home.read();
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const fresh = home.read();
    // A process that read the old login before the lock existed: it presents the spent token, and finds the new one.
    writeStore(home, spent);
    issuer.script = ({ path, form }) => {
      if (path !== '/token') return undefined;
      writeStore(home, fresh);
      return form['refresh_token'] === spent?.credentials[0]?.['refresh_token']
        ? { json: { error: 'invalid_grant' }, status: 400 }
        : undefined;
    };
    const { code, stdout } = await ailsd(['token'], { env: home.env });
    expect(code).toBe(0);
    expect(stdout.trim()).toBe(fresh?.credentials[0]?.['access_token']);
    expect(issuer.grants('refresh_token')).toHaveLength(2);
  });
});

describe('a login that is over', () => {
  it('after reuse of its refresh token: LOGIN_REVOKED, removed, at most one more request', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const first = String(home.read()?.credentials[0]?.['refresh_token']);
    home.expire();
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: first,
      client_id: 'ailsd-cli',
    });
    expect((await fetch(`${issuer.url}/token`, { method: 'POST', body })).status).toBe(400);
    home.expire();
    const before = issuer.grants('refresh_token').length;
    const { code, stdout, stderr } = await ailsd(['token'], { env: home.env });
    expect([code, stdout]).toEqual([4, '']);
    expect(stderr).toContain('LOGIN_REVOKED');
    expect(issuer.grants('refresh_token').length - before).toBe(1);
    expect(home.read()).toBe(undefined);
    const after = await ailsd(['token'], { env: home.env });
    expect(after.stderr).toContain('NOT_LOGGED_IN');
    expect(issuer.grants('refresh_token').length - before).toBe(1);
  });

  it('a lost answer does not log out: exit 7, the login is kept and works when the server is back', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    home.expire();
    const before = home.read();
    issuer.script = ({ path }): Answer | undefined => (path === '/token' ? 'cut' : undefined);
    const lost = await ailsd(['token'], { env: home.env });
    expect(lost).toMatchObject({ code: 7, stdout: '' });
    expect(home.read()).toEqual(before);
    issuer.script = undefined;
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
  });

  it('an answer that is lost on its way is asked for again under the same name, at once and by the next process', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    home.expire();
    let lost = 1;
    issuer.lose = ({ path }) => (path === '/token' && lost-- > 0 ? 'cut' : undefined);
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    expect(issuer.grants('refresh_token')).toHaveLength(2);
    home.expire();
    lost = 2;
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 7 });
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const keys = issuer.grants('refresh_token').map(({ idempotencyKey }) => idempotencyKey);
    expect(keys[0]).toMatch(/^[\w-]{43}$/);
    expect(keys).toEqual([keys[0], keys[0], keys[2], keys[2], keys[2]]);
    expect(home.read()?.credentials[0]?.['refresh_token']).toBe(issuer.currentRefreshToken());
    expectWholeStore(home.folder);
  });

  it('a process killed before its answer came does not end the login', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    home.expire();
    let silent = true;
    issuer.lose = ({ path }) => (path === '/token' && silent ? 'silence' : undefined);
    const dying = spawn(process.execPath, [BIN, 'token'], { env: cleanEnvironment(home.env) });
    const ended = new Promise((resolve) => dying.on('close', resolve));
    await eventually(() => issuer.grants('refresh_token').length === 1);
    dying.kill('SIGKILL');
    await ended;
    silent = false;
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    expect(home.read()?.credentials[0]?.['refresh_token']).toBe(issuer.currentRefreshToken());
  });

  it.runIf(process.getuid?.() === 0)(
    'a full disk does not spend the refresh token: exit 4, nothing asked, and it works when there is room',
    async () => {
      await using issuer = await startFakeIssuer();
      using home = await loggedIn(issuer);
      home.expire();
      // So that the secret of the folder is there, and only the login's own room is missing.
      expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
      home.expire();
      const kept = `${home.folder}-kept`;
      cpSync(home.folder, kept, { recursive: true });
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=700', 'tmpfs', home.folder]);
      onTestFinished(() => {
        rmSync(kept, { recursive: true, force: true });
      });
      try {
        cpSync(kept, home.folder, { recursive: true });
        const filler = join(home.folder, 'filler');
        const fill = 'cat /dev/zero > "$1" 2>/dev/null || true';
        execFileSync('sh', ['-c', fill, 'sh', filler]);
        const full = await ailsd(['token'], { env: home.env });
        expect([full.code, full.stdout]).toEqual([4, '']);
        expect(full.stderr).toContain('CREDENTIALS_UNWRITABLE');
        expect(issuer.grants('refresh_token')).toHaveLength(1);
        rmSync(filler);
        expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
        expect(issuer.grants('refresh_token')).toHaveLength(2);
        expect(home.read()?.credentials[0]?.['refresh_token']).toBe(issuer.currentRefreshToken());
        expectWholeStore(home.folder);
        expect(readdirSync(home.folder).filter((name) => /room|tmp/.test(name))).toEqual([]);
      } finally {
        execFileSync('umount', [home.folder]);
      }
    },
  );

  it('a token that is still good is used while the server is away', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const document = home.read();
    const [kept] = document?.credentials ?? [];
    const due = {
      ...kept,
      obtained_at: Date.now() - 800_000,
      access_expires_at: Date.now() + 100_000,
    };
    writeStore(home, { ...document, credentials: [due] });
    issuer.script = ({ path }): Answer | undefined => (path === '/token' ? 'cut' : undefined);
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0, stderr: '' });
    issuer.script = undefined;
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    expect(home.read()?.credentials[0]?.['access_token']).not.toBe(kept?.['access_token']);
  });

  it('nobody else hears of it: another issuer’s login is not used', async () => {
    await using issuer = await startFakeIssuer();
    await using other = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const { code, stderr } = await ailsd(['token'], { env: { ...home.env, AILSD_URL: other.url } });
    expect(code).toBe(4);
    expect(stderr).toContain('NOT_LOGGED_IN');
    expect(other.requests).toHaveLength(0);
  });
});

describe('variables alone, in an empty home', () => {
  it('every source gives a token, and leaves nothing behind', async () => {
    await using issuer = await startFakeIssuer({ script: github });
    using folder = temporaryFolder();
    const empty = join(folder.path, 'home');
    mkdirSync(empty);
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder.path, name), text);
      return join(folder.path, name);
    };
    const token = accessToken({
      iss: issuer.url,
      sub: 'ada',
      scope: 'read:sandbox',
      lifeSeconds: 900,
    });
    const sources: [string, Record<string, string>, string][] = [
      ['AILSD_TOKEN', { AILSD_TOKEN: token }, ''],
      ['AILSD_TOKEN_FILE', { AILSD_TOKEN_FILE: file('token', `${token}\n`) }, ''],
      [
        'AILSD_CLIENT_SECRET',
        { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 's' },
        'client_credentials',
      ],
      [
        'AILSD_CLIENT_SECRET_FILE',
        { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET_FILE: file('s', 's\n') },
        'client_credentials',
      ],
      ['AILSD_IDENTITY_TOKEN', { AILSD_IDENTITY_TOKEN: 'i.d.t' }, 'token-exchange'],
      [
        'AILSD_IDENTITY_TOKEN_FILE',
        { AILSD_IDENTITY_TOKEN_FILE: file('i', 'i.d.t') },
        'token-exchange',
      ],
      ['AILSD_OIDC', githubVariables(issuer.url), 'token-exchange'],
    ];
    for (const [source, variables, grant] of sources) {
      const before = issuer.requests.length;
      const env = { HOME: empty, AILSD_URL: issuer.url, ...variables };
      const { code, stdout, stderr } = await ailsd(['token', '--json'], { env });
      expect([source, code, stderr]).toEqual([source, 0, '']);
      expect(JSON.parse(stdout).source).toBe(source);
      const asked = issuer.requests.slice(before).filter(({ path }) => path === '/token');
      expect(asked.map(({ form }) => form['grant_type']?.split(':').pop())).toEqual(
        grant === '' ? [] : [grant],
      );
      expect(readdirSync(empty)).toEqual([]);
    }
  });

  it('a token is used as it is: without a server, without a request', async () => {
    const { code, stdout } = await ailsd(['token'], { env: { AILSD_TOKEN: 'opaque' } });
    expect([code, stdout]).toEqual([0, 'opaque\n']);
  });

  it('the first source that is set is used; if it fails it is named, with no other tried and no browser', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const expired = accessToken({ iss: issuer.url, sub: 'ada', scope: '', lifeSeconds: -60 });
    const client = { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 'wrong' };
    issuer.script = ({ path, form }) =>
      path === '/token'
        ? {
            json: {
              error:
                form['grant_type'] === 'client_credentials' ? 'invalid_client' : 'invalid_grant',
            },
            status: 401,
          }
        : undefined;
    const cases: [string, string, Record<string, string>][] = [
      ['AILSD_TOKEN', 'TOKEN_EXPIRED', { AILSD_TOKEN: expired, ...client }],
      ['AILSD_TOKEN', 'UNAUTHENTICATED', { AILSD_TOKEN: '', ...client }],
      [
        'AILSD_TOKEN_FILE',
        'UNAUTHENTICATED',
        { AILSD_TOKEN_FILE: '/nonexistent/token', ...client },
      ],
      ['AILSD_CLIENT_SECRET', 'LOGIN_FAILED', { ...client, AILSD_IDENTITY_TOKEN: 'i.d.t' }],
      ['AILSD_IDENTITY_TOKEN', 'LOGIN_FAILED', { AILSD_IDENTITY_TOKEN: 'i.d.t' }],
    ];
    for (const [variable, word, variables] of cases) {
      const before = issuer.grants('').length;
      const { code, stdout, stderr } = await ailsd(['token'], {
        env: { ...home.env, ...variables },
      });
      expect([variable, code, stdout]).toEqual([variable, 4, '']);
      expect(stderr).toContain(`${word}: `);
      expect(stderr).toContain(variable);
      expect(issuer.grants('').length - before).toBe(word === 'LOGIN_FAILED' ? 1 : 0);
    }
    issuer.script = undefined;
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
  });

  it('a server that is away is 7, whatever the source', async () => {
    const client = {
      AILSD_CLIENT_ID: 'ci',
      AILSD_CLIENT_SECRET: 's',
      AILSD_URL: 'http://127.0.0.1:1',
    };
    expect(await ailsd(['token'], { env: client })).toMatchObject({ code: 7 });
  });

  it('a job without an identity is told what it lacks', async () => {
    const { code, stderr } = await ailsd(['token'], {
      env: { AILSD_OIDC: 'github', AILSD_URL: 'http://127.0.0.1:1' },
    });
    expect(code).toBe(2);
    expect(stderr).toContain('id-token: write');
  });
});

describe('killed at any point', () => {
  const POINTS = SOAK ? 200 : 30;
  const seed = Number(process.env['AILSD_SEED'] ?? Date.now() % 1_000_000);

  it(
    `the store is whole and 0600 after kill -9 at ${POINTS} random points of login, refresh and logout (seed ${seed})`,
    async () => {
      const random = seeded(seed);
      await using issuer = await startFakeIssuer();
      issuer.script = quickly(issuer);
      using home = await loggedIn(issuer);
      issuer.script = quickly(issuer);
      // How long each takes on this machine now: the points are spread over that, however fast it is.
      const takesMs = new Map<string, number>();
      for (const command of ['login', 'token', 'logout']) {
        if (home.read() !== undefined) home.expire();
        const began = performance.now();
        expect(await ailsd([command], { env: home.env })).toMatchObject({ code: 0 });
        takesMs.set(command, performance.now() - began);
      }
      let wereKilled = 0;
      for (let point = 0; point < POINTS; point += 1) {
        if (home.read() === undefined) await ailsd(['login'], { env: home.env });
        home.expire();
        const command = ['login', 'token', 'logout'][point % 3] ?? 'login';
        const afterMs = (0.2 + random()) * (takesMs.get(command) ?? 100);
        if (await killAfter([command], home, afterMs)) wereKilled += 1;
        expectWholeStore(home.folder);
      }
      expect(wereKilled).toBeGreaterThan(POINTS / 5);
      // What the dead left behind keeps nobody from going on.
      expect(await ailsd(['login'], { env: home.env })).toMatchObject({ code: 0 });
      expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
      expect(lockFiles(home)).toEqual([]);
    },
    SOAK ? 300_000 : 60_000,
  );
});

describe('what `token` loads', () => {
  it('with a good login in a file: no network, no schema, no keychain, no OAuth', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    using folder = temporaryFolder();
    const hook = join(folder.path, 'hook.cjs');
    writeFileSync(
      hook,
      `process.on('exit', () => require('node:fs').writeSync(2, JSON.stringify({
        files: Object.keys(require.cache), native: process.moduleLoadList.filter((line) => /^NativeModule (http|https|net|tls|child_process|crypto|worker_threads)$/.test(line)) })));`,
    );
    const { code, stderr } = await ailsd(['token'], { env: home.env, node: ['--require', hook] });
    expect(code).toBe(0);
    const { files, native } = JSON.parse(stderr);
    expect(native).toEqual([]);
    expect(
      files.filter((file: string) =>
        /issuer|refresh|http|keychain|parse|zod|openid|ora/.test(file.split('/').pop() ?? ''),
      ),
    ).toEqual([]);
  });
});

/** All at once, each making one call to the server. */
function many(count: number, home: LoginHome): Promise<CliResult[]> {
  return Promise.all(Array.from({ length: count }, () => ailsd(['whoami'], { env: home.env })));
}

function failures(results: readonly CliResult[]): CliResult[] {
  return results.filter(({ code }) => code !== 0);
}

function lockFiles(home: LoginHome): string[] {
  return readdirSync(home.folder).filter((name) => name.includes('.lock'));
}

function writeStore(home: LoginHome, document: object | undefined): void {
  writeFileSync(join(home.folder, 'credentials.json'), JSON.stringify(document), { mode: 0o600 });
}

/** Whether it was still running then. */
function killAfter(args: string[], home: LoginHome, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [BIN, ...args], {
      env: cleanEnvironment(home.env),
      stdio: 'ignore',
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), ms);
    child.on('close', (_, signal) => {
      clearTimeout(timer);
      resolve(signal === 'SIGKILL');
    });
  });
}

/** Mulberry32: small, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function githubVariables(url: string): Record<string, string> {
  return {
    AILSD_OIDC: 'github',
    ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/github?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'job-secret',
  };
}

function github({
  path,
  authorization,
}: {
  path: string;
  authorization: string | undefined;
}): Answer | undefined {
  if (path !== '/github') return undefined;
  return authorization === 'bearer job-secret'
    ? { json: { value: 'i.d.t' } }
    : { json: {}, status: 401 };
}
