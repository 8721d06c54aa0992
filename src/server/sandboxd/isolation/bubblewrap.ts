/** Sandboxes as namespaces of the Linux kernel, made with bubblewrap: as root under an account of their own, else under ours, mapped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, stat } from 'node:fs/promises';
import { release } from 'node:os';
import { join, posix } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { IsolationReport } from '../../../protocol/shapes/sandboxd.js';
import { type Account, accountRange, mappedAccount, ownAccount } from './account.js';
import { WORKSPACE_INSIDE } from './bubblewrap-arguments.js';
import { type ControlGroup, type ControlGroups, openControlGroups } from './control-groups.js';
import { enter } from './entering.js';
import { HOME_INSIDE, USER_INSIDE, writeEtcFiles } from './etc-files.js';
import { isFolderInside } from './folder-inside.js';
import { Holder } from './holder.js';
import type { Isolation, Launch, Launcher, LaunchRequest, SandboxPlace } from './launcher.js';
import { childrenOf, processState, sendSignal } from './processes.js';
import { findPrograms, type Programs } from './programs.js';

export interface BubblewrapOptions {
  /** The daemon's folder: it marks what on this host is ours. */
  readonly dir: string;
  readonly clock: Clock;
}

/** Throws where the programs are not there; whether the kernel lets them work is found out by starting something. */
export async function openBubblewrap({ dir, clock }: BubblewrapOptions): Promise<Isolation> {
  const programs = await findPrograms();
  const range = process.getuid?.() === 0 ? await accountRange() : undefined;
  const groups = await openControlGroups(dir, clock);
  const limits = { ...groups, pidsByResource: range !== undefined || countsPerNamespace() };
  const report: IsolationReport = {
    kind: 'namespaces',
    egress_control: true,
    memory_limit: groups.memory,
    pid_limit: groups.pids || limits.pidsByResource,
    ...(groups.reason !== undefined && { reason: groups.reason }),
  };
  return {
    report,
    open: async (place) => {
      const account = range === undefined ? mappedAccount : ownAccount(place.id, range);
      await makeFolders(place, account, programs);
      const group = await groups.open(place.id, place);
      const resourceLimits = toResourceLimits(place, groups, limits.pidsByResource);
      return new BubblewrapLauncher({
        ...{ programs, account, range, group, place, report, clock, resourceLimits },
      });
    },
  };
}

interface Parts {
  readonly programs: Programs;
  readonly account: Account;
  readonly group: ControlGroup;
  readonly place: SandboxPlace;
  readonly report: IsolationReport;
  readonly clock: Clock;
  readonly resourceLimits: readonly string[];
}

class BubblewrapLauncher implements Launcher {
  readonly workspaceInside = WORKSPACE_INSIDE;
  readonly #parts: Parts;
  #holder: Promise<Holder> | undefined;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get report(): IsolationReport {
    return this.#parts.report;
  }

  get workspace(): string {
    return join(this.#parts.place.folder, 'workspace');
  }

  get owner() {
    const { account } = this.#parts;
    return account.kind === 'own' ? { uid: account.uid, gid: account.gid } : undefined;
  }

  async launch(request: LaunchRequest): Promise<Launch> {
    const { firstPid } = await this.#held();
    const cwd = posix.resolve(WORKSPACE_INSIDE, request.cwd ?? '.');
    if (!(await isFolderInside(`/proc/${firstPid}/root`, cwd))) {
      throw new AilsdError('NOT_FOUND', 'there is no such folder in the sandbox', {
        details: { field: 'cwd' },
      });
    }
    const { place, group } = this.#parts;
    const entrance = {
      ...this.#parts,
      firstPid,
      limitFiles: group.joinFiles,
      hasOwnNetwork: place.environment === 'internal-only',
    };
    return enter(entrance, request, { ...OWN_ENV, ...request.env }, cwd);
  }

  async signal(pid: number, signal: NodeJS.Signals): Promise<boolean> {
    const state = await processState(pid);
    if (state === undefined) return false;
    if (state.foregroundGroup > 0) return sendSignal(-state.foregroundGroup, signal);
    // Of a command all that waits for it is in the spawned group, and with those its namespace ends.
    if (signal === 'SIGKILL') return sendSignal(-pid, signal);
    const program = await this.#programOf(pid);
    return program !== undefined && sendSignal(-program, signal);
  }

  async killAll(signal: AbortSignal): Promise<void> {
    const holder = this.#holder;
    this.#holder = undefined;
    await (await holder?.catch(() => undefined))?.end(signal);
    // Those that were on their way in, or wait outside for somebody inside.
    for (;;) {
      const members = await this.#parts.group.members();
      if (members.length === 0) return;
      for (const pid of members) sendSignal(pid, 'SIGKILL');
      await this.#parts.clock.sleep(LOOK_AGAIN_MS, signal);
    }
  }

  outOfMemoryKills(): Promise<number | undefined> {
    return this.#parts.group.outOfMemoryKills();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const signal = AbortSignal.timeout(CLOSE_TIMEOUT_MS);
    await this.killAll(signal);
    await this.#parts.group.remove(signal);
  }

  async #held(): Promise<Holder> {
    if (this.#isClosed) throw new AilsdError('NOT_FOUND', 'the sandbox is stopped');
    if (this.#holder !== undefined) {
      const holder = await this.#holder;
      if (holder.isAlive) return holder;
    }
    const { group } = this.#parts;
    const starting = Holder.start({ ...this.#parts, limitFiles: group.joinFiles });
    this.#holder = starting;
    try {
      return await starting;
    } catch (error) {
      if (this.#holder === starting) this.#holder = undefined;
      throw error;
    }
  }

  /** The one below those that wait which leads a session. It may be on its way: then soon. */
  async #programOf(pid: number): Promise<number | undefined> {
    const until = this.#parts.clock.monotonic() + STARTING_MS;
    for (;;) {
      for (const waiting of await childrenOf(pid)) {
        for (const child of await childrenOf(waiting)) {
          if ((await processState(child))?.session === child) return child;
        }
      }
      const state = await processState(pid);
      if (state === undefined || state.isZombie) return undefined;
      if (this.#parts.clock.monotonic() > until) return undefined;
      await this.#parts.clock.sleep(LOOK_AGAIN_MS);
    }
  }
}

const LOOK_AGAIN_MS = 5;
const STARTING_MS = 1_000;
const CLOSE_TIMEOUT_MS = 10_000;

const OWN_ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin',
  HOME: HOME_INSIDE,
  USER: USER_INSIDE,
  LOGNAME: USER_INSIDE,
  SHELL: '/bin/bash',
  LANG: 'C.UTF-8',
} as const;

/** Since Linux 5.14 a limit on an account's processes counts those of its user namespace only. */
function countsPerNamespace(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}

/** Where there is no control group. Of memory each process gets its share of address space: it stops a hog, not a herd. */
function toResourceLimits(
  place: SandboxPlace,
  groups: Pick<ControlGroups, 'memory' | 'pids'>,
  pidsByResource: boolean,
): readonly string[] {
  const pids = !groups.pids && pidsByResource && place.pids > 0;
  const memory = !groups.memory && place.memoryBytes > 0;
  return [
    ...(pids ? [`--nproc=${place.pids}:${place.pids}`] : []),
    ...(memory ? [`--data=${place.memoryBytes}:${place.memoryBytes}`] : []),
  ];
}

async function makeFolders(
  place: SandboxPlace,
  account: Account,
  programs: Programs,
): Promise<void> {
  const etc = join(place.folder, 'etc');
  await mkdir(etc, { recursive: true, mode: 0o755 });
  await writeEtcFiles(etc, account, place.environment);
  for (const name of ['workspace', 'home', 'tmp']) {
    const folder = join(place.folder, name);
    try {
      await mkdir(folder, { mode: 0o700 });
      if (account.kind === 'own') await chown(folder, account.uid, account.gid);
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      if (account.kind === 'own') await giveTo(folder, account.uid, programs);
    }
  }
}

/** A folder that came from elsewhere, a snapshot perhaps, belongs to somebody else with all that is in it. */
async function giveTo(folder: string, uid: number, programs: Programs): Promise<void> {
  if ((await stat(folder)).uid === uid) return;
  const args = ['-R', '--no-dereference', `${uid}:${uid}`, '--', folder];
  const child = spawn(programs.chown, args, { env: {}, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  throw new AilsdError('PROVIDER_UNAVAILABLE', "the sandbox's files could not be given to it");
}
