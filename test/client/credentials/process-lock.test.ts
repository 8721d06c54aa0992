import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ManualClock, systemClock } from '../../../src/base/clock.js';
import {
  acquireLock,
  type LockOptions,
  STALE_MS,
  withLock,
} from '../../../src/client/credentials/process-lock.js';
import { withRefreshLock } from '../../../src/client/credentials/refresh-lock.js';
import { runProgram, temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { makeCredential } from './support/credentials.js';
import { type BuiltProgram, buildProgram, programFile } from './support/program.js';

let program: BuiltProgram;
beforeAll(async () => {
  program = await buildProgram(programFile('lock-user'));
});
afterAll(() => program[Symbol.dispose]());

describe('a lock between processes', () => {
  it('lets one of 50 in at a time, and leaves nothing behind', async () => {
    const { folder } = lockIn();
    const file = join(folder, 'count');
    writeFileSync(file, '0');
    const runs = Array.from({ length: 50 }, () =>
      runProgram(process.execPath, [program.path, folder, 'count', file, '2']),
    );
    const results = await Promise.all(runs);
    expect(results.filter(({ code }) => code !== 0)).toEqual([]);
    expect(readFileSync(file, 'utf8')).toBe('100');
    expect(readdirSync(folder)).toEqual(['count']);
  }, 60_000);

  it('is taken over at once from a process that was killed, by one of many that wait', async () => {
    const lock = lockIn();
    const file = join(lock.folder, 'count');
    writeFileSync(file, '0');
    for (let round = 1; round <= 3; round += 1) {
      const holder = await startHolder(lock.folder);
      const runs = Array.from({ length: 10 }, () =>
        runProgram(process.execPath, [program.path, lock.folder, 'count', file]),
      );
      // They wait: each has its own folder beside the lock.
      await eventually(() => readdirSync(lock.folder).length === 12);
      const begin = performance.now();
      holder.kill('SIGKILL');
      const results = await Promise.all(runs);
      expect(performance.now() - begin).toBeLessThan(5_000);
      expect(results.filter(({ code }) => code !== 0)).toEqual([]);
      expect(readFileSync(file, 'utf8')).toBe(String(round * 10));
    }
    expect(readdirSync(lock.folder)).toEqual(['count']);
  });

  it('is not taken from a process that is merely stopped', async () => {
    const lock = lockIn();
    const holder = await startHolder(lock.folder);
    holder.kill('SIGSTOP');
    const begin = performance.now();
    const waiting = acquireLock({ ...lock, waitMs: STALE_MS + 500 });
    await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(performance.now() - begin).toBeLessThan(STALE_MS + 2_000);
    expect(readdirSync(lock.folder)).toEqual(['test.lock']);
  });

  it('of somebody who cannot be asked for is taken over when there is no beat, and not before', async () => {
    const clock = new ManualClock();
    const lock = { ...lockIn(), clock };
    const foreign = join(lock.folder, 'test.lock', '7_1_another-boot-1_x');
    mkdirSync(join(foreign, '..'), { recursive: true });
    writeFileSync(foreign, '');
    let held = false;
    const waiting = acquireLock({ ...lock, waitMs: 60_000 }).then((one) => {
      held = true;
      return one;
    });
    for (let beat = 1; beat <= 8; beat += 1) {
      await clock.advance(STALE_MS / 2);
      utimesSync(foreign, beat, beat);
    }
    expect(held).toBe(false);
    await clock.advance(STALE_MS + 100);
    expect(held).toBe(true);
    expect(existsSync(foreign)).toBe(false);
    (await waiting)[Symbol.dispose]();
    expect(readdirSync(lock.folder)).toEqual([]);
  });

  it('beats while it is held, and knows when it was taken', async () => {
    const lock = lockIn();
    using held = await acquireLock(lock);
    const [name = ''] = readdirSync(join(lock.folder, 'test.lock'));
    const file = join(lock.folder, 'test.lock', name);
    utimesSync(file, 1, 1);
    const { statSync, unlinkSync } = await import('node:fs');
    await eventually(() => statSync(file).mtimeMs > 1_000_000);
    expect(held.isHeld()).toBe(true);
    unlinkSync(file);
    expect(held.isHeld()).toBe(false);
  });

  it('is waited for no longer than asked, and not at all once called off', async () => {
    const lock = lockIn();
    using _held = await acquireLock(lock);
    await expect(acquireLock({ ...lock, waitMs: 0 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    const caller = new AbortController();
    const waiting = acquireLock({ ...lock, signal: caller.signal });
    waiting.catch(() => undefined);
    await eventually(() => readdirSync(lock.folder).length === 2);
    caller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(readdirSync(lock.folder)).toEqual(['test.lock']);
  });

  it('is given back when the work inside fails', async () => {
    const lock = lockIn();
    const failing = withLock(lock, () => Promise.reject(new Error('inside')));
    await expect(failing).rejects.toThrow('inside');
    expect(readdirSync(lock.folder)).toEqual([]);
  });

  it('that cannot be made says so', async () => {
    const { folder } = lockIn();
    writeFileSync(join(folder, 'file'), '');
    const lock = { ...lockIn(), folder: join(folder, 'file') };
    await expect(acquireLock(lock)).rejects.toMatchObject({ code: 'CREDENTIALS_UNWRITABLE' });
  });

  it('for a refresh is one for each login', async () => {
    const { folder } = lockIn();
    const [ada, bob] = ['ada', 'bob'].map((account) => makeCredential({ account }));
    if (ada === undefined || bob === undefined) throw new Error('unreachable');
    const options = { folder, clock: systemClock, waitMs: 0 };
    const inside = await withRefreshLock(ada, options, async () => {
      await expect(withRefreshLock(ada, options, async () => 'both')).rejects.toMatchObject({
        code: 'TIMEOUT',
      });
      return withRefreshLock(bob, options, async () => 'the other');
    });
    expect(inside).toBe('the other');
  });
});

function lockIn(): LockOptions {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return { folder: folder.path, name: 'test', clock: systemClock, waitMs: 30_000 };
}

async function startHolder(folder: string): Promise<ChildProcess> {
  const holder = spawn(process.execPath, [program.path, folder, 'hold'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    if (holder.exitCode !== null || holder.signalCode !== null) return;
    const exited = once(holder, 'exit');
    holder.kill('SIGKILL');
    await exited;
  });
  await once(holder.stdout, 'data');
  return holder;
}
