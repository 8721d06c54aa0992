import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { knowsItsWidth } from '../../src/cli/login/waiting.js';
import { proves } from '../requirements.js';
import { ailsd, BIN, cleanEnvironment } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { type Answer, refused, startFakeIssuer } from '../support/fake-issuer.js';
import { NO_KEYRING, startSession } from '../support/keyring.js';
import { ailsdInPty } from '../support/pty.js';
import {
  expectWholeStore,
  fakeOpener,
  loggedIn,
  loginHome,
  quickly,
} from '../support/stored-login.js';

const SOAK = process.env['AILSD_SOAK'] === '1';
const PENDING = refused('authorization_pending');
const BAD_GATEWAY: Answer = { body: '<h1>500</h1>', status: 500, type: 'text/html' };

const NO_PYTHON = spawnSync('python3', ['-c', 'import pty']).status !== 0;
/** Runs its arguments in a terminal of 0 columns and 0 rows, and ends as they do. */
const PTY_OF_NO_SIZE = `
import os, pty, select, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
sources = [0, terminal]
while True:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:
            data = b''
        if source == terminal:
            if not data:
                sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            os.write(1, data)
        elif data:
            os.write(terminal, data)
        else:
            sources.remove(0)
`;

/** An issuer whose token endpoint answers these in turn, and then approves; `device` goes into the device answer. */
async function issuerSaying(polls: Answer[], device: object = {}) {
  const issuer = await startFakeIssuer();
  issuer.script = quickly(
    issuer,
    ({ path }) => (path === '/token' ? polls.shift() : undefined),
    device,
  );
  return issuer;
}

/** Never approves. */
async function undecided(device: object = {}) {
  const issuer = await startFakeIssuer();
  issuer.script = quickly(issuer, ({ path }) => (path === '/token' ? PENDING : undefined), device);
  return issuer;
}

describe('a device login', () => {
  it('shows address and code on stderr, then prints who is logged in, and keeps it', async () => {
    await using issuer = await issuerSaying([PENDING, PENDING]);
    using home = loginHome(issuer.url);
    const { code, stdout, stderr } = await ailsd(['login', '--json'], { env: home.env });
    expect(code).toBe(0);
    expect(JSON.parse(stderr)).toEqual({
      verification_uri: `${issuer.url}/device`,
      verification_uri_complete: `${issuer.url}/device?user_code=WDJB-MJHT`,
      user_code: 'WDJB-MJHT',
      expires_in: 600,
    });
    expect(JSON.parse(stdout)).toMatchObject({
      server: issuer.url,
      account: 'ada',
      scopes: ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'],
      not_granted: [],
      renewable: true,
      stored: { kind: 'file', place: join(home.folder, 'credentials.json') },
    });
    expectWholeStore(home.folder);
    expect(home.read()?.credentials).toHaveLength(1);
  });

  it('decides on the store and says so before it asks for a code', async () => {
    await using issuer = await issuerSaying([]);
    using home = loginHome(issuer.url);
    const { stderr } = await ailsd(['login'], { env: home.env });
    expect(stderr.indexOf('credentials.json')).toBeGreaterThan(-1);
    expect(stderr.indexOf('credentials.json')).toBeLessThan(stderr.indexOf('/device'));
    const before = issuer.requests.length;
    const unusable = { ...home.env, AILSD_CREDENTIAL_STORE: 'keyring' };
    expect(await ailsd(['login'], { env: unusable })).toMatchObject({ code: 4 });
    expect(issuer.requests).toHaveLength(before);
  });

  it('says which scopes were not granted and what that means', async () => {
    await using issuer = await startFakeIssuer({ scope: 'read:sandbox' });
    issuer.script = quickly(issuer);
    using home = loginHome(issuer.url);
    const { stdout } = await ailsd(['login'], { env: home.env });
    expect(stdout).toContain('cannot  open a terminal (attach:sandbox)');
    expect(stdout).toContain('cannot  run commands');
    const json = await ailsd(['login', '--json'], { env: home.env });
    expect(JSON.parse(json.stdout).not_granted).toEqual([
      'write:sandbox',
      'exec:sandbox',
      'attach:sandbox',
    ]);
  });

  it('asks for the scopes it was told to', async () => {
    await using issuer = await issuerSaying([]);
    using home = loginHome(issuer.url);
    const args = ['login', '--scope', 'read:sandbox', '--scope', 'exec:sandbox'];
    expect(await ailsd(args, { env: home.env })).toMatchObject({ code: 0 });
    const request = issuer.requests.find(({ path }) => path === '/device/code');
    expect(request?.form).toEqual({
      client_id: 'ailsd-cli',
      scope: 'read:sandbox exec:sandbox',
      machine_name: hostname(),
    });
  });

  it('works again when already logged in, and ends the login it takes the place of', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const before = home.read()?.credentials[0]?.['refresh_token'];
    issuer.script = quickly(issuer);
    expect(await ailsd(['login'], { env: home.env })).toMatchObject({ code: 0 });
    expect(home.read()?.credentials).toHaveLength(1);
    expect(home.read()?.credentials[0]?.['refresh_token']).not.toBe(before);
    const revoked = issuer.requests.filter(({ path }) => path === '/revoke');
    expect(revoked.map(({ form }) => form['token'])).toEqual([before]);
  });

  it('an issuer that cannot be told of the old login does not spoil the new one', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = quickly(issuer, ({ path }) => (path === '/revoke' ? BAD_GATEWAY : undefined));
    expect(await ailsd(['login'], { env: home.env })).toMatchObject({ code: 0 });
    expect((await ailsd(['token'], { env: home.env })).code).toBe(0);
  });

  it('holds no token in its arguments, and none in what it prints', async () => {
    await using issuer = await issuerSaying([]);
    using home = loginHome(issuer.url);
    const { stdout, stderr } = await ailsd(['login', '--debug'], { env: home.env });
    const kept = home.read()?.credentials[0];
    for (const secret of [kept?.['access_token'], kept?.['refresh_token']]) {
      expect(stdout + stderr).not.toContain(secret);
    }
    expect(stderr).toContain('"path":"/token"');
  });
});

describe.concurrent('the pace of a real process', () => {
  const SLOW_DOWN = refused('slow_down');

  it('slow_down adds five seconds', async () => {
    await using issuer = await issuerSaying([PENDING, SLOW_DOWN]);
    using home = loginHome(issuer.url);
    const { code, stderr } = await ailsd(['login'], { env: home.env });
    expect(code).toBe(0);
    expect(stderr).toContain('slow down');
    const [, second, third] = issuer.grants('device_code').map(({ at }) => at);
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(5_050);
  });

  it.runIf(SOAK).each([undefined, 2, 5])(
    proves('interval %s: no poll is early, exit 0', 'OA-01'),
    async (interval) => {
      const polls = [PENDING, PENDING, SLOW_DOWN, SLOW_DOWN, PENDING, PENDING];
      await using issuer = await issuerSaying(polls, { interval });
      using home = loginHome(issuer.url);
      const { code } = await runPatiently(['login'], home.env);
      expect(code).toBe(0);
      const times = issuer.requests
        .filter(({ path }) => /code|token/.test(path))
        .map(({ at }) => at);
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      const more = [0, 0, 0, 5, 10, 10, 10];
      for (const [index, gap] of gaps.entries()) {
        expect(gap).toBeGreaterThanOrEqual(((interval ?? 5) + (more[index] ?? 0)) * 1000);
      }
    },
    180_000,
  );
});

describe('endings of a login', () => {
  it(proves('denied: exit 4, nothing stored', 'OA-03'), async () => {
    await using issuer = await issuerSaying([PENDING, refused('access_denied')]);
    using home = loginHome(issuer.url);
    const { code, stderr } = await ailsd(['login'], { env: home.env });
    expect(code).toBe(4);
    expect(stderr).toContain('LOGIN_DENIED');
    expect(home.read()).toBe(undefined);
  });

  it(
    proves('expired: exit 4 within an interval of the expiry, nothing stored', 'OA-03'),
    async () => {
      await using issuer = await undecided({ expires_in: 1, interval: 0.5 });
      using home = loginHome(issuer.url);
      const { code, stderr } = await ailsd(['login'], { env: home.env });
      const ended = performance.now();
      expect(code).toBe(4);
      expect(stderr).toContain('LOGIN_EXPIRED');
      expect(home.read()).toBe(undefined);
      const began = issuer.requests.find(({ path }) => path === '/device/code')?.at ?? Number.NaN;
      expect(ended - began).toBeGreaterThanOrEqual(1_000);
      expect(ended - began).toBeLessThan(1_000 + 500 + 500);
    },
  );

  it(
    proves('connection errors and a broken gateway: it goes on, and succeeds', 'OA-03'),
    async () => {
      await using issuer = await issuerSaying(['cut', 'cut', BAD_GATEWAY, PENDING], {
        interval: 0.1,
      });
      using home = loginHome(issuer.url);
      const { code, stderr } = await ailsd(['login'], { env: home.env });
      expect(code).toBe(0);
      expect(stderr).toContain('trying again');
      const times = issuer.grants('device_code').map(({ at }) => at);
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      for (const [index, least] of [200, 400, 800].entries()) {
        expect(gaps[index]).toBeGreaterThanOrEqual(least);
      }
    },
  );

  for (const [signal, exit] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(
      proves(`${signal}: exit ${exit} within 500 ms, nothing stored, no more polls`, 'OA-03'),
      async () => {
        await using issuer = await undecided();
        using home = loginHome(issuer.url);
        let sent = 0;
        const { code } = await ailsd(['login'], {
          env: home.env,
          started: (pid) => {
            void eventually(() => issuer.grants('device_code').length > 1).then(() => {
              sent = performance.now();
              process.kill(pid, signal);
            });
          },
        });
        expect(performance.now() - sent).toBeLessThan(500);
        expect(code).toBe(exit);
        expect(home.read()).toBe(undefined);
        const polls = issuer.grants('device_code').length;
        await new Promise((resolve) => setTimeout(resolve, 200));
        expect(issuer.grants('device_code')).toHaveLength(polls);
      },
    );
  }

  it('Ctrl-C typed in a terminal: exit 130, the cursor is back', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    using program = ailsdInPty(['login'], { env: home.env });
    await program.shows('waiting for approval');
    program.type('\u0003');
    expect(await program.ended()).toBe(130);
    expect(program.raw().lastIndexOf('\u001b[?25h')).toBeGreaterThan(
      program.raw().lastIndexOf('\u001b[?25l'),
    );
    expect(home.read()).toBe(undefined);
  });

  it('as somebody else says whom it replaces; as the same again it does not', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    issuer.script = quickly(issuer);
    const same = await ailsd(['login'], { env: home.env });
    expect(same.stderr).not.toContain('replaces');
    const path = join(home.folder, 'credentials.json');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"ada"', '"bob"'));
    const other = await ailsd(['login'], { env: home.env });
    expect(other, other.stderr).toMatchObject({ code: 0 });
    expect(other.stderr).toContain('this replaces bob as the account in use');
  });

  it('a server that is not there: exit 7', async () => {
    using home = loginHome('http://127.0.0.1:1');
    const { code, stderr } = await ailsd(['login'], { env: home.env });
    expect(code).toBe(7);
    expect(stderr).toContain('UNREACHABLE');
  });

  it('no server set: exit 2', async () => {
    using home = loginHome('');
    const { code, stderr } = await ailsd(['login'], { env: { ...home.env, AILSD_URL: undefined } });
    expect(code).toBe(2);
    expect(stderr).toContain('CONFIG_INVALID');
  });
});

/** Mostly waiting: all at once. */
describe.concurrent('hostile issuers', () => {
  const ESC = '\u001b]52;c;aGk=\u0007\u001b[2J\u009b31m\u202e\r';
  const hostile: [string, object][] = [
    ['a script', { verification_uri: 'javascript:alert(1)' }],
    ['a file', { verification_uri: 'file:///etc/passwd' }],
    ['plain http elsewhere', { verification_uri: 'http://example.com/device' }],
    ['a user in the address', { verification_uri: 'https://me@example.com/' }],
    ['control characters', { verification_uri: `https://example.com/${ESC}` }],
    ['a code of 10 KB', { user_code: 'A'.repeat(10_240) }],
    ['expires_in -1', { expires_in: -1 }],
    ['expires_in 1e12', { expires_in: 1e12 }],
    ['expires_in x', { expires_in: 'x' }],
    ['interval 1e9', { interval: 1e9 }],
  ];
  it.each(hostile)(
    proves('%s: LOGIN_FAILED, exit 4, within a second', 'OA-11'),
    async (_, device) => {
      await using issuer = await undecided(device);
      using home = loginHome(issuer.url);
      const { code, stdout, stderr } = await ailsd(['login'], { env: home.env });
      const answered =
        issuer.requests.find(({ path }) => path === '/device/code')?.at ?? Number.NaN;
      expect(performance.now() - answered).toBeLessThan(1_000);
      expect(code).toBe(4);
      expect(stderr).toContain('LOGIN_FAILED');
      expect(stderr).not.toContain('To log in');
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    },
  );

  it(proves('an interval of 0 or less counts as 5 seconds', 'OA-11'), async () => {
    const firstPoll = async (interval: number): Promise<number> => {
      await using issuer = await undecided({ interval });
      using home = loginHome(issuer.url);
      const { code } = await ailsd(['login', '--json'], {
        env: home.env,
        started: (pid) => {
          void eventually(() => issuer.grants('device_code').length > 0).then(() =>
            process.kill(pid, 'SIGINT'),
          );
        },
      });
      expect(code).toBe(130);
      const [began, first] = issuer.requests
        .filter(({ path }) => /code|token/.test(path))
        .map(({ at }) => at);
      return (first ?? 0) - (began ?? 0);
    };
    for (const waited of await Promise.all([firstPoll(0), firstPoll(-5)])) {
      expect(waited).toBeGreaterThanOrEqual(5_000);
    }
  });

  it(
    proves('what an error says is printed with its control characters escaped', 'OA-11'),
    async () => {
      await using issuer = await issuerSaying([refused('invalid_grant', `no ${ESC}`)]);
      using home = loginHome(issuer.url);
      const { code, stderr } = await ailsd(['login'], { env: home.env });
      expect(code).toBe(4);
      expect(stderr).toContain('LOGIN_FAILED');
      expect(stderr).toContain('\\x1b]52;c;aGk=\\x07');
      expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    },
  );

  it(
    proves('an address full of shell is opened as it is, never through one', 'OA-11'),
    async () => {
      await using issuer = await undecided();
      const trap = `${issuer.url}/device?a=$(touch$IFS/tmp/ailsd-trap)&b=\`id\`;c|d`;
      issuer.script = quickly(issuer, ({ path }) => (path === '/token' ? PENDING : undefined), {
        verification_uri_complete: trap,
      });
      using home = loginHome(issuer.url);
      const opener = fakeOpener(join(home.folder, '..'));
      using program = ailsdInPty(['login'], {
        env: { ...home.env, DISPLAY: ':0', PATH: opener.path },
      });
      await program.shows('Enter opens the browser');
      program.type('\r');
      await eventually(() => opener.opened().length > 0);
      expect(opener.opened()).toEqual([trap]);
      expect(existsSync('/tmp/ailsd-trap')).toBe(false);
    },
  );
});

describe('in a terminal', () => {
  it('shows the code in a box, waits with a spinner, and leaves a clean screen', async () => {
    await using issuer = await startFakeIssuer();
    let approved = false;
    issuer.script = quickly(issuer, ({ path }) =>
      path === '/token' && !approved ? PENDING : undefined,
    );
    using home = loginHome(issuer.url);
    using program = ailsdInPty(['login'], { env: home.env, rows: 60 });
    await program.shows('waiting for approval, at most 10 minutes');
    const screen = program.screen();
    expect(screen.indexOf(`  ${issuer.url}/device\n`)).toBeGreaterThan(-1);
    expect(screen).toContain('│  WDJB-MJHT  │');
    expect(screen.indexOf('/device')).toBeLessThan(screen.indexOf('WDJB-MJHT'));
    expect(screen.indexOf('WDJB-MJHT')).toBeLessThan(screen.indexOf('█'));
    approved = true;
    expect(await program.ended()).toBe(0);
    expect(program.screen()).toContain('Logged in to');
    expect(program.screen()).not.toContain('waiting for approval');
  });

  it('draws no QR code where it would push the code off the screen, unless asked', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    using small = ailsdInPty(['login'], { env: home.env, rows: 24 });
    await small.shows('waiting for approval');
    expect(small.screen()).not.toContain('█');
    using asked = ailsdInPty(['login', '--qr'], { env: home.env, rows: 24 });
    await asked.shows('waiting for approval');
    expect(asked.screen()).toContain('█');
  });

  it('of no known width there is no spinner', () => {
    expect([{}, { columns: 0 }, { columns: 1 }].map(knowsItsWidth)).toEqual([false, false, true]);
  });

  it('of one column and one row Ctrl-C ends the login', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    using program = ailsdInPty(['login'], { env: home.env, columns: 1, rows: 1 });
    await eventually(() => issuer.grants('device_code').length > 1);
    program.type('\u0003');
    expect(await program.ended()).toBe(130);
  });

  it.skipIf(NO_PYTHON)('of no size at all (made by python3) Ctrl-C ends the login', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    const env = { ...cleanEnvironment(home.env), TERM: 'xterm-256color' };
    const child = spawn('python3', ['-c', PTY_OF_NO_SIZE, process.execPath, BIN, 'login'], { env });
    let shown = '';
    child.stdout.on('data', (chunk) => {
      shown += chunk;
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    try {
      await eventually(() => issuer.grants('device_code').length > 1);
      child.stdin.end('\u0003');
      expect(await ended, shown).toBe(130);
      expect(shown).toContain('waiting for approval');
      expect(shown).not.toContain('\u001b[?25l');
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('NO_COLOR leaves the look and takes the colours', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    using program = ailsdInPty(['login'], { env: { ...home.env, NO_COLOR: '1' }, rows: 60 });
    await program.shows('waiting for approval');
    expect(program.raw()).not.toMatch(/\u001b\[[0-9;]*m/);
  });

  const closed: [string, Record<string, string>, string[]][] = [
    ['over ssh', { DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }, []],
    ['on an ssh terminal', { DISPLAY: ':0', SSH_TTY: '/dev/pts/1' }, []],
    ['without a display', {}, []],
    ['in CI', { DISPLAY: ':0', CI: 'true' }, []],
    ['with --no-input', { DISPLAY: ':0' }, ['--no-input']],
    ['with --no-browser', { DISPLAY: ':0' }, ['--no-browser']],
  ];
  it.each(closed)('%s Enter opens nothing', async (_, extra, args) => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    const opener = fakeOpener(join(home.folder, '..'));
    const env = { ...home.env, ...extra, PATH: opener.path };
    using program = ailsdInPty(['login', ...args], { env });
    await program.shows('waiting for approval');
    expect(program.screen()).not.toContain('Enter opens');
    program.type('\r');
    const polls = issuer.grants('device_code').length;
    await eventually(() => issuer.grants('device_code').length > polls + 3);
    expect(opener.opened()).toEqual([]);
  });

  it('a browser is opened on Enter, and not before', async () => {
    await using issuer = await undecided();
    using home = loginHome(issuer.url);
    const opener = fakeOpener(join(home.folder, '..'));
    using program = ailsdInPty(['login'], {
      env: { ...home.env, DISPLAY: ':0', PATH: opener.path },
    });
    await program.shows('Enter opens the browser');
    await eventually(() => issuer.grants('device_code').length > 2);
    expect(opener.opened()).toEqual([]);
    program.type('\r');
    await eventually(() => opener.opened().length > 0);
    expect(opener.opened()).toEqual([`${issuer.url}/device?user_code=WDJB-MJHT`]);
  });

  it('the browser inherits none of our variables, and the login still knows them', async () => {
    let isApproved = false;
    await using issuer = await startFakeIssuer();
    const polls = ({ path }: { path: string }) =>
      path === '/token' && !isApproved ? PENDING : undefined;
    issuer.script = quickly(issuer, polls);
    using home = loginHome(issuer.url);
    const opener = fakeOpener(join(home.folder, '..'));
    const env = { ...home.env, DISPLAY: ':0', PATH: opener.path };
    using program = ailsdInPty(['login'], {
      env: { ...env, AILSD_SECRET_OF_LATER: 'x', ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'y' },
    });
    await program.shows('Enter opens the browser');
    program.type('\r');
    await eventually(() => opener.opened().length > 0);
    expect(opener.variables()).toEqual(expect.arrayContaining(['DISPLAY', 'PATH', 'HOME']));
    expect(opener.variables().filter((name) => /AILSD|ID_TOKEN/.test(name))).toEqual([]);
    isApproved = true;
    expect(await program.ended()).toBe(0);
    expect(home.read()?.credentials).toHaveLength(1);
  });
});

describe('other ways to log in', () => {
  it('--profile with --url makes the profile, once the login is there', async () => {
    await using issuer = await startFakeIssuer();
    issuer.script = quickly(issuer, ({ path }) =>
      path === '/token' ? refused('access_denied') : undefined,
    );
    using home = loginHome(issuer.url);
    const { AILSD_URL: _, ...env } = home.env;
    const args = ['login', '--profile', 'work', '--url', issuer.url];
    expect(await ailsd(args, { env })).toMatchObject({ code: 4 });
    const config = join(home.folder, 'config.json');
    expect(existsSync(config)).toBe(false);
    issuer.script = quickly(issuer);
    const { code, stderr } = await ailsd(args, { env });
    expect([code, stderr]).toEqual([0, expect.stringContaining(`profile work now stands for`)]);
    expect(JSON.parse(readFileSync(config, 'utf8'))).toEqual({
      profiles: { work: { url: issuer.url } },
    });
    const who = await ailsd(['whoami', '--profile', 'work', '--json'], { env });
    expect([who.code, JSON.parse(who.stdout).server]).toEqual([0, issuer.url]);
    // One that is there is used, not changed; without a server there is nothing to make one of.
    const elsewhere = ['login', '--profile', 'work', '--url', 'http://127.0.0.1:1'];
    expect(await ailsd(elsewhere, { env })).toMatchObject({ code: 7 });
    expect(JSON.parse(readFileSync(config, 'utf8')).profiles.work.url).toBe(issuer.url);
    expect(await ailsd(['login', '--profile', 'other'], { env })).toMatchObject({ code: 2 });
  });

  it('--web: a browser on this machine comes back with the code, once', async () => {
    await using issuer = await startFakeIssuer();
    using home = loginHome(issuer.url);
    let page = '';
    let again = '';
    const { code, stdout } = await ailsdTalking(
      ['login', '--web', '--json'],
      home.env,
      async (line) => {
        const { verification_uri: url } = JSON.parse(line);
        expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/start\/[\w-]{43}$/);
        const start = await fetch(url, { redirect: 'manual' });
        expect(start.status).toBe(303);
        expect((await fetch(url, { redirect: 'manual' })).status).toBe(404);
        const redirect = await fetch(start.headers.get('location') ?? '', { redirect: 'manual' });
        const back = new URL(redirect.headers.get('location') ?? '');
        const forged = new URL(back);
        forged.searchParams.set('state', 'guessed');
        expect((await fetch(forged)).status).toBe(404);
        expect((await fetch(new URL('/other', back))).status).toBe(404);
        page = await (await fetch(back)).text();
        again = await fetch(back).then(
          (answer) => String(answer.status),
          () => 'refused',
        );
      },
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ account: 'ada' });
    expect(page).toContain('Logged in');
    expect(again).toMatch(/404|refused/);
    const [grant] = issuer.grants('authorization_code');
    expect(grant?.form['code_verifier']).toMatch(/^[\w.~-]{43,128}$/);
    expect(grant?.form['redirect_uri']).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  });

  it('--web: codes that are not this login’s are told of, and do not cost it its own', async () => {
    await using issuer = await startFakeIssuer();
    using home = loginHome(issuer.url);
    issuer.script = ({ path, form }) =>
      path === '/token' && form['code']?.startsWith('bogus') === true
        ? refused('invalid_grant')
        : undefined;
    const pages: number[] = [];
    const args = ['login', '--web'];
    const browse = async (line: string) => {
      const start = await fetch(line.trim(), { redirect: 'manual' });
      const redirect = await fetch(start.headers.get('location') ?? '', { redirect: 'manual' });
      const back = new URL(redirect.headers.get('location') ?? '');
      for (const bogus of ['bogus-1', 'bogus-2', 'bogus-2']) {
        const forged = new URL(back);
        forged.searchParams.set('code', bogus);
        pages.push((await fetch(forged)).status);
      }
      pages.push((await fetch(back)).status);
    };
    const { code, stdout, stderr } = await ailsdTalking(args, home.env, browse, '/start/');
    expect([code, pages]).toEqual([0, [400, 400, 404, 200]]);
    expect(stdout).toContain('as ada');
    expect(stderr.match(/a code came back that the server did not give/g)).toHaveLength(2);
  });

  it('--web: five wrong codes are enough: 4, and what happened is said', async () => {
    await using issuer = await startFakeIssuer();
    using home = loginHome(issuer.url);
    issuer.script = ({ path }) => (path === '/token' ? refused('invalid_grant') : undefined);
    const args = ['login', '--web', '--json'];
    const { code, stderr } = await ailsdTalking(args, home.env, async (line) => {
      const start = await fetch(JSON.parse(line).verification_uri, { redirect: 'manual' });
      const redirect = await fetch(start.headers.get('location') ?? '', { redirect: 'manual' });
      const back = new URL(redirect.headers.get('location') ?? '');
      for (let one = 0; one < 5; one += 1) {
        back.searchParams.set('code', `bogus-${one}`);
        await fetch(back);
      }
    });
    expect(code).toBe(4);
    expect(stderr).toContain('5 codes that the server did not give to this login');
    expect(home.read()).toBe(undefined);
  });

  it('--with-token: takes a token from standard input, once the server has said whose it is', async () => {
    await using issuer = await startFakeIssuer();
    using other = await loggedIn(issuer);
    const token = String(other.read()?.credentials[0]?.['access_token']);
    using home = loginHome(issuer.url);
    const { code, stdout } = await ailsd(['login', '--with-token', '--json'], {
      env: home.env,
      input: `${token}\n`,
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ account: 'ada', renewable: false });
    expect((await ailsd(['token'], { env: home.env })).stdout.trim()).toBe(token);
    const refusedToken = await ailsd(['login', '--with-token'], { env: home.env, input: 'forged' });
    expect(refusedToken).toMatchObject({ code: 4, stdout: '' });
    expect(refusedToken.stderr).toContain('LOGIN_FAILED');
    expect(await ailsd(['login', '--with-token'], { env: home.env, input: '' })).toMatchObject({
      code: 2,
    });
    expect(await ailsd(['login', '--with-token', token], { env: home.env })).toMatchObject({
      code: 2,
    });
  });

  it('--client-credentials and --oidc keep what they get, without the secret', async () => {
    await using issuer = await startFakeIssuer();
    using home = loginHome(issuer.url);
    const client = { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 'sesame' };
    expect(
      await ailsd(['login', '--client-credentials'], { env: { ...home.env, ...client } }),
    ).toMatchObject({ code: 0 });
    expect(readFileSync(join(home.folder, 'credentials.json'), 'utf8')).not.toContain('sesame');
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const identity = { AILSD_IDENTITY_TOKEN: 'e.y.J' };
    expect(await ailsd(['login', '--oidc'], { env: { ...home.env, ...identity } })).toMatchObject({
      code: 0,
    });
    expect(await ailsd(['login', '--oidc'], { env: home.env })).toMatchObject({ code: 2 });
    expect(await ailsd(['login', '--client-credentials'], { env: home.env })).toMatchObject({
      code: 2,
    });
  });

  it('with a variable set there is nothing to do: exit 0 and a notice, no request', async () => {
    await using issuer = await startFakeIssuer();
    using home = loginHome(issuer.url);
    for (const variables of [
      { AILSD_TOKEN: 'a.b.c' },
      { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 'sesame' },
      {
        AILSD_OIDC: 'github',
        ACTIONS_ID_TOKEN_REQUEST_URL: issuer.url,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x',
      },
    ]) {
      const { code, stdout, stderr } = await ailsd(['login'], {
        env: { ...home.env, ...variables },
      });
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).toMatch(
        /^ailsd: AILSD_(TOKEN|CLIENT_SECRET|OIDC) is set and is what every command uses/,
      );
    }
    expect(issuer.requests).toHaveLength(0);
  });
});

describe('where a login is kept', () => {
  it.skipIf(NO_KEYRING !== undefined)(
    'a real keychain holds it, renews it and loses it; nothing of it is in a file',
    async () => {
      await using session = await startSession();
      await session.startKeyring('unlocked');
      await using issuer = await startFakeIssuer({ lifeSeconds: 3 });
      using home = loginHome(issuer.url);
      issuer.script = quickly(issuer);
      const env = { ...home.env, ...session.variables, AILSD_CREDENTIAL_STORE: undefined };
      const { code, stdout, stderr } = await ailsd(['login'], { env });
      expect(code, stderr).toBe(0);
      expect(stderr).toContain("kept in the system's keychain");
      expect(stdout).toContain("stored  the system's keychain");
      expect(home.read()).toBe(undefined);
      const first = await ailsd(['token'], { env });
      await eventually(async () => (await ailsd(['token'], { env })).stdout !== first.stdout);
      expect(issuer.grants('refresh_token').length).toBeGreaterThan(0);
      expect(await ailsd(['logout'], { env })).toMatchObject({ code: 0 });
      expect(await ailsd(['token'], { env })).toMatchObject({ code: 4 });
    },
  );

  it('AILSD_CA_FILE is asked before any server is', async () => {
    using home = loginHome('https://127.0.0.1:1');
    const env = { ...home.env, AILSD_CA_FILE: '/nonexistent/ca.pem' };
    const { code, stderr } = await ailsd(['login'], { env });
    expect(code).toBe(2);
    expect(stderr).toContain('AILSD_CA_FILE');
  });
});

/** Runs it and hands its first line of talk to `heard`. */
async function ailsdTalking(
  args: string[],
  env: Readonly<Record<string, string>>,
  heard: (line: string) => Promise<void>,
  /** Which line is meant. */
  awaited = '',
) {
  const child = spawn(process.execPath, [BIN, ...args], { env: cleanEnvironment(env) });
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
    await eventually(
      () => stderr.includes(awaited) && stderr.endsWith('\n'),
      () => `it said nothing: ${stdout}`,
    );
    await heard(stderr.split('\n').find((line) => line.includes(awaited)) ?? '');
    return { code: await ended, stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

/** As long as it takes. */
async function runPatiently(args: string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: cleanEnvironment(env),
    stdio: 'ignore',
  });
  return { code: await new Promise<number | null>((resolve) => child.on('close', resolve)) };
}
