/** Starts the daemon of a folder so that it outlives us. Several may try at once: the daemons settle among themselves who serves. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';
import { type DaemonHealth, daemonHealth } from '../../../protocol/shapes/sandboxd.js';
import { callDaemon } from './control-client.js';

export interface DaemonOptions {
  readonly dir: string;
  readonly isolation: 'auto' | 'namespaces' | 'none';
  /** The daemon's program, for `node`. */
  readonly program: string;
  readonly node: string;
  readonly clock: Clock;
}

/** Finds the one that serves, or starts one and waits until somebody does. */
export async function ensureDaemon(
  options: DaemonOptions,
  signal: AbortSignal,
): Promise<DaemonHealth> {
  const { dir, clock } = options;
  const socketPath = join(dir, 'control.sock');
  const serving = await callDaemon(socketPath, 'GET', '/health', daemonHealth, signal);
  if (serving.kind === 'answer') return serving.value;
  const started = await startDaemon(options);
  const deadline = clock.monotonic() + START_MS;
  for (;;) {
    const answer = await callDaemon(socketPath, 'GET', '/health', daemonHealth, signal);
    if (answer.kind === 'answer') return answer.value;
    // Ended without anybody serving: it says why. One that lost to another ends well.
    const failure = started.failure();
    if (failure !== undefined) throw failure;
    if (clock.monotonic() > deadline) throw unavailable('it did not start in time', dir);
    await clock.sleep(LOOK_AGAIN_MS, signal);
  }
}

const START_MS = 20_000;
const LOOK_AGAIN_MS = 10;
const LOG = 'daemon.log';

/** It lives long and mostly waits: what V8 takes in a busy moment it hardly gives back. So it takes little, and clears up often. */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=30'];

async function startDaemon(options: DaemonOptions): Promise<{ failure(): AilsdError | undefined }> {
  const { dir, isolation, program, node } = options;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await using log = await open(join(dir, LOG), 'a', 0o600);
  const child = spawn(node, [...NODE_OPTIONS, program], {
    cwd: '/',
    detached: true,
    // Nothing of ours: neither settings nor secrets.
    env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LANG: 'C.UTF-8' },
    stdio: ['pipe', 'ignore', log.fd],
  });
  child.unref();
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(`${JSON.stringify({ dir, isolation })}\n`);
  return watch(child, dir);
}

/** The last line of its log says why it ended. */
function watch(child: ChildProcess, dir: string): { failure(): AilsdError | undefined } {
  let failure: AilsdError | undefined;
  child.on('error', (error) => {
    failure ??= unavailable(error.message, dir);
  });
  child.on('exit', (code, signal) => {
    if (code === 0) return;
    failure ??= unavailable(reasonIn(join(dir, LOG)) ?? `it ended (${signal ?? code})`, dir);
  });
  return { failure: () => failure };
}

function unavailable(reason: string, dir: string): AilsdError {
  return new AilsdError('PROVIDER_UNAVAILABLE', `no sandboxes can be run here: ${reason}`, {
    internal: `see ${join(dir, LOG)}`,
    hint: 'ask whoever runs the server: its log and `ailsd doctor` say more',
  });
}

function reasonIn(path: string): string | undefined {
  try {
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    const value: unknown = JSON.parse(lines.at(-1) ?? '');
    if (typeof value !== 'object' || value === null || !('error' in value)) return undefined;
    const { error } = value;
    if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
    return typeof error.message === 'string' ? error.message : undefined;
  } catch {
    return undefined;
  }
}
