/** `ailsd server …` as an operator and a script use it: real processes, a real folder, a real terminal. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ailsd, BIN, type CliOptions, cleanEnvironment, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { ailsdInPty } from '../support/pty.js';

const folder = temporaryFolder();
const dir = join(folder.path, 'data');
// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any script would
let made: any;

beforeAll(async () => {
  const { code, stdout, stderr } = await ailsd(['server', 'init', '--dir', dir, '--json']);
  if (code !== 0) throw new Error(stderr);
  made = JSON.parse(stdout);
});
afterAll(() => folder[Symbol.dispose]());

/** Runs `ailsd server WORDS --dir D --json`. */
async function server(words: readonly string[], options: CliOptions = {}) {
  const result = await ailsd(['server', ...words, '--dir', dir, '--json'], options);
  const text = result.code === 0 ? result.stdout : result.stderr;
  return { ...result, json: text === '' ? undefined : JSON.parse(text) };
}

describe('server init', () => {
  it('makes a folder of its owner alone and prints the first client once', async () => {
    expect(made).toMatchObject({
      dir,
      store: 'sqlite',
      client_id: expect.stringMatching(/^svc_[0-9a-f]{32}$/),
      client_secret: expect.stringMatching(/^ailsd_secret_[\w-]{43}$/),
      scopes: ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox', 'admin:sandbox'],
    });
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    for (const name of ['server.json', 'store.db'])
      expect(statSync(join(dir, name)).mode & 0o777, name).toBe(0o600);
    const listed = await server(['client', 'list']);
    expect(listed.json.items.map((one: { client_id: string }) => one.client_id).sort()).toEqual(
      ['ailsd-cli', made.client_id].sort(),
    );
    expect(listed.stdout).not.toContain('secret');
  });

  it('refuses a folder that has a server already, and leaves it as it was', async () => {
    const before = readFileSync(join(dir, 'server.json'), 'utf8');
    const again = await server(['init']);
    expect(again.code).toBe(6);
    expect(again.json.error).toMatchObject({ code: 'ALREADY_EXISTS', field: 'dir', exit_code: 6 });
    expect(readFileSync(join(dir, 'server.json'), 'utf8')).toBe(before);
    expect((await server(['client', 'list'])).json.items).toHaveLength(2);
  });

  it('of several at once on one folder exactly one makes it', async () => {
    const other = join(folder.path, 'race');
    const results = await Promise.all(
      Array.from({ length: 4 }, () => ailsd(['server', 'init', '--dir', other, '--json'])),
    );
    expect(results.map(({ code }) => code).sort()).toEqual([0, 6, 6, 6]);
    const winner = JSON.parse(results.find(({ code }) => code === 0)?.stdout ?? '{}');
    const listed = await ailsd(['server', 'client', 'list', '--dir', other, '--json']);
    const ids = JSON.parse(listed.stdout).items.map((one: { client_id: string }) => one.client_id);
    expect(ids.sort()).toEqual(['ailsd-cli', winner.client_id].sort());
  });

  it('a store that cannot be reached leaves no folder behind, and no part of one that was there', async () => {
    const store = ['--store', 'postgres://nobody@127.0.0.1:1/none'];
    const init = (to: string) => ailsd(['server', 'init', '--json', '--dir', to, ...store]);
    expect((await init(join(folder.path, 'deep', 'er'))).code).not.toBe(0);
    expect(existsSync(join(folder.path, 'deep'))).toBe(false);
    const own = join(folder.path, 'own');
    mkdirSync(own, { mode: 0o700 });
    expect((await init(join(own, 'data'))).code).not.toBe(0);
    expect(readdirSync(own)).toEqual([]);
  });

  it('what cannot be is refused before anything is made', async () => {
    const other = join(folder.path, 'never');
    const init = (...words: string[]) =>
      ailsd(['server', 'init', '--json', '--dir', other, ...words]);
    for (const words of [
      ['--url', 'http://example.com'],
      ['--url', 'https://example.com/path'],
      ['--store', 'mysql://root@db/x'],
    ]) {
      const { code, stderr } = await init(...words);
      expect(code, stderr).toBe(2);
      expect(JSON.parse(stderr).error.code).toBe('CONFIG_INVALID');
      expect(existsSync(join(other, 'server.json'))).toBe(false);
    }
    const missing = await ailsd(['server', 'init']);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toMatch(/USAGE: --dir is missing\n {2}hint: .*AILSD_DIR/);
  });

  it('the folder may come from AILSD_DIR, and the result is for people without --json', async () => {
    const other = join(folder.path, 'by-variable');
    const { code, stdout, stderr } = await ailsd(['server', 'init'], { env: { AILSD_DIR: other } });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^folder +.*by-variable\nstore +sqlite\nclient_id +svc_\w+\nclient_secret +ailsd_secret_/,
    );
    expect(stderr).toMatch(/not shown again/);
  });
});

describe('server user', () => {
  it('a password comes from a pipe, is made on request, and is never among the arguments', async () => {
    const added = await server(['user', 'add', 'ada', '--scope', 'read:sandbox,exec:sandbox'], {
      input: 'correct horse battery\nsecond line',
    });
    expect(added.json).toEqual({
      id: expect.stringMatching(/^usr_/),
      name: 'ada',
      tenant: 'default',
      scopes: ['read:sandbox', 'exec:sandbox'],
    });
    const generated = await server(['user', 'add', 'bob', '--generate', '--tenant', 'acme']);
    expect(generated.json).toMatchObject({
      tenant: 'acme',
      password: expect.stringMatching(/^[\w-]{20}$/),
    });
    const changed = await server(['user', 'passwd', 'ada'], { input: 'another password' });
    expect(changed.json).toMatchObject({ name: 'ada' });
    const listed = await server(['user', 'list']);
    expect(listed.json.items.map((one: { name: string }) => one.name)).toEqual(['ada']);
    expect(listed.json.items[0]).toMatchObject({ has_password: true, disabled_at: null });
  });

  it('logout is told, and leaves the user as it was', async () => {
    await server(['user', 'add', 'lena'], { input: 'long enough' });
    const text = await ailsd(['server', 'user', 'logout', 'lena', '--dir', dir]);
    expect(text).toMatchObject({ code: 0, stdout: 'lena is logged out everywhere\n' });
    expect((await server(['user', 'logout', 'lena'])).json).toMatchObject({ disabled_at: null });
    expect((await server(['user', 'logout', 'nobody'])).code).toBe(3);
  });

  it('disable and enable are told and kept', async () => {
    const input = 'long enough';
    await server(['user', 'add', 'carl'], { input });
    expect((await server(['user', 'disable', 'carl'])).json.disabled_at).toMatch(/Z$/);
    const text = await ailsd(['server', 'user', 'list', '--dir', dir]);
    expect(text.stdout).toMatch(/^carl +usr_\w+ +disabled +read:sandbox/m);
    expect((await server(['user', 'enable', 'carl'])).json.disabled_at).toBe(null);
  });

  it('a password of the fewest characters that the prompt names is taken, and no shorter one', async () => {
    expect((await server(['user', 'add', 'short'], { input: '1234567' })).code).toBe(2);
    expect((await server(['user', 'add', 'short'], { input: '12345678' })).code).toBe(0);
  });

  it('scopes are said anew, and none is none', async () => {
    await server(['user', 'add', 'sam'], { input: 'long enough' });
    const narrowed = await server(['user', 'scopes', 'sam', 'read:sandbox', 'exec:sandbox']);
    expect(narrowed.json).toMatchObject({ name: 'sam', scopes: ['read:sandbox', 'exec:sandbox'] });
    const wrong = await server(['user', 'scopes', 'sam', 'reed:sandbox']);
    expect([wrong.code, wrong.json.error.hint]).toEqual([2, expect.stringContaining('read:')]);
    const text = await ailsd(['server', 'user', 'scopes', 'sam', '--dir', dir]);
    expect(text).toMatchObject({ code: 0, stdout: 'sam nothing\n' });
    expect((await server(['user', 'scopes', 'nobody', 'read:sandbox'])).code).toBe(3);
  });

  it('rm asks on a terminal, needs --yes without one, and frees the name', async () => {
    const before = await server(['user', 'add', 'rex'], { input: 'long enough' });
    const unasked = await server(['user', 'rm', 'rex']);
    expect([unasked.code, unasked.json.error.hint]).toEqual([2, expect.stringContaining('--yes')]);
    using no = ailsdInPty(['server', 'user', 'rm', 'rex', '--dir', dir]);
    await no.shows('Remove rex and end all logins, for good? [y/N]');
    no.type('\r');
    await no.shows('nothing was removed');
    expect(await no.ended()).toBe(1);
    using stopped = ailsdInPty(['server', 'user', 'rm', 'rex', '--dir', dir]);
    await stopped.shows('[y/N]');
    stopped.type('y\u0003');
    expect(await stopped.ended()).toBe(130);
    using yes = ailsdInPty(['server', 'user', 'rm', 'rex', '--dir', dir]);
    await yes.shows('[y/N]');
    yes.type('yes\r');
    await yes.shows('rex removed');
    expect(await yes.ended()).toBe(0);
    expect((await server(['user', 'rm', 'rex', '--yes'])).code).toBe(3);
    const after = await server(['user', 'add', 'rex'], { input: 'long enough' });
    expect(after.json.id).not.toBe(before.json.id);
    expect((await server(['user', 'rm', 'rex', '--yes'])).json).toMatchObject({ name: 'rex' });
  });

  it('nobody is asked for a password in a folder that holds no server', async () => {
    const words = ['server', 'user', 'passwd', 'ada', '--dir', join(folder.path, 'nowhere')];
    using asked = ailsdInPty(words);
    await asked.shows('holds no server');
    expect(await asked.ended()).toBe(3);
    expect(asked.raw()).not.toContain('Password');
  });

  it('mistakes end with their own codes and say what to do', async () => {
    await server(['user', 'add', 'dora'], { input: 'long enough' });
    const cases: [string[], CliOptions, number, string][] = [
      [['user', 'add', 'dora'], { input: 'long enough' }, 6, 'ALREADY_EXISTS'],
      [['user', 'passwd', 'nobody'], { input: 'long enough' }, 3, 'NOT_FOUND'],
      [['user', 'disable', 'nobody'], {}, 3, 'NOT_FOUND'],
      [['user', 'add', 'eve'], { input: 'short' }, 2, 'USAGE'],
      [['user', 'add', 'eve'], { input: '' }, 2, 'USAGE'],
      [['user', 'add', 'e v e'], { input: 'long enough' }, 2, 'USAGE'],
      [['user', 'add', 'eve', '--scope', 'read'], { input: 'long enough' }, 2, 'USAGE'],
      [['user', 'add', 'eve', '--upstream', 'https://id.example'], {}, 2, 'USAGE'],
    ];
    for (const [words, options, code, word] of cases) {
      const result = await server(words, options);
      expect(result.code, words.join(' ')).toBe(code);
      expect(result.json.error).toMatchObject({ code: word, exit_code: code });
      expect(result.json.error.hint).toMatch(/\w/);
      expect(result.stderr).not.toContain('long enough');
    }
    const near = await server(['user', 'add', 'eve', '--scope', 'reed:sandbox'], { input: 'x' });
    expect(near.json.error.message + near.json.error.hint).toContain('read:sandbox');
  });

  it('on a terminal it asks twice without showing anything, and Ctrl-C ends with 130', async () => {
    using asked = ailsdInPty(['server', 'user', 'add', 'fay', '--dir', dir]);
    await asked.shows('Password for fay, at least 8 characters:');
    asked.type('hidden pax\u007fssword\r');
    await asked.shows('The same again:');
    asked.type('hidden password\r');
    await asked.shows('usr_');
    expect(await asked.ended()).toBe(0);
    expect(asked.raw()).not.toContain('hidden');

    using differs = ailsdInPty(['server', 'user', 'passwd', 'fay', '--dir', dir]);
    await differs.shows('Password for fay, at least 8 characters:');
    differs.type('one password\r');
    await differs.shows('The same again:');
    differs.type('two password\r');
    await differs.shows('differ');
    expect(await differs.ended()).toBe(2);

    using stopped = ailsdInPty(['server', 'user', 'passwd', 'fay', '--dir', dir]);
    await stopped.shows('Password for fay, at least 8 characters:');
    stopped.type('half\u0003');
    expect(await stopped.ended()).toBe(130);

    using silent = ailsdInPty(['server', 'user', 'passwd', 'fay', '--dir', dir, '--no-input']);
    await silent.shows('USAGE');
    expect(await silent.ended()).toBe(2);
  });
});

describe('server client, keys, trust and migrate', () => {
  it('a client is added with its limits, shut out, let in and given another secret', async () => {
    const words = ['client', 'add', 'Nightly build', '--scope', 'exec:sandbox', '--id', 'nightly'];
    const added = await server(words);
    expect(added.json).toMatchObject({
      client_id: 'nightly',
      name: 'Nightly build',
      kind: 'confidential',
      grants: ['client_credentials'],
      scopes: ['exec:sandbox'],
      client_secret: expect.stringMatching(/^ailsd_secret_/),
    });
    expect((await server(words)).json.error.code).toBe('ALREADY_EXISTS');
    expect((await server(['client', 'disable', 'nightly'])).json.disabled_at).toMatch(/Z$/);
    expect((await server(['client', 'enable', 'nightly'])).json.disabled_at).toBe(null);
    const rotated = await server(['client', 'rotate-secret', 'nightly']);
    expect(rotated.json.client_secret).toMatch(/^ailsd_secret_/);
    expect(rotated.json.client_secret).not.toBe(added.json.client_secret);
    const page = await server([
      'client',
      'add',
      'Board',
      '--public',
      '--grant',
      'code',
      '--grant',
      'refresh',
      '--redirect-uri',
      'https://board.example/cb',
      '--scope',
      'read:sandbox',
    ]);
    expect(page.json).toMatchObject({
      kind: 'public',
      redirect_uris: ['https://board.example/cb'],
    });
    expect(page.json).not.toHaveProperty('client_secret');
    for (const [wrong, code] of [
      [['client', 'add', 'X'], 2],
      [['client', 'add', 'X', '--scope', 'read:sandbox', '--grant', 'password'], 2],
      [
        [
          'client',
          'add',
          'X',
          '--scope',
          'read:sandbox',
          '--public',
          '--grant',
          'client-credentials',
        ],
        2,
      ],
      [['client', 'add', 'X', '--scope', 'read:sandbox', '--grant', 'code'], 2],
      [
        [
          'client',
          'add',
          'X',
          '--scope',
          'read:sandbox',
          '--grant',
          'code',
          '--redirect-uri',
          'javascript:alert(1)',
        ],
        2,
      ],
      [
        [
          'client',
          'add',
          'X',
          '--scope',
          'read:sandbox',
          '--grant',
          'code',
          '--redirect-uri',
          'http://evil.example/',
        ],
        2,
      ],
      [['client', 'rotate-secret', 'nobody'], 3],
      [['client', 'rotate-secret', 'ailsd-cli'], 2],
    ] as const)
      expect((await server(wrong)).code, wrong.join(' ')).toBe(code);
  });

  it('keys are renewed and the one before is still listed, until nothing it signed can live', async () => {
    const before = (await server(['keys', 'list'])).json.items;
    const rotated = await server(['keys', 'rotate']);
    expect(rotated.json.items).toMatchObject([
      { kid: rotated.json.kid, state: 'current', retired_at: null },
      { kid: before[0].kid, state: 'retired' },
    ]);
    const [, old] = rotated.json.items;
    const lifeMs = Date.parse(old.published_until) - Date.parse(old.retired_at);
    expect(lifeMs).toBeGreaterThanOrEqual(15 * 60_000 + 30_000);
    expect(rotated.stdout).not.toMatch(/"(d|p|q|n)":/);
  });

  it('trust is added by claims, listed and removed', async () => {
    const words = [
      'trust',
      'add',
      '--issuer',
      'https://ci.example',
      '--audience',
      'https://ailsd.example',
      '--subject',
      'ci-app',
      '--scope',
      'exec:sandbox',
    ];
    expect((await server(words)).json.error).toMatchObject({ code: 'USAGE' });
    const added = await server([
      ...words,
      '--claim',
      'repository=acme/app',
      '--claim',
      'ref=refs/heads/main',
    ]);
    expect(added.json).toMatchObject({
      issuer: 'https://ci.example',
      claims: { repository: 'acme/app', ref: 'refs/heads/main' },
      subject: 'ci-app',
      tenant: 'default',
      scopes: ['exec:sandbox'],
    });
    expect((await server(['trust', 'list'])).json.items).toHaveLength(1);
    expect((await server(['trust', 'rm', added.json.id])).code).toBe(0);
    expect((await server(['trust', 'rm', added.json.id])).code).toBe(3);
    expect((await server(['trust', 'list'])).json.items).toEqual([]);
  });

  it('migrate has nothing to do after init, and says so', async () => {
    expect((await server(['migrate', '--check'])).json).toEqual({ pending: [], applied: [] });
    expect((await ailsd(['server', 'migrate', '--dir', dir])).stdout).toContain('up to date');
  });

  it('a configuration others could change is not believed', async () => {
    const other = temporaryFolder();
    using _ = other;
    writeFileSync(join(other.path, 'server.json'), '{}', { mode: 0o666 });
    const path = join(other.path, 'server.json');
    const { chmodSync } = await import('node:fs');
    chmodSync(path, 0o666);
    const result = await ailsd(['server', 'user', 'list', '--dir', other.path]);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('CONFIG_INVALID');
  });
});

describe('server start', () => {
  it('prints one JSON line when it is ready, logs to stderr, and ends with its child on SIGTERM', async () => {
    const child = spawn(
      process.execPath,
      [BIN, 'server', 'start', '--dir', dir, '--listen', '127.0.0.1:0', '--json'],
      {
        env: cleanEnvironment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk));
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await eventually(
      () => out.includes('\n'),
      () => err,
    );
    const { url, pid } = JSON.parse(out);
    expect(out.trimEnd().split('\n')).toHaveLength(1);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await eventually(() => err.includes('"getHealth"'));
    // The first client, that says nothing of scopes, may do all that its row allows.
    const env = {
      AILSD_URL: url,
      AILSD_CLIENT_ID: made.client_id,
      AILSD_CLIENT_SECRET: made.client_secret,
    };
    const asked = await ailsd(['whoami', '--json'], { env });
    expect(JSON.parse(asked.stdout).scopes).toEqual(made.scopes);
    child.kill('SIGTERM');
    expect(await ended).toBe(143);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    for (const line of err.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it('ends with 0 when the server itself is told to end, and the server ends when this program is killed', async () => {
    const begin = (): {
      ended: Promise<number | null>;
      ready: Promise<{ pid: number }>;
      kill(): void;
    } => {
      const child = spawn(
        process.execPath,
        [BIN, 'server', 'start', '--dir', dir, '--listen', '127.0.0.1:0', '--json'],
        {
          env: cleanEnvironment(),
          stdio: ['ignore', 'pipe', 'ignore'],
        },
      );
      return {
        ended: new Promise((resolve) => child.on('close', resolve)),
        ready: new Promise((resolve) =>
          child.stdout.once('data', (line: Buffer) => resolve(JSON.parse(String(line)))),
        ),
        kill: () => child.kill('SIGKILL'),
      };
    };
    const first = begin();
    process.kill((await first.ready).pid, 'SIGTERM');
    expect(await first.ended).toBe(0);
    const second = begin();
    const { pid } = await second.ready;
    second.kill();
    await eventually(() => {
      try {
        process.kill(pid, 0);
        return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
      } catch {
        return true;
      }
    });
  });

  it('a server that cannot start is an error like any other, in the form that was asked for', async () => {
    const start = (...words: string[]) => ailsd(['server', 'start', ...words]);
    const text = await start('--dir', dir, '--listen', 'nowhere');
    expect(text).toMatchObject({ code: 2, stdout: '' });
    expect(text.stderr).toMatch(/^ailsd: CONFIG_INVALID: .*listen/);
    const json = await start('--dir', join(folder.path, 'none'), '--json');
    expect(json.code).toBe(3);
    expect(JSON.parse(json.stderr).error).toMatchObject({ code: 'NOT_FOUND', exit_code: 3 });
    const open = await start('--dir', dir, '--listen', '0.0.0.0:0');
    expect(open.stderr).toMatch(/CONFIG_INVALID: .*URL\n.*--url/);
  });
});
