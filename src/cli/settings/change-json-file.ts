/** Replaces small JSON files whole, one process at a time: a reader sees the old text or the new, and no change is lost. */

import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from '../../base/clock.js';
import { makeFolders } from '../../client/credentials/make-folders.js';
import { withLock } from '../../client/credentials/process-lock.js';
import { AilsdError } from '../../protocol/errors.js';
import { type JsonObject, readJsonFile, reasonOf, unreadable } from './json-file.js';

/**
 * Reads, changes and replaces a file while no other process of ours does: nobody's change is lost. Written beside
 * the file and renamed over it; a link is followed first, so that a dotfiles setup stays one.
 */
export async function changeJsonFile(
  path: string,
  isTrusted: (owner: number) => boolean,
  change: (before: JsonObject) => JsonObject,
): Promise<void> {
  const target = isLink(path) ? resolve(dirname(path), readlinkSync(path)) : path;
  const folder = dirname(target);
  try {
    makeFolders(folder);
    const name = basename(target);
    await withLock({ folder, name, clock: systemClock, waitMs: LOCK_WAIT_MS }, async () => {
      const read = readJsonFile(target, isTrusted);
      if (read.kind === 'foreign') throw unreadable(target, `it belongs to uid ${read.owner}`);
      replace(target, change(read.kind === 'read' ? read.value : {}));
    });
  } catch (error) {
    if (error instanceof AilsdError && error.code === 'CONFIG_INVALID') throw error;
    const cause = error instanceof AilsdError && error.cause !== undefined ? error.cause : error;
    throw new AilsdError('CONFIG_INVALID', `${path} cannot be written: ${reasonOf(cause)}`, {
      cause: error,
      hint: 'free space or make its folder writable, or set AILSD_CONFIG_DIR to one that is',
    });
  }
}

const LOCK_WAIT_MS = 10_000;
const TEMPORARY = '.tmp';

/** Under the lock: whatever lies beside the file from writers before us, they were killed. */
function replace(target: string, value: JsonObject): void {
  const folder = dirname(target);
  const prefix = `.${basename(target)}.`;
  for (const entry of readdirSync(folder)) {
    if (entry.startsWith(prefix) && entry.endsWith(TEMPORARY))
      rmSync(join(folder, entry), { force: true });
  }
  const temporary = join(folder, `${prefix}${process.pid}${TEMPORARY}`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    try {
      writeFileSync(descriptor, `${JSON.stringify(value, null, 2)}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
