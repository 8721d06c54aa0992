import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd, BIN, type CliOptions, runProgram, temporaryFolder } from '../support/cli.js';

/** A home with settings and a project folder inside it. */
function world(config: unknown, project?: unknown) {
  const folder = temporaryFolder();
  const settings = join(folder.path, 'settings');
  const cwd = join(folder.path, 'project', 'deep', 'inside');
  mkdirSync(settings);
  mkdirSync(cwd, { recursive: true });
  const file = join(settings, 'config.json');
  if (config !== undefined)
    writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  const projectFile = join(folder.path, 'project', '.ailsd.json');
  if (project !== undefined)
    writeFileSync(projectFile, typeof project === 'string' ? project : JSON.stringify(project));
  const env = { AILSD_CONFIG_DIR: settings };
  const run = (args: string[], options: CliOptions = {}) =>
    ailsd(args, { cwd, ...options, env: { ...env, ...options.env } });
  return {
    file,
    projectFile,
    settings,
    run,
    path: folder.path,
    [Symbol.dispose]: folder[Symbol.dispose],
  };
}

async function value(run: ReturnType<typeof world>['run'], args: string[], env = {}) {
  const { code, stdout, stderr } = await run(['config', 'get', ...args, '--json'], { env });
  if (code !== 0) throw new Error(stderr);
  const { value, source, source_name } = JSON.parse(stdout);
  return [value, source, source_name];
}

const TWO = { profiles: { default: { thread: 'of-profile' }, work: { thread: 'of-work' } } };

describe('settings', () => {
  it(
    proves(
      'option wins over variable, that over project, that over profile, that over default',
      'CM-01',
    ),
    async () => {
      using all = world(
        { profiles: { default: { url: 'https://profile.example' } } },
        { thread: 'of-project' },
      );
      const url = ['url', '--url', 'https://option.example'];
      const variable = { AILSD_URL: 'https://variable.example', AILSD_THREAD: 'of-variable' };
      expect(await value(all.run, url, variable)).toEqual([
        'https://option.example',
        'option',
        '--url',
      ]);
      expect(await value(all.run, ['url'], variable)).toEqual([
        'https://variable.example',
        'variable',
        'AILSD_URL',
      ]);
      expect(await value(all.run, ['url'])).toEqual([
        'https://profile.example',
        'profile',
        'default',
      ]);
      expect(await value(all.run, ['thread'], variable)).toEqual([
        'of-variable',
        'variable',
        'AILSD_THREAD',
      ]);
      expect(await value(all.run, ['thread'])).toEqual(['of-project', 'project', all.projectFile]);
      expect(await value(all.run, ['output'], {})).toEqual(['json', 'option', '--output']);
      expect(await value(all.run, ['credential_store'])).toEqual(['auto', 'default', null]);
    },
  );

  it(
    proves(
      'a profile is chosen by option, variable or the file, and an unknown one is an error',
      'CM-01',
    ),
    async () => {
      using all = world({ profile: 'work', ...TWO });
      expect((await value(all.run, ['thread']))[0]).toBe('of-work');
      expect((await value(all.run, ['thread'], { AILSD_PROFILE: 'default' }))[0]).toBe(
        'of-profile',
      );
      expect(
        (await value(all.run, ['thread', '--profile', 'default'], { AILSD_PROFILE: 'work' }))[0],
      ).toBe('of-profile');
      for (const env of [{ AILSD_PROFILE: 'wrok' }]) {
        const { code, stderr } = await all.run(['config', 'get', 'thread'], { env });
        expect({ code, stderr }).toEqual({
          code: 2,
          stderr: 'ailsd: CONFIG_INVALID: there is no profile wrok\n  hint: did you mean work?\n',
        });
      }
    },
  );

  it('a global option counts before and after the command, and the nearest wins', async () => {
    using all = world(TWO);
    for (const args of [
      ['--profile', 'work', 'config', 'get', 'thread'],
      ['config', '--profile', 'work', 'get', 'thread'],
      ['config', 'get', 'thread', '--profile', 'work'],
      ['--profile', 'default', 'config', 'get', 'thread', '--profile', 'work'],
    ]) {
      expect((await all.run(args)).stdout).toBe('of-work\n');
    }
  });

  it('a variable that is empty counts as not set, and a switch that says no is off', async () => {
    using all = world(TWO);
    expect((await value(all.run, ['thread'], { AILSD_THREAD: '' }))[0]).toBe('of-profile');
    expect((await all.run(['version'], { env: { AILSD_JSON: '0' } })).stdout).toMatch(/^ailsd /);
    expect(
      JSON.parse((await all.run(['version'], { env: { AILSD_JSON: 'yes' } })).stdout),
    ).toBeTypeOf('object');
  });

  it(
    proves('a repository can choose among known servers but cannot introduce one', 'CM-16'),
    async () => {
      const evil = {
        url: 'https://evil.example',
        credential_store: 'memory',
        output: 'json',
        profile: 'x',
      };
      using all = world({ profiles: { default: { url: 'https://good.example' } } }, evil);
      const refused = await all.run(['config', 'get', 'url']);
      expect(refused.code).toBe(2);
      expect(refused.stdout).toBe('');
      expect(refused.stderr).toContain('names a server you have not used: https://evil.example');
      // Nothing else of it counts either.
      expect((await value(all.run, ['credential_store']))[0]).toBe('auto');
      expect((await all.run(['version'])).stdout).toMatch(/^ailsd /);
      // A server the user has named in some profile may be chosen.
      writeFileSync(all.projectFile, JSON.stringify({ url: 'https://second.example/' }));
      await all.run(['config', 'set', 'url', 'https://second.example', '--profile', 'second']);
      expect(await value(all.run, ['url'])).toEqual([
        'https://second.example',
        'project',
        all.projectFile,
      ]);
    },
  );

  it('a project file of another user is passed over and told of', async (context) => {
    if (process.getuid?.() !== 0) context.skip('skipped: no root to make files of another user');
    using all = world(undefined, { thread: 'planted' });
    chownSync(all.projectFile, 1234, 1234);
    chmodSync(all.path, 0o755);
    const { code, stderr } = await all.run(['config', 'get', 'thread'], { uid: 4321 });
    expect(code).toBe(3);
    expect(stderr).toContain(`${all.projectFile} is ignored: it belongs to uid 1234`);
  });

  it(
    proves('set, get, list and unset agree, and say what they did on stderr only', 'CM-14'),
    async () => {
      using all = world(undefined);
      const set = await all.run(['config', 'set', 'url', 'https://one.example/']);
      expect(set).toMatchObject({
        code: 0,
        stdout: '',
        stderr: 'ailsd: url is https://one.example in profile default\n',
      });
      expect((await all.run(['config', 'get', 'url'])).stdout).toBe('https://one.example\n');
      expect((await all.run(['config', 'set', 'thread', 't', '--quiet'])).stderr).toBe('');
      const list = JSON.parse((await all.run(['config', 'list', '--json'])).stdout);
      expect(list.next_cursor).toBeNull();
      expect(
        list.items.map((item: { key: string; value: string }) => [item.key, item.value]),
      ).toEqual([
        ['profile', 'default'],
        ['url', 'https://one.example'],
        ['thread', 't'],
        ['output', 'json'],
        ['credential_store', 'auto'],
        ['ca_file', null],
      ]);
      const lines = (await all.run(['config', 'list', '-o', 'jsonl'])).stdout.trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line).key)).toEqual(
        list.items.map((item: { key: string }) => item.key),
      );
      expect((await all.run(['config', 'unset', 'url'])).code).toBe(0);
      expect((await all.run(['config', 'get', 'url'])).code).toBe(3);
      expect((await all.run(['config', 'path'])).stdout).toBe(`${all.file}\n`);
    },
  );

  it(
    proves(
      'the settings file is private, replaced whole, and keeps what it does not know',
      'CM-14',
    ),
    async () => {
      using all = world({ future: [1], profiles: { default: { newer: true }, other: { x: 1 } } });
      await all.run(['config', 'set', 'credential-store', 'file']);
      expect(JSON.parse(readFileSync(all.file, 'utf8'))).toEqual({
        future: [1],
        profiles: { default: { newer: true, credential_store: 'file' }, other: { x: 1 } },
      });
      expect(statSync(all.file).mode & 0o777).toBe(0o600);
      expect(readdirSync(all.settings)).toEqual(['config.json']);
    },
  );

  it('a linked settings file stays a link', async () => {
    using all = world(undefined);
    const target = join(all.path, 'dotfiles.json');
    writeFileSync(target, '{}');
    symlinkSync(target, all.file);
    expect((await all.run(['config', 'set', 'thread', 'x'])).code).toBe(0);
    expect(lstatSync(all.file).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(target, 'utf8'))).toEqual({
      profiles: { default: { thread: 'x' } },
    });
  });

  it('values that cannot be used are refused, from every source, by name', async () => {
    using all = world({ profiles: { default: { url: 'ftp://x' } } });
    const bad = [
      'http://far.example',
      'https://user:pw@x.example',
      'nonsense',
      'https://x.example/?q',
      'https://x.example/?',
      'https://x.example/#',
      'http://evil.localhost',
      `https://x.example${'/'.repeat(65_000)}x`,
      'javascript:1',
    ];
    for (const url of bad) {
      const { code, stderr } = await all.run(['config', 'set', 'url', url]);
      expect({ url, code }).toEqual({ url, code: 2 });
      expect(stderr).toContain('expected an https:// address');
    }
    const cases: [Record<string, string>, string][] = [
      [{}, 'profile default in'],
      [{ AILSD_URL: 'ftp://y' }, 'AILSD_URL'],
    ];
    for (const [env, named] of cases) {
      const { code, stderr } = await all.run(['config', 'get', 'url'], { env });
      expect(code).toBe(2);
      expect(stderr).toContain(`url from ${named}`);
    }
    for (const url of ['http://localhost:1234', 'http://127.0.0.1:1', 'http://[::1]:1/base']) {
      expect((await all.run(['config', 'get', 'url', '--url', url])).stdout).toBe(`${url}\n`);
    }
  });

  it(
    proves('a malformed, unreadable or odd settings file is one clear error and exit 2', 'CM-11'),
    async () => {
      for (const text of [
        '{',
        '[]',
        '"x"',
        '{"profiles": []}',
        '{"profiles": {"default": 7}}',
        '\u0000',
      ]) {
        using all = world(text);
        for (const args of [
          ['config', 'get', 'thread'],
          ['config', 'set', 'thread', 'x'],
        ]) {
          const { code, stdout, stderr } = await all.run(args);
          expect({ text, args, code, stdout }).toEqual({ text, args, code: 2, stdout: '' });
          expect(stderr).toMatch(
            /^ailsd: CONFIG_INVALID: .*config\.json cannot be used: .+\n {2}hint: .+\n$/,
          );
        }
        // What was there is still there, and what needs no settings still works.
        expect(readFileSync(all.file, 'utf8')).toBe(text);
        expect((await all.run(['version'])).code).toBe(0);
        expect((await all.run(['config', 'path'])).code).toBe(0);
      }
    },
  );

  it('a settings file that is a folder, a device or huge is refused', async () => {
    using all = world(undefined);
    mkdirSync(all.file);
    expect((await all.run(['config', 'get', 'thread'])).stderr).toContain('it is not a file');
    using big = world(`{"x": "${'y'.repeat(70_000)}"}`);
    expect((await big.run(['config', 'get', 'thread'])).stderr).toContain(
      'larger than 65536 bytes',
    );
    using endless = world(undefined);
    symlinkSync('/dev/zero', endless.file);
    expect((await endless.run(['config', 'get', 'thread'])).stderr).toContain('it is not a file');
  });

  it(
    proves(
      'files without permission are named; a read-only home matters only when writing',
      'CM-11',
    ),
    async (context) => {
      if (process.getuid?.() !== 0) context.skip('skipped: no root to become somebody else');
      using all = world({ profiles: {} });
      chmodSync(all.path, 0o755);
      chmodSync(all.file, 0o600);
      const unreadable = await all.run(['config', 'get', 'thread'], { uid: 4321 });
      expect(unreadable.code).toBe(2);
      expect(unreadable.stderr).toContain('config.json cannot be used: EACCES');
      chmodSync(all.file, 0o644);
      const readOnly = await all.run(['config', 'set', 'thread', 'x'], { uid: 4321 });
      expect(readOnly.code).toBe(2);
      expect(readOnly.stderr).toContain('config.json cannot be written: EACCES');
      expect((await all.run(['config', 'get', 'output'], { uid: 4321 })).stdout).toBe('text\n');
      expect(readdirSync(all.settings)).toEqual(['config.json']);
    },
  );

  it(proves('without any home everything works that needs none', 'CM-11'), async (context) => {
    if (process.getuid?.() !== 0) context.skip('skipped: no root to become a user without a home');
    const env = { HOME: undefined };
    expect((await ailsd(['version'], { env, uid: 4321 })).code).toBe(0);
    expect((await ailsd(['config', 'list'], { env, uid: 4321 })).code).toBe(0);
    for (const args of [
      ['config', 'set', 'thread', 'x'],
      ['config', 'path'],
    ]) {
      const { code, stderr } = await ailsd(args, { env, uid: 4321 });
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr:
          'ailsd: CONFIG_INVALID: there is no home folder to keep settings in\n  hint: set AILSD_CONFIG_DIR to a folder of your own\n',
      });
    }
  });

  it(proves(
    'fifty processes that set something each keep all fifty, and leave nothing else',
    'CM-14',
  ), async () => {
    using all = world(undefined);
    const names = Array.from({ length: 50 }, (_, index) => `p${index}`);
    const results = await Promise.all(
      names.map((name) => all.run(['config', 'set', 'thread', `t-${name}`, '--profile', name])),
    );
    expect(results.map(({ code }) => code)).toEqual(names.map(() => 0));
    const { profiles } = JSON.parse(readFileSync(all.file, 'utf8'));
    expect(Object.keys(profiles).sort()).toEqual([...names].sort());
    expect(readdirSync(all.settings)).toEqual(['config.json']);
  }, 60_000);

  it(
    proves('a disk that fills up while writing costs nothing that was there', 'CM-14'),
    async () => {
      const before = {
        profiles: Object.fromEntries(
          Array.from({ length: 120 }, (_, i) => [`p${i}`, { thread: 'x'.repeat(20) }]),
        ),
      };
      using all = world(before);
      // A limit on the size of files, as a full disk: the write ends short, then fails.
      const script = 'trap "" XFSZ; ulimit -f 4; exec "$0" "$1" config set thread new';
      const { code, stderr } = await runProgram('bash', ['-c', script, process.execPath, BIN], {
        env: { AILSD_CONFIG_DIR: all.settings },
      });
      expect(code).toBe(2);
      expect(stderr).toMatch(/cannot be written: EFBIG/);
      expect(JSON.parse(readFileSync(all.file, 'utf8'))).toEqual(before);
      expect(readdirSync(all.settings)).toEqual(['config.json']);
    },
  );

  it('what a killed writer left is removed by the next', async () => {
    using all = world({ profiles: {} });
    writeFileSync(join(all.settings, '.config.json.1.tmp'), '{');
    expect((await all.run(['config', 'set', 'thread', 'x'])).code).toBe(0);
    expect(readdirSync(all.settings)).toEqual(['config.json']);
  });

  it(
    proves('a pipe in place of a settings or project file is an error, not a wait', 'CM-11'),
    async () => {
      using all = world(undefined);
      execFileSync('mkfifo', [all.file]);
      expect(await all.run(['config', 'list'])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('config.json cannot be used: it is not a file'),
      });
      using other = world(undefined);
      execFileSync('mkfifo', [other.projectFile]);
      expect(await other.run(['config', 'list'])).toMatchObject({ code: 2 });
    },
  );

  it('a project file of another user is passed over unopened, whatever it is', async (context) => {
    if (process.getuid?.() !== 0) context.skip('skipped: no root to make files of another user');
    const traps: ((path: string) => void)[] = [
      (path) => execFileSync('mkfifo', [path]),
      (path) => mkdirSync(path),
      (path) => writeFileSync(path, '{', { mode: 0 }),
    ];
    for (const trap of traps) {
      using all = world(undefined);
      chmodSync(all.path, 0o755);
      trap(all.projectFile);
      chownSync(all.projectFile, 1234, 1234);
      const { code, stderr } = await all.run(['config', 'list'], {
        uid: 4321,
        env: { AILSD_CONFIG_DIR: '/nonexistent' },
      });
      expect(code).toBe(0);
      expect(stderr).toContain('is ignored: it belongs to uid 1234');
    }
  });

  it(
    proves('the settings file of another user is refused, also by root', 'CM-16'),
    async (context) => {
      if (process.getuid?.() !== 0) context.skip('skipped: no root to make files of another user');
      using all = world({ profiles: { default: { url: 'https://evil.example' } } });
      chownSync(all.file, 1234, 1234);
      const { code, stdout, stderr } = await all.run(['config', 'get', 'url']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('config.json belongs to another user (uid 1234)');
    },
  );

  it('values of the wrong kind are refused, not turned into text', async () => {
    for (const thread of [null, true, 123, ['abc'], {}, { toString: null, valueOf: null }]) {
      using ofProfile = world({ profiles: { default: { thread } } });
      using ofProject = world(undefined, { thread });
      for (const { run } of [ofProfile, ofProject]) {
        const { code, stderr } = await run(['config', 'get', 'thread']);
        expect({ thread, code, stderr }).toMatchObject({
          code: 2,
          stderr: expect.stringContaining('expected a text'),
        });
      }
    }
    using profile = world({ profile: 5 });
    expect((await profile.run(['config', 'list'])).stderr).toContain(
      'profile is not the name of one',
    );
    using missing = world({ profile: 'nosuch' });
    expect((await missing.run(['config', 'get', 'thread'])).stderr).toContain(
      'there is no profile nosuch',
    );
  });

  it('names such as __proto__ are names like any other', async () => {
    using all = world(
      '{"__proto__": {"profiles": {"x": {}}}, "profiles": {"constructor": {"thread": "c"}}}',
    );
    expect((await all.run(['config', 'get', 'thread', '--profile', 'constructor'])).stdout).toBe(
      'c\n',
    );
    expect((await all.run(['config', 'get', 'thread', '--profile', 'toString'])).code).toBe(2);
    expect((await all.run(['config', 'get', '__proto__'])).stderr).toContain('there is no setting');
  });

  it('where the folder we were started in is gone, only what needs it fails', async () => {
    using folder = temporaryFolder();
    const inGone = (command: string, env = {}) =>
      runProgram(
        'bash',
        [
          '-c',
          `mkdir "$2/x" && cd "$2/x" && rmdir "$2/x" && "$0" "$1" ${command}`,
          process.execPath,
          BIN,
          folder.path,
        ],
        { env },
      );
    expect(await inGone('config list')).toMatchObject({ code: 0, stderr: '' });
    expect(await inGone('config set thread x', { AILSD_CONFIG_DIR: 'relative' })).toMatchObject({
      code: 2,
    });
    const { stdout } = await inGone('doctor --json');
    expect(JSON.parse(stdout).checks).toContainEqual(
      expect.objectContaining({ name: 'pty', state: 'ok' }),
    );
  });

  it('a home that can never be written to is an error within its time', async () => {
    const { code, stderr } = await ailsd(['config', 'set', 'thread', 'x'], {
      env: { HOME: '/proc' },
    });
    expect(code).toBe(2);
    expect(stderr).toContain('cannot be written');
  });

  it('a password in a URL, and the text of a file that is no JSON, are not repeated', async () => {
    using all = world('root:secret-hash:19000');
    expect((await all.run(['config', 'list'])).stderr).not.toContain('root:');
    using other = world(undefined);
    const { code, stderr } = await other.run([
      'config',
      'set',
      'url',
      'https://user:hunter2@x.example',
    ]);
    expect(code).toBe(2);
    expect(stderr).not.toContain('hunter2');
  });

  it('config profiles lists them, marks the one in use, and an emptied one is gone', async () => {
    using all = world({
      profile: 'work',
      profiles: { work: { thread: 'w' }, home: { thread: 'h' } },
    });
    expect((await all.run(['config', 'profiles'])).stdout).toBe('  default\n* work\n  home\n');
    expect(await value(all.run, ['profile'])).toEqual(['work', 'file', all.file]);
    await all.run(['config', 'unset', 'thread', '--profile', 'home']);
    expect(JSON.parse(readFileSync(all.file, 'utf8')).profiles).toEqual({ work: { thread: 'w' } });
    expect((await all.run(['config', 'unset', 'thread', '--profile', 'typo'])).code).toBe(2);
  });

  it('settings live where the platform keeps them, and a relative XDG folder is ignored', async () => {
    const path = async (env: Record<string, string>) =>
      (await ailsd(['config', 'path'], { env })).stdout.trim();
    expect(await path({ HOME: '/home/x' })).toBe('/home/x/.config/ailsd/config.json');
    expect(await path({ HOME: '/home/x', XDG_CONFIG_HOME: '/xdg' })).toBe('/xdg/ailsd/config.json');
    expect(await path({ HOME: '/home/x', XDG_CONFIG_HOME: 'xdg' })).toBe(
      '/home/x/.config/ailsd/config.json',
    );
    expect(await path({ HOME: '/home/x', AILSD_CONFIG_DIR: '/own' })).toBe('/own/config.json');
  });
});
