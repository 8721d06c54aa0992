/** Where a stack of one's own lives: one at a time for each user, gone at its end unless it is to be kept. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.js';
import { makeFolders } from '../../client/credentials/make-folders.js';
import { acquireLock, type HeldLock } from '../../client/credentials/process-lock.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { parseLine } from '../server/document.js';

export interface Place extends Disposable {
  readonly folder: string;
  /** Tells whoever comes second where it is. */
  announce(running: Running): void;
}

export interface Running {
  readonly url: string;
  readonly thread: string;
  readonly config: string;
}

const RUNNING = 'running.json';

/** What is to be kept is not in the cache, which may be emptied at any time. */
export async function takePlace({ environment }: Context, keep: boolean): Promise<Place> {
  const { cacheFolder, configFolder } = environment;
  if (cacheFolder === undefined || configFolder === undefined) {
    throw new AilsdError('CONFIG_INVALID', 'there is no folder to work in', {
      hint: 'set HOME, or AILSD_CONFIG_DIR and AILSD_CACHE_DIR',
    });
  }
  const base = join(cacheFolder, 'dev');
  const lock = await takeLock(base);
  const folder = join(keep ? configFolder : base, keep ? 'dev' : 'stack');
  // What a killed one left behind is of no use to anybody.
  if (!keep) rmSync(folder, { recursive: true, force: true });
  makeFolders(folder);
  return {
    folder,
    announce: (running) => {
      writeFileSync(join(base, RUNNING), JSON.stringify(running), { mode: 0o600 });
    },
    [Symbol.dispose]: () => {
      rmSync(join(base, RUNNING), { force: true });
      if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      lock[Symbol.dispose]();
    },
  };
}

async function takeLock(base: string): Promise<HeldLock> {
  makeFolders(base);
  try {
    return await acquireLock({ folder: base, name: 'lock', clock: systemClock, waitMs: 0 });
  } catch (error) {
    if (!(error instanceof AilsdError && error.code === 'TIMEOUT')) throw error;
    const { url, thread, config } = runningIn(base);
    throw new AilsdError('ALREADY_EXISTS', `a stack of yours is running already${at(url)}`, {
      details: { url, thread },
      hint:
        config === undefined
          ? 'it is just starting; try again in a moment'
          : `for a shell in it: AILSD_CONFIG_DIR='${config}' ailsd attach ${thread}`,
    });
  }
}

function at(url: string | undefined): string {
  return url === undefined ? '' : `, at ${url}`;
}

function runningIn(base: string): Partial<Running> {
  let text: string;
  try {
    text = readFileSync(join(base, RUNNING), 'utf8');
  } catch {
    return {};
  }
  const { url, thread, config } = parseLine(text) ?? {};
  return typeof url === 'string' && typeof thread === 'string' && typeof config === 'string'
    ? { url, thread, config }
    : {};
}
