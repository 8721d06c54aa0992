/** Limits on memory and processes by the kernel's control groups, version 1 or 2, wherever we may make groups below our own. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import { errorCode } from '../../../base/error-code.js';
import type { SandboxId } from '../../../protocol/ids.js';

export interface ControlGroups {
  readonly memory: boolean;
  readonly pids: boolean;
  /** Why not more, for the operator. */
  readonly reason: string | undefined;
  open(id: SandboxId, limits: GroupLimits): Promise<ControlGroup>;
}

export interface GroupLimits {
  /** 0: no limit. */
  readonly memoryBytes: number;
  readonly pids: number;
}

export interface ControlGroup {
  /** Whoever writes 0 here is in. */
  readonly joinFiles: readonly string[];
  members(): Promise<readonly number[]>;
  outOfMemoryKills(): Promise<number | undefined>;
  /** After its last member has gone. */
  remove(signal: AbortSignal): Promise<void>;
}

export type Controller = 'memory' | 'pids';
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly controllers: readonly Controller[];
  /** Our own group's folder. */
  readonly folder: string;
}

/** `owner`: of the groups, so that those a crashed daemon left are known again. */
export async function openControlGroups(
  owner: string,
  clock: Clock,
  hierarchies?: readonly Hierarchy[],
): Promise<ControlGroups> {
  const prefix = `ailsd-${createHash('sha256').update(owner).digest('hex').slice(0, 12)}-`;
  const usable: Hierarchy[] = [];
  const reasons: string[] = [];
  for (const hierarchy of hierarchies ?? (await findHierarchies())) {
    try {
      await prepare(hierarchy, prefix);
      usable.push(hierarchy);
    } catch (error) {
      reasons.push(`${hierarchy.controllers.join(' and ')}: ${errorCode(error) ?? String(error)}`);
    }
  }
  const has = (name: Controller) => usable.some(({ controllers }) => controllers.includes(name));
  return {
    memory: has('memory'),
    pids: has('pids'),
    reason: reasons.length === 0 ? undefined : `no control groups (${reasons.join('; ')})`,
    open: async (id, limits) => {
      const groups = usable.map((hierarchy) => ({
        ...hierarchy,
        folder: join(hierarchy.folder, `${prefix}${id}`),
      }));
      for (const group of groups) await makeGroup(group, limits);
      return new Group(groups, clock);
    },
  };
}

class Group implements ControlGroup {
  readonly #parts: readonly Hierarchy[];
  readonly #clock: Clock;

  constructor(parts: readonly Hierarchy[], clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
  }

  get joinFiles(): readonly string[] {
    return this.#parts.map(({ folder }) => join(folder, 'cgroup.procs'));
  }

  async members(): Promise<readonly number[]> {
    const lists = await Promise.all(this.joinFiles.map(readIfThere));
    return [...new Set(lists.join('\n').split('\n').map(Number))].filter((pid) => pid > 0);
  }

  async outOfMemoryKills(): Promise<number | undefined> {
    const part = this.#parts.find(({ controllers }) => controllers.includes('memory'));
    if (part === undefined) return undefined;
    const name = part.version === 1 ? 'memory.oom_control' : 'memory.events';
    const count = /^oom_kill (\d+)$/m.exec(await readIfThere(join(part.folder, name)))?.[1];
    return count === undefined ? undefined : Number(count);
  }

  async remove(signal: AbortSignal): Promise<void> {
    for (const { folder } of this.#parts) {
      while (!(await removeGroup(folder))) await this.#clock.sleep(LOOK_AGAIN_MS, signal);
    }
  }
}

const LOOK_AGAIN_MS = 5;

/** Our own groups, per controller, as /proc tells (cgroups(7)). */
async function findHierarchies(): Promise<readonly Hierarchy[]> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map(toMount);
  const found: Hierarchy[] = [];
  const wanted = new Set<Controller>(['memory', 'pids']);
  for (const line of (await readFile('/proc/self/cgroup', 'utf8')).split('\n')) {
    const [, id = '', names = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (id === '') continue;
    const version = id === '0' ? 2 : 1;
    const mount = mounts.find((one) =>
      version === 2
        ? one.type === 'cgroup2'
        : one.type === 'cgroup' && one.options.includes(names.split(',')[0] ?? ''),
    );
    if (mount === undefined) continue;
    const folder = join(
      mount.point,
      path.startsWith(mount.root) ? path.slice(mount.root.length) : path,
    );
    const offered =
      version === 1
        ? names.split(',')
        : (await readIfThere(join(folder, 'cgroup.controllers'))).trim().split(' ');
    const controllers = [...wanted].filter((name) => offered.includes(name));
    for (const name of controllers) wanted.delete(name);
    if (controllers.length > 0) found.push({ version, controllers, folder });
  }
  return found;
}

interface Mount {
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

function toMount(line: string): Mount {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root = '/', point = ''] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return { root: root === '/' ? '' : root, point, type, options: options.split(',') };
}

/** Finds out by doing it whether groups can be made here, and removes those that a daemon before us left empty. */
async function prepare(hierarchy: Hierarchy, prefix: string): Promise<void> {
  const { folder, version, controllers } = hierarchy;
  if (version === 2) await delegate(folder, controllers);
  const probe = { ...hierarchy, folder: join(folder, `${prefix}probe-${process.pid}`) };
  await makeGroup(probe, { memoryBytes: PROBE_BYTES, pids: 1 });
  await removeGroup(probe.folder);
  for (const name of await readdir(folder)) {
    if (name.startsWith(prefix)) await removeGroup(join(folder, name));
  }
}

const PROBE_BYTES = 16 * 1024 * 1024;

/** A group of version 2 has either members or limited children: ours steps aside into a child of its own if it must. */
async function delegate(folder: string, controllers: readonly Controller[]): Promise<void> {
  const control = join(folder, 'cgroup.subtree_control');
  const wish = controllers.map((name) => `+${name}`).join(' ');
  try {
    await writeFile(control, wish);
  } catch (error) {
    if (errorCode(error) !== 'EBUSY' || basename(folder) === ASIDE) throw error;
    const aside = join(folder, ASIDE);
    await mkdir(aside, { recursive: true });
    await writeFile(join(aside, 'cgroup.procs'), `${process.pid}`);
    await writeFile(control, wish);
  }
}

const ASIDE = 'ailsd-sandboxd';

async function makeGroup(group: Hierarchy, limits: GroupLimits): Promise<void> {
  const { folder, version, controllers } = group;
  try {
    await mkdir(folder);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  const set = (name: string, value: number | string) => writeFile(join(folder, name), `${value}`);
  if (controllers.includes('pids') && limits.pids > 0) await set('pids.max', limits.pids);
  if (!controllers.includes('memory') || limits.memoryBytes === 0) return;
  if (version === 2) {
    await set('memory.max', limits.memoryBytes);
    await ignoreMissing(set('memory.swap.max', 0));
    return;
  }
  await set('memory.limit_in_bytes', limits.memoryBytes);
  await ignoreMissing(set('memory.memsw.limit_in_bytes', limits.memoryBytes));
}

/** Kernels without swap accounting have no such file, and none can be made there. */
async function ignoreMissing(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!['ENOENT', 'EACCES', 'EPERM', 'EOPNOTSUPP'].includes(errorCode(error) ?? '')) throw error;
  }
}

/** False: somebody is still in it, or in a group below. */
async function removeGroup(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EBUSY' || code === 'ENOTEMPTY') return false;
    if (code === 'ENOENT') return true;
    throw error;
  }
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENODEV') return '';
    throw error;
  }
}
