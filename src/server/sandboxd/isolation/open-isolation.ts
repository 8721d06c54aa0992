/** Chooses how sandboxes are kept apart on this host, by trying it; where that does not work nothing runs, unless somebody chose so. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId } from '../../../protocol/ids.js';
import { openBubblewrap } from './bubblewrap.js';
import type { Isolation } from './launcher.js';
import { openNone } from './none.js';

export interface IsolationOptions {
  /** `auto`: the best this host has that does isolate. `none` is never chosen by us. */
  readonly wanted: 'auto' | 'namespaces' | 'none';
  /** The daemon's folder. */
  readonly dir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly platform: NodeJS.Platform;
}

export async function openIsolation(options: IsolationOptions): Promise<Isolation> {
  const { wanted, clock, logger } = options;
  if (wanted === 'none') {
    logger.warn('SANDBOXES ARE NOT ISOLATED: their programs run as this user and see its files');
    return openNone(clock, 'the operator chose isolation: none');
  }
  try {
    const isolation = await tryBubblewrap(options);
    logger.info('sandboxes are isolated', { isolation: isolation.report });
    return isolation;
  } catch (error) {
    const reason = reasonOf(error);
    throw new AilsdError('PROVIDER_UNAVAILABLE', `no isolation on this host: ${reason}`, {
      cause: error,
      details: { reason },
      hint: 'make namespaces work (bubblewrap, user namespaces), or accept none: `local.isolation` = "none"',
    });
  }
}

async function tryBubblewrap(options: IsolationOptions): Promise<Isolation> {
  if (options.platform !== 'linux') {
    throw new AilsdError('PROVIDER_UNAVAILABLE', `${options.platform} has no namespaces`);
  }
  const isolation = await openBubblewrap(options);
  await probe(isolation, options.dir);
  return isolation;
}

/** A whole sandbox with a program in it, kept offline: what is refused here would be refused to the first user. */
async function probe(isolation: Isolation, dir: string): Promise<void> {
  const folder = await mkdtemp(join(dir, 'probe-'));
  try {
    await using launcher = await isolation.open(
      {
        id: newId('sandbox', (bytes) => crypto.getRandomValues(bytes)),
        folder,
        environment: 'internal-only',
        memoryBytes: 0,
        pids: 0,
      },
      AbortSignal.timeout(PROBE_TIMEOUT_MS),
    );
    for (const kind of ['shell', 'command'] as const) {
      const { file, args, env, cwd } = await launcher.launch({ argv: ['true'], env: {}, kind });
      const child = spawn(file, [...args], {
        env,
        cwd,
        detached: true,
        timeout: PROBE_TIMEOUT_MS,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let complaint = '';
      child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
        if (complaint.length < MAX_COMPLAINT) complaint += chunk;
      });
      const [code] = await once(child, 'close');
      if (code !== 0) {
        throw new AilsdError('PROVIDER_UNAVAILABLE', `a ${kind} could not be started`, {
          internal: complaint.trim(),
        });
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const PROBE_TIMEOUT_MS = 10_000;
const MAX_COMPLAINT = 1_000;

function reasonOf(error: unknown): string {
  if (!(error instanceof AilsdError)) return error instanceof Error ? error.message : String(error);
  return error.internal === undefined ? error.message : `${error.message} (${error.internal})`;
}
