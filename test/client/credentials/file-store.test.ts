import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { CREDENTIAL_FILE, FileStore } from '../../../src/client/credentials/file-store.js';
import { proves } from '../../requirements.js';
import { type CliResult, runProgram, temporaryFolder } from '../../support/cli.js';
import { isWhole, makeCredential, numberedCredential } from './support/credentials.js';
import { type BuiltProgram, buildProgram, programFile } from './support/program.js';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const KILLS = 200;
const LANES = 4;
/** From the first write on; a write takes a few milliseconds. */
const LONGEST_LIFE_MS = 25;

let user: BuiltProgram;
let churn: BuiltProgram;
beforeAll(async () => {
  [user, churn] = await Promise.all(
    ['store-user', 'store-churn'].map((name) => buildProgram(programFile(name))),
  ).then(([one, two]) => {
    if (one === undefined || two === undefined) throw new Error('unreachable');
    return [one, two];
  });
});
afterAll(() => {
  user[Symbol.dispose]();
  churn[Symbol.dispose]();
});

describe('the credential file', () => {
  it('and its folder are ours alone, whatever the umask', async () => {
    for (const umask of ['000', '077', '277']) {
      const folder = freshFolder();
      const line = `umask ${umask}; exec "$0" "$@"`;
      const { code } = await runProgram('/bin/sh', [
        '-c',
        line,
        process.execPath,
        user.path,
        'set',
        folder,
      ]);
      expect(code).toBe(0);
      const modes = [folder, join(folder, CREDENTIAL_FILE)].map(
        (path) => statSync(path).mode & 0o777,
      );
      expect(modes).toEqual([0o700, 0o600]);
    }
  });

  it(proves(
    'is the old or the new, whole and private, after kill -9 at 200 random points',
    'OA-09',
  ), async () => {
    const seed = Number(process.env['AILSD_SEED'] ?? Date.now() % 2 ** 31);
    const random = createRandom(seed);
    const outcomes = { absent: 0, whole: 0, temporaries: 0 };
    const folders = Array.from({ length: LANES }, freshFolder);
    const killMany = async (folder: string): Promise<void> => {
      for (let kill = 0; kill < KILLS / LANES; kill += 1) {
        const child = spawn(process.execPath, [churn.path, folder], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        // Also where another lane fails meanwhile.
        onTestFinished(() => killed(child));
        await once(child.stdout, 'data');
        await systemClock.sleep(random() * LONGEST_LIFE_MS);
        await killed(child);
        await check(folder, outcomes, `seed ${seed}, kill ${kill}`);
      }
    };
    await Promise.all(folders.map(killMany));
    // Otherwise the points were all alike.
    expect(outcomes.whole, `seed ${seed}`).toBeGreaterThan(20);
    for (const folder of folders) {
      const { code, stdout } = await use('set', folder);
      expect([code, stdout]).toEqual([0, 'access-1']);
      expect(readdirSync(folder)).toEqual([CREDENTIAL_FILE]);
    }
  }, 120_000);

  it(
    proves(
      'is refused, and what it leads to untouched, where somebody else could have had a hand in it',
      'OA-09',
    ),
    async () => {
      const traps: Record<string, (path: string, folder: string) => string> = {
        'open to the group': (path) => {
          chmodSync(path, 0o640);
          return path;
        },
        'open to the world': (path) => {
          chmodSync(path, 0o644);
          return path;
        },
        'a link to elsewhere': (path, folder) => {
          const target = join(freshFolder(), 'target');
          mkdirSync(join(target, '..'), { mode: 0o700 });
          writeFileSync(target, readFileSync(path), { mode: 0o600 });
          execFileSync('ln', ['-sfn', target, join(folder, CREDENTIAL_FILE)]);
          return target;
        },
        'a link to nowhere': (path) => {
          execFileSync('ln', ['-sfn', '/nonexistent/target', path]);
          return '/nonexistent/target';
        },
        'a pipe': (path) => {
          execFileSync('sh', ['-c', 'rm "$1" && mkfifo -m 600 "$1"', 'sh', path]);
          return '/nonexistent/target';
        },
        'in an open folder': (path, folder) => {
          chmodSync(folder, 0o777);
          return path;
        },
        'in a folder that others may look into': (path, folder) => {
          chmodSync(folder, 0o750);
          return path;
        },
      };
      if (isRoot) {
        traps['of another user'] = (path) => {
          chownSync(path, NOBODY, NOBODY);
          return path;
        };
        traps['in a folder of another user'] = (path, folder) => {
          chownSync(folder, NOBODY, NOBODY);
          return path;
        };
      }
      for (const [name, set] of Object.entries(traps)) {
        const folder = await loggedIn();
        const target = set(join(folder, CREDENTIAL_FILE), folder);
        const before = picture(target);
        for (const what of ['get', 'set', 'delete']) {
          const result = await use(what, folder);
          expect(told(result), `${name}: ${what}`).toEqual([4, 'CREDENTIALS_UNSAFE']);
          expect(result.stdout + result.stderr).not.toMatch(/access-1|\n {4}at /);
        }
        expect(picture(target), name).toEqual(before);
        expect(readdirSync(folder).filter((entry) => entry !== CREDENTIAL_FILE)).toEqual([]);
      }
    },
  );

  it.runIf(isRoot)('of ours is refused to root, and root’s to us', async () => {
    const folder = await loggedIn();
    chmodSync(join(folder, '..'), 0o755);
    const open = await runProgram(process.execPath, [user.path, 'get', folder], { uid: NOBODY });
    expect(told(open)[0]).toBe(4);
    expect(open.stdout).toBe('');
  });

  it.runIf(isRoot)(
    proves('keeps its old content on a full disk, and the error says what to do', 'OA-09'),
    async () => {
      const folder = freshFolder();
      mkdirSync(folder, { mode: 0o700 });
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=700', 'tmpfs', folder]);
      onTestFinished(() => {
        execFileSync('umount', [folder]);
      });
      expect(told(await use('set', folder))).toEqual([0, undefined]);
      const before = picture(join(folder, CREDENTIAL_FILE));
      execFileSync('sh', [
        '-c',
        'cat /dev/zero > "$1" 2>/dev/null || true',
        'sh',
        join(folder, 'filler'),
      ]);
      expect(told(await use('set-long', folder))).toEqual([4, 'CREDENTIALS_UNWRITABLE']);
      expect(picture(join(folder, CREDENTIAL_FILE))).toEqual(before);
      expect((await use('get', folder)).stdout).toBe('access-1');
      expect(readdirSync(folder).sort()).toEqual([CREDENTIAL_FILE, 'filler']);
      // Leaving works all the same: it needs no room.
      expect((await use('delete', folder)).stdout).toBe('none');
    },
  );

  it.runIf(isRoot)(
    'that cannot be written says so: a read-only folder, and one that cannot be made',
    async () => {
      const folder = freshFolder();
      mkdirSync(folder, { mode: 0o500 });
      chownSync(folder, NOBODY, NOBODY);
      chmodSync(join(folder, '..'), 0o755);
      for (const path of [folder, join(folder, 'deeper')]) {
        const result = await runProgram(process.execPath, [user.path, 'set', path], {
          uid: NOBODY,
        });
        expect(told(result)).toEqual([4, 'CREDENTIALS_UNWRITABLE']);
      }
    },
  );

  it(
    proves('that is not whole JSON is no login, and a new login takes its place', 'OA-09'),
    async () => {
      const whole = readFileSync(join(await loggedIn(), CREDENTIAL_FILE), 'utf8');
      const texts = [
        '',
        '{',
        whole.slice(0, -20),
        'null',
        '[]',
        '{"version":0}',
        whole.replace('"access-1"', '7'),
        '\0\0',
      ];
      for (const text of texts) {
        const folder = await loggedIn();
        writeFileSync(join(folder, CREDENTIAL_FILE), text);
        const result = await use('get', folder);
        expect(told(result), text).toEqual([4, 'NOT_LOGGED_IN']);
        expect(result.stderr).not.toMatch(/access-1|refresh-1|\n {4}at /);
        expect(told(await use('set', folder))).toEqual([0, undefined]);
      }
    },
  );

  it('of a newer release is neither read nor replaced', async () => {
    const folder = await loggedIn();
    const text = '{"version":2,"something":"new"}';
    writeFileSync(join(folder, CREDENTIAL_FILE), text);
    expect(told(await use('get', folder))).toEqual([4, 'NOT_LOGGED_IN']);
    expect(told(await use('set', folder))).toEqual([4, 'CREDENTIALS_UNWRITABLE']);
    expect(readFileSync(join(folder, CREDENTIAL_FILE), 'utf8')).toBe(text);
  });

  it('may be in a folder that our own link leads to', async () => {
    const folder = await loggedIn();
    const link = `${folder}-link`;
    symlinkSync(folder, link);
    expect((await use('get', link)).stdout).toBe('access-1');
  });

  it('loses no login when many processes write at once', async () => {
    const folder = freshFolder();
    const accounts = Array.from({ length: 16 }, (_, index) => `usr_${index}`);
    const runs = accounts.map((account) =>
      runProgram(process.execPath, [user.path, 'set', folder, account]),
    );
    expect((await Promise.all(runs)).map(({ code }) => code)).toEqual(accounts.map(() => 0));
    const kept = (await storeIn(folder).list()).map((key) => key.account);
    expect(kept.sort()).toEqual(accounts.sort());
    expect(readdirSync(folder)).toEqual([CREDENTIAL_FILE]);
  });

  it('holds so many logins and no more, and none is lost by trying', async () => {
    const store = storeIn(freshFolder());
    for (let index = 0; index < 64; index += 1)
      await store.set(makeCredential({ account: `usr_${index}` }));
    await expect(store.set(makeCredential({ account: 'one more' }))).rejects.toMatchObject({
      code: 'CREDENTIALS_UNWRITABLE',
    });
    await store.set(makeCredential({ account: 'usr_0', name: 'renewed' }));
    expect((await store.list()).length).toBe(64);
    expect(await store.delete(makeCredential({ account: 'nobody' }))).toBe(false);
  });
});

function storeIn(path: string): FileStore {
  return new FileStore({ path, userId: process.getuid?.() }, systemClock);
}

/** A path inside a folder of the test's own; nothing is there yet. */
function freshFolder(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return join(folder.path, 'config');
}

async function loggedIn(): Promise<string> {
  const folder = freshFolder();
  await storeIn(folder).set(makeCredential());
  return folder;
}

function use(what: string, folder: string): Promise<CliResult> {
  return runProgram(process.execPath, [user.path, what, folder]);
}

function told({ code, stderr }: CliResult): [number | null, string | undefined] {
  return [code, /^ailsd: ([A-Z_]+):/.exec(stderr)?.[1]];
}

/** Everything about a file that somebody could have changed. */
function picture(path: string): unknown {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  return [
    stat.ino,
    stat.mode,
    stat.uid,
    stat.mtimeMs,
    stat.isFile() ? readFileSync(path, 'utf8') : '',
  ];
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function check(
  folder: string,
  outcomes: { absent: number; whole: number; temporaries: number },
  when: string,
): Promise<void> {
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return;
  expect(statSync(folder).mode & 0o777, when).toBe(0o700);
  for (const entry of readdirSync(folder)) {
    const stat = statSync(join(folder, entry));
    expect(stat.mode & 0o777, `${entry}, ${when}`).toBe(stat.isDirectory() ? 0o700 : 0o600);
    if (entry.endsWith('.tmp')) outcomes.temporaries += 1;
  }
  const credential = await storeIn(folder).current(numberedCredential(0).issuer);
  outcomes[credential === undefined ? 'absent' : 'whole'] += 1;
  if (credential !== undefined) expect(isWhole(credential), when).toBe(true);
}

/** Mulberry32: small, and the same everywhere for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
