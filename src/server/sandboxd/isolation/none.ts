/** No isolation at all: programs run as the daemon's own user and see what it sees. For trusted code, and only where somebody chose it. */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { IsolationReport } from '../../../protocol/shapes/sandboxd.js';
import type { Isolation, Launch, Launcher, LaunchRequest, SandboxPlace } from './launcher.js';
import { sendSignal } from './processes.js';

export function openNone(clock: Clock, reason: string): Isolation {
  const report: IsolationReport = {
    kind: 'none',
    egress_control: false,
    memory_limit: false,
    pid_limit: false,
    reason,
  };
  return {
    report,
    open: async (place) => {
      if (place.environment === 'internal-only') {
        throw new AilsdError('PROVIDER_UNAVAILABLE', 'this host cannot keep a sandbox offline', {
          hint: 'internal-only needs isolation; see docs/operating.md',
        });
      }
      for (const name of ['workspace', 'home', 'tmp']) {
        await mkdir(join(place.folder, name), { recursive: true, mode: 0o700 });
      }
      return new NoneLauncher(place, report, clock);
    },
  };
}

/** In the environment of every process, by which they are found again: unless one clears it. */
const MARK = 'AILSD_SANDBOX_ID';

class NoneLauncher implements Launcher {
  readonly report: IsolationReport;
  readonly workspace: string;
  readonly owner = undefined;
  readonly #place: SandboxPlace;
  readonly #clock: Clock;

  constructor(place: SandboxPlace, report: IsolationReport, clock: Clock) {
    this.report = report;
    this.#place = place;
    this.#clock = clock;
    this.workspace = join(place.folder, 'workspace');
  }

  get workspaceInside(): string {
    return this.workspace;
  }

  async launch({ argv, cwd, env, kind }: LaunchRequest): Promise<Launch> {
    const folder = resolve(this.workspace, cwd ?? '.');
    const isFolder = await stat(folder).then(
      (entry) => entry.isDirectory(),
      () => false,
    );
    if (!isFolder) {
      throw new AilsdError('NOT_FOUND', 'there is no such folder', { details: { field: 'cwd' } });
    }
    const [file, ...args] = argv;
    const home = join(this.#place.folder, 'home');
    const own = { PATH, HOME: home, USER: 'sandbox', LOGNAME: 'sandbox', LANG: 'C.UTF-8' };
    const tmp = { TMPDIR: join(this.#place.folder, 'tmp') };
    const full = { ...own, ...tmp, ...env, [MARK]: this.#place.id };
    if (kind === 'command' && isThere(file, full.PATH, folder))
      return { file, args, env: full, cwd: folder };
    // By way of env, so that what is not there is status 127, as inside. A name with `=` would be taken for a variable by it.
    const program = file.includes('=') ? ['/bin/sh', '-c', 'exec "$0" "$@"', file] : [file];
    return { file: '/usr/bin/env', args: ['--', ...program, ...args], env: full, cwd: folder };
  }

  async signal(pid: number, signal: NodeJS.Signals): Promise<boolean> {
    return sendSignal(-pid, signal);
  }

  async killAll(signal: AbortSignal): Promise<void> {
    const mark = `${MARK}=${this.#place.id}`;
    for (;;) {
      const marked = await pidsMarked(mark);
      if (marked.length === 0) return;
      for (const pid of marked) sendSignal(pid, 'SIGKILL');
      await this.#clock.sleep(LOOK_AGAIN_MS, signal);
    }
  }

  async outOfMemoryKills(): Promise<undefined> {
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll(AbortSignal.timeout(CLOSE_TIMEOUT_MS));
  }
}

const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';
const LOOK_AGAIN_MS = 20;
const CLOSE_TIMEOUT_MS = 10_000;

/** A name without a slash is looked for as the kernel's callers do. */
function isThere(file: string, path: string, folder: string): boolean {
  const places = file.includes('/') ? [''] : path.split(':');
  return places.some((place) => isProgram(resolve(folder, place, file)));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

async function pidsMarked(mark: string): Promise<readonly number[]> {
  if (process.platform !== 'linux') return pidsByListing(mark);
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (environment.split('\0').includes(mark)) found.push(pid);
  }
  return found;
}

/** Where there is no /proc, `ps` shows the environment of one's own processes. */
function pidsByListing(mark: string): Promise<readonly number[]> {
  return new Promise((done) => {
    const child = spawn('/bin/ps', ['-axEww', '-o', 'pid=,command='], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let text = '';
    child.stdout.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    child.on('error', () => done([]));
    child.on('close', () => {
      const lines = text.split('\n').filter((line) => line.includes(mark));
      done(lines.map((line) => Number.parseInt(line, 10)).filter((pid) => pid !== process.pid));
    });
  });
}
