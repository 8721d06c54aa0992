/** The daemon as a process that is killed while it writes, or whose disk is full: what was there before is whole. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.js';
import { newId } from '../../../../src/protocol/ids.js';
import { proves } from '../../../requirements.js';
import { temporaryFolder } from '../../../support/cli.js';
import { newSeed, seededRandom } from '../../../support/random.js';
import { claimsOf, forge, random, specOf } from '../support/sandboxd.js';
import { askFiles } from './support.js';

const DAEMON = join(import.meta.dirname, '../../../../dist/server/ailsd-sandboxd.mjs');
const ROUNDS = process.env['AILSD_SOAK'] === undefined ? 6 : 100;
const MIB = 1024 * 1024;

/** A small disk of its own for the sandboxes, which nobody outside of the daemon sees. */
const ON_SMALL_DISK =
  'mkdir "$0/full" && mount -t tmpfs -o size=4m tmpfs "$0/full" && cp -r "$0/sandboxes" "$0/full/" && exec "$@"';

function prepare(dir: string) {
  const id = newId('sandbox', random);
  const key = randomBytes(32);
  const folder = join(dir, 'sandboxes', id);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'spec.json'), JSON.stringify(specOf(id, 4)));
  const access = { generation: 1, keys: [key.toString('base64url')], ended: [] };
  writeFileSync(join(folder, 'access.json'), JSON.stringify(access), { mode: 0o600 });
  return { id, folder, token: () => forge(claimsOf(id, systemClock), key) };
}

async function start(dir: string, program: readonly [string, ...string[]]) {
  const [file, ...args] = program;
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(`${JSON.stringify({ dir, isolation: 'none', log_level: 'error' })}\n`);
  const [line] = await once(child.stdout, 'data');
  return {
    port: Number(JSON.parse(String(line)).port),
    async end(signal: NodeJS.Signals): Promise<void> {
      child.kill(signal);
      await once(child, 'close');
    },
  };
}

it(proves('kill -9 while files are replaced leaves each whole, and nothing else', 'FI-03'), {
  timeout: 300_000,
}, async () => {
  const seed = newSeed();
  const chance = seededRandom(seed);
  using temporary = temporaryFolder();
  const { id, folder, token } = prepare(temporary.path);
  const versions = [1, 2].map((byte) => Buffer.alloc(2 * MIB, byte));
  for (let round = 0; round <= ROUNDS; round += 1) {
    const daemon = await start(temporary.path, [process.execPath, DAEMON]);
    expect(readdirSync(join(folder, 'staging'))).toEqual([]);
    const put = (body: Buffer) =>
      askFiles(daemon.port, `/s/${id}/files/kept`, token(), 'PUT', { body });
    expect((await put(versions[0] ?? Buffer.alloc(0))).status).toBeLessThan(202);
    let isOver = false;
    const writing = (async () => {
      for (let n = 1; !isOver; n += 1) await put(versions[n % 2] ?? Buffer.alloc(0));
    })().catch(() => undefined);
    // A moment within one of the first few writes: which one is the point.
    await systemClock.sleep(chance() * 60);
    await daemon.end('SIGKILL');
    isOver = true;
    await writing;
    const kept = readFileSync(join(folder, 'workspace', 'kept'));
    expect(
      versions.some((one) => one.equals(kept)),
      `seed ${seed}`,
    ).toBe(true);
    expect(readdirSync(join(folder, 'workspace'))).toEqual(['kept']);
  }
});

it(proves('a full disk is 507, and the file before is whole', 'FI-03'), async () => {
  using temporary = temporaryFolder();
  const { path } = temporary;
  const { id, token } = prepare(path);
  const rootly = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--map-root-user'];
  const inNamespace = ['unshare', ...rootly, 'sh', '-c', ON_SMALL_DISK, path] as const;
  const daemon = await start(join(path, 'full'), [...inNamespace, process.execPath, DAEMON]);
  const ask = (method: string, where: string, body?: Buffer) =>
    askFiles(daemon.port, `/s/${id}${where}`, token(), method, body === undefined ? {} : { body });
  try {
    const before = Buffer.alloc(2 * MIB, 1);
    expect((await ask('PUT', '/files/kept', before)).status).toBe(201);
    for (let round = 0; round < 3; round += 1) {
      const full = await ask('PUT', '/files/kept', Buffer.alloc(3 * MIB, 2));
      expect(full).toMatchObject({ status: 507, code: 'STORAGE_FULL' });
      expect((await ask('GET', '/files/kept')).body.equals(before)).toBe(true);
    }
    const list = JSON.parse((await ask('GET', '/files/')).body.toString());
    expect(list.items).toHaveLength(1);
    // What was given up takes no room.
    expect((await ask('PUT', '/files/other', Buffer.alloc(MIB))).status).toBe(201);
  } finally {
    await daemon.end('SIGTERM');
  }
});
