import { execFile } from 'node:child_process';
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/protocol/ids.js';
import { copyTree } from '../../../../src/server/providers/local/copy-tree.js';
import { ownFolder } from '../../../../src/server/sandboxd/control/owned-folder.js';
import { newAccess, newSpec } from '../../../contracts/provider.js';
import { eventually } from '../../../support/eventually.js';
import {
  bundleDaemon,
  isAlive,
  type LocalPlace,
  openLocalPlace,
} from '../../../support/local-provider.js';

const run = promisify(execFile);
const soon = () => AbortSignal.timeout(20_000);
const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);

const program = await bundleDaemon();
const places: LocalPlace[] = [];
afterEach(async () => {
  for (const place of places.splice(0)) await place[Symbol.asyncDispose]();
});
afterAll(() => program[Symbol.asyncDispose]());

async function openPlace(): Promise<LocalPlace> {
  const place = await openLocalPlace(program, 'none');
  places.push(place);
  return place;
}

describe('the daemon of the local provider', () => {
  it('is not started by opening the provider, nor by looking', async () => {
    const place = await openPlace();
    const provider = await place.provider();
    expect(await provider.list(soon())).toEqual([]);
    await provider.destroy(newId('sandbox', random), soon());
    expect(await readdir(place.dir)).toEqual([]);
    expect(provider.flags).toMatchObject({ isolation: 'none', validatesTokens: true });
  });

  it('is one, however many brokers want one at the same moment', async () => {
    const place = await openPlace();
    const brokers = await Promise.all([1, 2, 3, 4].map(() => place.provider()));
    const specs = brokers.map(() => newSpec());
    await Promise.all(
      brokers.map((broker, at) => broker.create(specs[at] ?? newSpec(), newAccess(1), soon())),
    );
    for (const broker of brokers) expect(await broker.list(soon())).toHaveLength(4);
    const pid = await place.daemonPid();
    await eventually(async () => (await daemonsOf(place.dir, program.path)) <= 1);
    expect(await isAlive(pid)).toBe(true);
    // For their owner alone.
    for (const name of ['control.sock', 'daemon.json', 'daemon.log']) {
      expect((await stat(join(place.dir, name))).mode & 0o077).toBe(0);
    }
    const access = join(place.dir, 'sandboxes', specs[0]?.id ?? '', 'access.json');
    expect((await stat(access)).mode & 0o777).toBe(0o600);
  });

  it('stops a sandbox that was made a moment before', async () => {
    const broker = await (await openPlace()).provider();
    for (let time = 0; time < 15; time += 1) {
      const spec = newSpec();
      await broker.create(spec, newAccess(1), soon());
      await broker.stop(spec.id, soon());
    }
  });

  it('goes on after its broker, and after a crash comes back where it was', async () => {
    const place = await openPlace();
    const [spec, stopped] = [newSpec(), newSpec()];
    let before: unknown;
    {
      await using broker = await place.provider();
      await broker.create(spec, newAccess(1), soon());
      await broker.create(stopped, newAccess(1), soon());
      await broker.stop(stopped.id, soon());
      before = await broker.endpoints(spec.id, soon());
    }
    const pid = await place.daemonPid();
    expect(await isAlive(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
    await eventually(async () => !(await isAlive(pid)));
    const broker = await place.provider();
    expect(broker.flags.isolation).toBe('none');
    const states = async () =>
      Object.fromEntries((await broker.list(soon())).map(({ id, state }) => [id, state]));
    expect(await states()).toEqual({ [spec.id]: 'stopped', [stopped.id]: 'stopped' });
    await expect(broker.endpoints(spec.id, soon())).rejects.toMatchObject({
      code: 'PROVIDER_UNAVAILABLE',
    });
    await broker.start(spec.id, soon());
    expect(await broker.endpoints(spec.id, soon())).toEqual(before);
    expect(await states()).toEqual({ [spec.id]: 'running', [stopped.id]: 'stopped' });
    expect(await place.daemonPid()).not.toBe(pid);
  });

  it('runs again what ran when it comes back, and leaves alone what was stopped without it', async () => {
    const place = await openPlace();
    const broker = await place.provider();
    const [one, two, three] = [newSpec(), newSpec(), newSpec()];
    for (const spec of [one, two]) await broker.create(spec, newAccess(1), soon());
    const pid = await place.daemonPid();
    await broker.shutDown(soon());
    await eventually(async () => !(await isAlive(pid)));
    await broker.stop(two.id, soon());
    await broker.create(three, newAccess(1), soon());
    expect(await broker.inspect(one.id, soon())).toMatchObject({ state: 'running' });
    expect(await broker.inspect(two.id, soon())).toMatchObject({ state: 'stopped' });
  });

  it('ends when its folder is gone', async () => {
    const place = await openPlace();
    const broker = await place.provider();
    await broker.create(newSpec(), newAccess(1), soon());
    const pid = await place.daemonPid();
    await rm(place.dir, { recursive: true, force: true });
    await eventually(async () => !(await isAlive(pid)));
  });

  it('that hangs keeps nobody waiting, and what was delivered meanwhile is there', async () => {
    const place = await openPlace();
    const broker = await place.provider();
    const spec = newSpec();
    await broker.create(spec, newAccess(1), soon());
    const pid = await place.daemonPid();
    process.kill(pid, 'SIGSTOP');
    try {
      const before = performance.now();
      await expect(
        broker.deliver(spec.id, newAccess(2), AbortSignal.timeout(300)),
      ).rejects.toMatchObject({ name: 'TimeoutError' });
      expect(performance.now() - before).toBeLessThan(5_000);
      const file = join(place.dir, 'sandboxes', spec.id, 'access.json');
      expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ generation: 2 });
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await broker.deliver(spec.id, newAccess(3), soon());
    await broker.deliver(spec.id, newAccess(2), soon());
    const file = join(place.dir, 'sandboxes', spec.id, 'access.json');
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ generation: 3 });
  });

  it('that cannot run says why to whoever wanted a sandbox', async () => {
    const place = await openPlace();
    const refusing = join(place.dir, 'refusing.mjs');
    await writeFile(
      refusing,
      `process.stderr.write('{"error":{"message":"no isolation on this host: no bwrap"}}\\n'); process.exit(7);`,
    );
    const broker = await place.provider({ daemonProgram: refusing });
    const spec = newSpec();
    await expect(broker.create(spec, newAccess(1), soon())).rejects.toMatchObject({
      code: 'PROVIDER_UNAVAILABLE',
      message: expect.stringContaining('no bwrap'),
    });
    expect(await broker.inspect(spec.id, soon())).toBeUndefined();
  });
});

describe('a create that was cut short', () => {
  it('before the sandbox was there leaves nothing that counts; after it, what the next one finishes', async () => {
    const place = await openPlace();
    const broker = await place.provider();
    const spec = newSpec();
    await mkdir(join(place.dir, 'sandboxes', `.making-${spec.id}-x`), { recursive: true });
    expect(await broker.list(soon())).toEqual([]);
    const folder = join(place.dir, 'sandboxes', spec.id);
    await mkdir(folder);
    await writeFile(join(folder, 'spec.json'), JSON.stringify(spec));
    await writeFile(join(folder, 'access.json'), JSON.stringify(newAccess(1)));
    expect(await broker.list(soon())).toMatchObject([{ id: spec.id, state: 'stopped' }]);
    await broker.create(spec, newAccess(1), soon());
    expect(await broker.list(soon())).toMatchObject([{ id: spec.id, state: 'running' }]);
  });

  it('like a destroy that was, is cleared away by the next broker', async () => {
    const place = await openPlace();
    const left = join(place.dir, 'sandboxes', '.gone-sb_1-1-1');
    await mkdir(join(left, 'locked'), { recursive: true, mode: 0o700 });
    await place.provider();
    await expect(lstat(left)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('who owns the folder', () => {
  it('is decided once, and a dead owner is replaced', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'ailsd-owner-'));
    try {
      const claims = await Promise.all([1, 2, 3, 4, 5, 6].map(() => ownFolder(dir)));
      const owners = claims.filter((one) => one !== undefined);
      expect(owners).toHaveLength(1);
      expect(await owners[0]?.isOurs()).toBe(true);
      await owners[0]?.[Symbol.asyncDispose]();
      await mkdir(join(dir, 'daemon.lock'));
      await writeFile(join(dir, 'daemon.lock', '4194304-1-dead'), '');
      await using next = await ownFolder(dir);
      expect(await next?.isOurs()).toBe(true);
      expect((await readdir(dir)).sort()).toEqual(['daemon.lock']);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe('copying a folder in which hostile programs are at work', () => {
  it('never copies what a link points to, however fast a folder becomes one', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'ailsd-copy-'));
    try {
      const [from, outside] = [join(dir, 'from'), join(dir, 'outside')];
      await mkdir(join(from, 'a'), { recursive: true });
      await mkdir(outside);
      await writeFile(join(outside, 'file'), 'outside');
      await writeFile(join(from, 'a', 'file'), 'inside');
      await symlink(outside, join(from, 'b'));
      const swaps = `const { renameSync: r } = require('node:fs'); process.chdir(process.argv[1]);
        process.stdout.write('on'); for (;;) { r('a', 'c'); r('b', 'a'); r('c', 'b'); }`;
      const swap = execFile(process.execPath, ['-e', swaps, from]);
      await new Promise((resolve) => swap.stdout?.once('data', resolve));
      let isInside = 0;
      for (let round = 0; round < 1_000; round += 1) {
        const to = join(dir, `to-${round}`);
        await copyTree(from, to, soon());
        for (const name of await readdir(to)) {
          const entry = await lstat(join(to, name));
          if (!entry.isDirectory()) continue;
          const text = await readFile(join(to, name, 'file'), 'utf8').catch(() => 'inside');
          expect(text).toBe('inside');
          isInside += 1;
        }
      }
      swap.kill('SIGKILL');
      expect(isInside).toBeGreaterThan(0);
    } finally {
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    }
  });

  it('leaves out what is no file, drops setuid, and keeps links as they are', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'ailsd-copy-'));
    try {
      const from = join(dir, 'from');
      await mkdir(from);
      await run('mkfifo', [join(from, 'pipe')]);
      await writeFile(join(from, 'program'), '12345');
      await run('chmod', ['4755', join(from, 'program')]);
      await symlink('/etc/shadow', join(from, 'link'));
      expect(await copyTree(from, join(dir, 'to'), soon())).toBe(5);
      expect((await readdir(join(dir, 'to'))).sort()).toEqual(['link', 'program']);
      expect((await stat(join(dir, 'to', 'program'))).mode & 0o7777).toBe(0o755);
      expect((await lstat(join(dir, 'to', 'link'))).isSymbolicLink()).toBe(true);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  it.skipIf(process.getuid?.() !== 0)(
    'says STORAGE_FULL and leaves no half of a snapshot',
    async () => {
      const place = await openPlace();
      const broker = await place.provider();
      const spec = newSpec();
      await broker.create(spec, newAccess(1), soon());
      const kept = join(place.dir, 'snapshots');
      await mkdir(kept);
      await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', kept]);
      try {
        await place.files.write(spec.id, 'big', 'x'.repeat(4 * 1024 * 1024));
        const taken = broker.snapshots.take(spec.id, newId('snapshot', random), soon());
        await expect(taken).rejects.toMatchObject({ code: 'STORAGE_FULL' });
        expect(await readdir(kept)).toEqual([]);
      } finally {
        await run('umount', [kept]);
      }
    },
  );
});

/** How many processes run this program for this folder: they hold its log open. */
async function daemonsOf(dir: string, path: string): Promise<number> {
  const { stdout } = await run('ps', ['axo', 'pid=,args=']);
  const pids = stdout
    .split('\n')
    .filter((line) => line.includes(path))
    .map((line) => Number.parseInt(line, 10));
  const logs = await Promise.all(
    pids.map((pid) =>
      run('readlink', [`/proc/${pid}/fd/2`]).then(
        ({ stdout: to }) => to.trim(),
        () => '',
      ),
    ),
  );
  return logs.filter((to) => to === join(dir, 'daemon.log')).length;
}
