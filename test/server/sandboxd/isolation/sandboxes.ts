/** Opens real launchers over a temporary folder and runs real programs through them. */
import { spawn } from 'node:child_process';
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../../src/base/clock.js';
import { silentLogger } from '../../../../src/base/logger.js';
import { newId } from '../../../../src/protocol/ids.js';
import type {
  Isolation,
  Launcher,
  LaunchRequest,
  SandboxPlace,
} from '../../../../src/server/sandboxd/isolation/launcher.js';
import { openIsolation } from '../../../../src/server/sandboxd/isolation/open-isolation.js';

export interface Sandboxes extends AsyncDisposable {
  readonly isolation: Isolation;
  readonly dir: string;
  open(options?: Partial<SandboxPlace>): Promise<Launcher>;
}

export async function openSandboxes(
  wanted: 'namespaces' | 'none' = 'namespaces',
): Promise<Sandboxes> {
  const dir = await mkdtemp(join(tmpdir(), 'ailsd-isolation-'));
  const isolation = await openIsolation({
    wanted,
    dir,
    clock: systemClock,
    logger: silentLogger,
    platform: process.platform,
  });
  const opened: Launcher[] = [];
  return {
    isolation,
    dir,
    open: async (options = {}) => {
      const id = newId('sandbox', (bytes) => crypto.getRandomValues(bytes));
      const folder = await mkdtemp(join(dir, 'sandbox-'));
      const launcher = await isolation.open(
        {
          id,
          folder,
          environment: 'default-public',
          memoryBytes: 256 * 1024 * 1024,
          pids: 100,
          ...options,
        },
        AbortSignal.timeout(10_000),
      );
      opened.push(launcher);
      return launcher;
    },
    [Symbol.asyncDispose]: async () => {
      for (const launcher of opened) await launcher[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function hasBubblewrap(): Promise<boolean> {
  return access('/usr/bin/bwrap').then(
    () => process.platform === 'linux',
    () => false,
  );
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Waits until it has said this. */
  says(text: string): Promise<void>;
}

export async function start(
  launcher: Launcher,
  argv: LaunchRequest['argv'],
  options: Partial<LaunchRequest> & { readonly stdin?: string } = {},
): Promise<Running> {
  const { stdin, ...request } = options;
  const launch = await launcher.launch({ argv, env: {}, kind: 'command', ...request });
  const child = spawn(launch.file, [...launch.args], {
    env: launch.env,
    cwd: launch.cwd,
    detached: true,
  });
  const said = { out: '', err: '' };
  const listeners = new Set<() => void>();
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    said.out += text;
    for (const tell of listeners) tell();
  });
  child.stderr.setEncoding('latin1').on('data', (text: string) => {
    said.err += text;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin ?? '');
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...said }));
  });
  if (child.pid === undefined) throw new Error('it has no pid');
  return {
    pid: child.pid,
    ended,
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = () => said.out.includes(text) && resolve();
        listeners.add(look);
        look();
        void ended.then(() => reject(new Error(`it ended without: ${said.err}`)));
      }),
  };
}

export async function run(...args: Parameters<typeof start>): Promise<Ended> {
  return (await start(...args)).ended;
}

/** With a shell of the sandbox. */
export function runScript(
  launcher: Launcher,
  script: string,
  options: Parameters<typeof start>[2] = {},
): Promise<Ended> {
  return run(launcher, ['sh', '-c', script], options);
}

/** On the whole host: how many have this as an argument. */
export async function processesWith(argument: string): Promise<number> {
  let count = 0;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const line = await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => '');
    if (line.startsWith('sleep\0') && line.split('\0').includes(argument)) count += 1;
  }
  return count;
}
