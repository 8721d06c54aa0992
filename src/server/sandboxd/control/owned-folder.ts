/**
 * One daemon a folder. Its claim is a folder with one file in it whose name says which process holds it: to claim is to rename a folder of
 * one's own onto it, which works only while it is empty or absent; a dead daemon's file is removed by its name, which can't hit anybody
 * else's. So of any number that start at once one serves and the others see that they are not needed.
 */
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';

/** Of the daemon that may serve the folder; `undefined`: another one does. */
export async function ownFolder(dir: string): Promise<OwnedFolder | undefined> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const name = await processName(process.pid);
  const claim = await mkdtemp(join(dir, 'daemon.claim-'));
  try {
    await writeFile(join(claim, name), '', { mode: 0o600 });
    return (await take(dir, claim)) ? new OwnedFolder(dir, name) : undefined;
  } finally {
    await rm(claim, { recursive: true, force: true });
  }
}

export class OwnedFolder implements AsyncDisposable {
  readonly dir: string;
  readonly #name: string;

  constructor(dir: string, name: string) {
    this.dir = dir;
    this.#name = name;
  }

  /** False: the folder, or what marks it as ours, has gone. There is nothing left to serve. */
  async isOurs(): Promise<boolean> {
    try {
      return (await readdir(join(this.dir, LOCK))).includes(this.#name);
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const lock = join(this.dir, LOCK);
    await quietly(unlink(join(lock, this.#name)));
    await quietly(rmdir(lock));
  }
}

const LOCK = 'daemon.lock';

async function take(dir: string, claim: string): Promise<boolean> {
  const lock = join(dir, LOCK);
  // A holder that ends, or one that is claimed by somebody quicker: look again, a few times.
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (await renamed(claim, lock)) return true;
    const holder = await holderOf(lock);
    if (holder !== undefined && (await isAlive(holder))) return false;
    if (holder !== undefined) await quietly(unlink(join(lock, holder)));
    // Empty by now; not every platform renames onto an empty folder.
    await quietly(rmdir(lock));
  }
  return false;
}

const MAX_ATTEMPTS = 100;

async function renamed(claim: string, lock: string): Promise<boolean> {
  try {
    await rename(claim, lock);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EPERM', 'EACCES'].includes(errorCode(error) ?? '')) return false;
    throw error;
  }
}

async function holderOf(lock: string): Promise<string | undefined> {
  try {
    return (await readdir(lock))[0];
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Pids come again; the time a process was started at does not. */
async function processName(pid: number): Promise<string> {
  return `${pid}-${await startedAt(pid)}`;
}

async function isAlive(name: string): Promise<boolean> {
  const pid = Number(name.split('-')[0]);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
  }
  return name === (await processName(pid));
}

/** In ticks since boot, with the boot's name (proc(5)); where there is no /proc the pid has to do. */
async function startedAt(pid: number): Promise<string> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return `${ticks}-${boot.trim()}`;
  } catch {
    return 'running';
  }
}

function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '');
}

/** Somebody else may have done it. */
async function quietly(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isAbsent(error) && !['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
  }
}
