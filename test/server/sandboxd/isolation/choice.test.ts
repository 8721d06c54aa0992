import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.js';
import { createLogger, silentLogger } from '../../../../src/base/logger.js';
import { openControlGroups } from '../../../../src/server/sandboxd/isolation/control-groups.js';
import { openIsolation } from '../../../../src/server/sandboxd/isolation/open-isolation.js';
import { newSpec } from '../../../contracts/provider.js';
import { eventually } from '../../../support/eventually.js';
import { bundleProgram } from '../../store/support/program.js';
import { hasBubblewrap, openSandboxes, processesWith, run, runScript, start } from './sandboxes.js';

describe('how sandboxes are kept apart', () => {
  it('is refused, with the reason, where a host has no namespaces', async () => {
    for (const platform of ['darwin', 'win32'] as const) {
      const opening = openIsolation({
        wanted: 'auto',
        dir: tmpdir(),
        clock: systemClock,
        logger: silentLogger,
        platform,
      });
      await expect(opening).rejects.toMatchObject({
        code: 'PROVIDER_UNAVAILABLE',
        message: expect.stringContaining(`${platform} has no namespaces`),
        hint: expect.stringContaining('none'),
      });
    }
  });

  it('is not done where somebody chose so, which is said loudly, and keeps nobody offline', async () => {
    let log = '';
    const write = (line: string) => {
      log += line;
    };
    const isolation = await openIsolation({
      wanted: 'none',
      dir: tmpdir(),
      clock: systemClock,
      logger: createLogger({ write, clock: systemClock, level: 'warn' }),
      platform: 'darwin',
    });
    expect(log).toContain('NOT ISOLATED');
    expect(isolation.report).toMatchObject({ kind: 'none', egress_control: false });
    const { id } = newSpec();
    const place = { id, folder: '/nowhere', memoryBytes: 0, pids: 0 } as const;
    const opening = isolation.open(
      { ...place, environment: 'internal-only' },
      AbortSignal.timeout(1_000),
    );
    await expect(opening).rejects.toMatchObject({ code: 'PROVIDER_UNAVAILABLE' });
  });

  it('without isolation still ends what left its session', async () => {
    await using sandboxes = await openSandboxes('none');
    const launcher = await sandboxes.open();
    const mark = `${900_000 + Math.floor(Math.random() * 99_999)}`;
    await runScript(launcher, `setsid nohup sleep ${mark} >/dev/null 2>&1 & echo on`);
    const running = await start(launcher, ['sleep', mark]);
    await eventually(async () => (await processesWith(mark)) === 2);
    await launcher.killAll(AbortSignal.timeout(10_000));
    expect(await processesWith(mark)).toBe(0);
    await running.ended;
    expect((await run(launcher, ['no-such-program'])).code).toBe(127);
    await expect(run(launcher, ['true'], { cwd: 'nowhere' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it('leaves no process when the daemon is killed', async (context) => {
    if (!(await hasBubblewrap())) return context.skip('no bubblewrap');
    await using program = await bundleProgram('test/server/sandboxd/isolation/holding.ts');
    const mark = `${900_000 + Math.floor(Math.random() * 99_999)}`;
    const daemon = program.start(mark);
    await daemon.printed(1);
    await eventually(async () => (await processesWith(mark)) === 4);
    daemon.process.kill('SIGKILL');
    await eventually(async () => (await processesWith(mark)) === 0);
    // The next daemon of that folder removes the groups that this one could not.
    const [dir = ''] = daemon.lines;
    await eventually(async () => {
      await openControlGroups(dir, systemClock);
      return (await groupsOf(dir)) === '';
    });
    await rm(dir, { recursive: true, force: true });
    return undefined;
  });
});

describe('limits by control groups of version 2', () => {
  it('are written as the kernel reads them, and counted by its events', async () => {
    // A folder stands for the kernel's here: what it would do about it is not seen.
    const folder = await mkdtemp(join(tmpdir(), 'ailsd-groups-'));
    try {
      const groups = await openControlGroups('/data', systemClock, [
        { version: 2, controllers: ['memory', 'pids'], folder },
      ]);
      expect(groups).toMatchObject({ memory: true, pids: true });
      expect(await readFile(join(folder, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids');
      const { id } = newSpec();
      const group = await groups.open(id, { memoryBytes: 1_000_000, pids: 7 });
      const [file = ''] = group.joinFiles;
      const of = (name: string) => readFile(join(file, '..', name), 'utf8');
      expect([await of('memory.max'), await of('memory.swap.max'), await of('pids.max')]).toEqual([
        '1000000',
        '0',
        '7',
      ]);
      expect(await group.outOfMemoryKills()).toBeUndefined();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('are not promised where groups cannot be made', async () => {
    const groups = await openControlGroups('/data', systemClock, [
      { version: 1, controllers: ['memory'], folder: '/proc/self' },
    ]);
    expect(groups).toMatchObject({ memory: false, pids: false });
    expect(groups.reason).toMatch(/^no control groups \(memory: E/);
  });
});

async function groupsOf(dir: string): Promise<string> {
  const owner = createHash('sha256').update(dir).digest('hex').slice(0, 12);
  const args = ['/sys/fs/cgroup', '-maxdepth', '6', '-name', `ailsd-${owner}-*`];
  return (await promisify(execFile)('find', args)).stdout;
}
