/**
 * One process at a time, on one machine or several that share a folder; a dead holder's lock is taken over.
 *
 * The lock is a folder with one file in it whose name says who holds it. To take it is to rename a folder of one's own
 * onto it, which works only while it is empty or absent; to take over is to remove the file of the dead holder by its
 * name, which can't hit anybody else's. (proper-lockfile removes whatever is there by then, so two that find the same
 * dead lock can both end up with it; it also waits out a time where asking for the process is at once.)
 */

import {
  existsSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.js';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import { makeFolders } from './make-folders.js';
import { isAlive, ownName } from './process-name.js';

export interface LockOptions {
  /** An existing folder, or one that can be made. */
  readonly folder: string;
  readonly name: string;
  readonly clock: Clock;
  /** How long to wait for others. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface HeldLock extends Disposable {
  /** False if it was taken over, as from a process on another machine that was stopped for too long. */
  isHeld(): boolean;
}

export async function withLock<T>(
  options: LockOptions,
  work: (lock: HeldLock) => Promise<T>,
): Promise<T> {
  using lock = await acquireLock(options);
  return await work(lock);
}

/** Throws TIMEOUT when others hold it for too long, CREDENTIALS_UNWRITABLE where no lock can be made, or the signal's reason. */
export async function acquireLock(options: LockOptions): Promise<HeldLock> {
  const { folder, name, clock, waitMs, signal } = options;
  const claim = new Claim(folder, name, clock);
  const deadline = clock.monotonic() + waitMs;
  try {
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      if (claim.take()) return claim.hold();
      if (clock.monotonic() >= deadline) throw busy(claim.path, waitMs);
      await clock.sleep(pauseMs(attempt), signal);
    }
  } catch (error) {
    claim.drop();
    throw error;
  }
}

/** A holder that can't be asked for shows that it lives by touching its file this often. */
const BEAT_MS = 1_000;
/** Without a beat for this long, by the watcher's own clock, it is dead. */
export const STALE_MS = 4_000;
/** What a killed waiter on another machine left behind is removed after this. */
const LEFTOVER_MS = 3_600_000;

class Claim {
  readonly path: string;
  readonly #folder: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #name = ownName();
  /** Our own folder, while it is not the lock. */
  readonly #waiting: string;
  #watched: { readonly name: string; readonly beat: number; readonly since: number } | undefined;

  constructor(folder: string, name: string, clock: Clock) {
    this.path = join(folder, `${name}.lock`);
    this.#folder = folder;
    this.#prefix = `${name}.lock.`;
    this.#clock = clock;
    this.#waiting = join(folder, `${this.#prefix}${this.#name}`);
    try {
      makeFolders(this.#waiting);
      writeFileSync(join(this.#waiting, this.#name), '', { mode: 0o600 });
    } catch (error) {
      this.drop();
      throw unlockable(this.path, error);
    }
  }

  /** Tries once; removes a dead holder's file on the way. */
  take(): boolean {
    if (this.#rename()) return true;
    const holder = this.#holder();
    if (holder !== undefined && !this.#isDead(holder)) return false;
    if (holder !== undefined) removeFile(join(this.path, holder));
    // Empty by now; not every platform renames onto an empty folder.
    removeFolder(this.path);
    return this.#rename();
  }

  hold(): HeldLock {
    this.#sweep();
    const file = join(this.path, this.#name);
    const beat = setInterval(() => touch(file), BEAT_MS);
    beat.unref();
    return {
      isHeld: () => existsSync(file),
      [Symbol.dispose]: () => {
        clearInterval(beat);
        removeFile(file);
        removeFolder(this.path);
      },
    };
  }

  /** Never fails: the reason for giving up is what the caller should hear. */
  drop(): void {
    try {
      rmSync(this.#waiting, { recursive: true, force: true });
    } catch {
      // Where it could not be removed it could not be made either, or the next holder sweeps it.
    }
  }

  #rename(): boolean {
    try {
      renameSync(this.#waiting, this.path);
      return true;
    } catch (error) {
      if (BUSY.has(errorCode(error) ?? '')) return false;
      throw unlockable(this.path, error);
    }
  }

  #holder(): string | undefined {
    try {
      return readdirSync(this.path)[0];
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw unlockable(this.path, error);
    }
  }

  #isDead(holder: string): boolean {
    const alive = isAlive(holder);
    if (alive !== undefined) return !alive;
    // It can't be asked for: its beats tell. Only our own clock is read, for theirs may differ.
    const beat = statSync(join(this.path, holder), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const now = this.#clock.monotonic();
    if (this.#watched?.name !== holder || this.#watched.beat !== beat) {
      this.#watched = { name: holder, beat, since: now };
    }
    return now - this.#watched.since >= STALE_MS;
  }

  /** Removes what killed waiters left. */
  #sweep(): void {
    for (const entry of readdirSync(this.#folder)) {
      if (!entry.startsWith(this.#prefix)) continue;
      const path = join(this.#folder, entry);
      const alive = isAlive(entry.slice(this.#prefix.length));
      if (alive === false || (alive === undefined && this.#isOld(path))) {
        rmSync(path, { recursive: true, force: true });
      }
    }
  }

  #isOld(path: string): boolean {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat !== undefined && this.#clock.now() - stat.mtimeMs > LEFTOVER_MS;
  }
}

/** What renaming onto a folder that is not empty fails with, by platform. */
const BUSY = new Set(['ENOTEMPTY', 'EEXIST', 'EPERM', 'EACCES']);

/** Longer with each attempt, and different for each process, so that many do not come at once. */
function pauseMs(attempt: number): number {
  const longest = Math.min(5 + attempt * 5, 40);
  return longest / 2 + ((process.pid * 7 + attempt * 13) % longest) / 2;
}

function touch(file: string): void {
  const now = new Date();
  try {
    utimesSync(file, now, now);
  } catch {
    // Gone: taken over. `isHeld` says so to whoever asks.
  }
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    // Somebody else removed it: the same outcome.
    if (errorCode(error) !== 'ENOENT') throw unlockable(path, error);
  }
}

function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody has it by now, or it is gone.
  }
}

function busy(path: string, waitMs: number): AilsdError {
  return new AilsdError('TIMEOUT', `another process has held ${path} for over ${waitMs} ms`, {
    hint: 'look for an ailsd that is stopped or stuck, and end it',
  });
}

function unlockable(path: string, error: unknown): AilsdError {
  const message = `${path} cannot be used as a lock (${errorCode(error) ?? 'unknown'})`;
  return new AilsdError('CREDENTIALS_UNWRITABLE', message, { cause: error });
}
