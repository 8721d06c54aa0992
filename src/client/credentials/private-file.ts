/** Small files that are ours alone: 0600 in a 0700 folder, read without following traps, replaced whole or not at all. */

import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import { makeFolders } from './make-folders.js';

export interface PrivateFolder {
  readonly path: string;
  /** Who we are; absent where the platform has no user ids, and the profile's own access rules must do. */
  readonly userId: number | undefined;
}

/** `undefined` where there is none. Throws CREDENTIALS_UNSAFE where somebody else could have had a hand in it. */
export function readPrivateFile(folder: PrivateFolder, name: string): string | undefined {
  if (!checkFolder(folder)) return undefined;
  const path = join(folder.path, name);
  const seen = lstatSync(path, { throwIfNoEntry: false });
  if (seen === undefined) return undefined;
  checkFile(folder, path, seen);
  let descriptor: number | undefined;
  try {
    // Neither flag matters unless the file was swapped since: no link is followed, no pipe waited for.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    checkFile(folder, path, fstatSync(descriptor));
    return readWhole(descriptor, path);
  } catch (error) {
    if (error instanceof AilsdError) throw error;
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new AilsdError(
      'NOT_LOGGED_IN',
      `${path} cannot be read (${errorCode(error) ?? 'unknown'})`,
      {
        cause: error,
      },
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Temporary file beside it, synced, renamed over it, folder synced: at every moment the old text or the new. */
export function replacePrivateFile(
  folder: PrivateFolder,
  name: string,
  text: string,
  room?: PrivateRoom,
): void {
  const path = join(folder.path, name);
  let temporary: string | undefined;
  try {
    makeFolder(folder);
    checkTarget(folder, path);
    temporary = room?.path ?? `${path}.${uniqueName()}${TEMPORARY}`;
    if (room === undefined) writeNew(temporary, text);
    else fill(temporary, text);
    renameSync(temporary, path);
    syncFolder(folder);
  } catch (error) {
    if (temporary !== undefined) rmSync(temporary, { force: true });
    throw unwritable(path, error);
  }
}

/** Room on the disk that is taken already: what is to replace a file later is written into it. */
export interface PrivateRoom extends Disposable {
  readonly path: string;
}

/** Throws CREDENTIALS_UNWRITABLE where there is none. What a killed holder of the same name left is taken over. */
export function reserveRoom(folder: PrivateFolder, name: string, bytes: number): PrivateRoom {
  const path = join(folder.path, name);
  const remove = (): void => rmSync(path, { force: true });
  try {
    makeFolder(folder);
    remove();
    writeNew(path, ' '.repeat(bytes));
  } catch (error) {
    remove();
    throw unwritable(path, error);
  }
  return { path, [Symbol.dispose]: remove };
}

/** Whether there was one. */
export function removePrivateFile(folder: PrivateFolder, name: string): boolean {
  const path = join(folder.path, name);
  try {
    if (!checkFolder(folder) || !checkTarget(folder, path)) return false;
    unlinkSync(path);
    syncFolder(folder);
    return true;
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Removes what killed writers left; only for a caller that knows that nobody else is writing. */
export function sweepTemporaries(folder: PrivateFolder, name: string): void {
  for (const entry of readdirSync(folder.path)) {
    if (entry.startsWith(`${name}.`) && entry.endsWith(TEMPORARY)) {
      rmSync(join(folder.path, entry), { force: true });
    }
  }
}

/** Makes the folder if need be, and makes sure that it is ours alone. */
export function makeFolder(folder: PrivateFolder): void {
  if (checkFolder(folder)) return;
  makeFolders(folder.path);
  // An odd umask can take even our own bits.
  chmodSync(folder.path, 0o700);
  checkFolder(folder);
}

export function unwritable(path: string, error: unknown): AilsdError {
  if (error instanceof AilsdError) return error;
  const message = `${path} cannot be written (${errorCode(error) ?? 'unknown'})`;
  return new AilsdError('CREDENTIALS_UNWRITABLE', message, { cause: error });
}

const TEMPORARY = '.tmp';
const MOST_BYTES = 4 * 1024 * 1024;
const OTHERS = 0o077;

let made = 0;

/** Unlike any other process's, without asking for randomness: who, since when, how often. */
export function uniqueName(): string {
  made += 1;
  const since = Math.round(performance.timeOrigin * 1_000).toString(36);
  return `${process.pid}-${since}-${made}`;
}

/** Below a file there is nothing, which Node says by throwing. */
function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') return undefined;
    throw unsafe(path, `cannot be looked at (${errorCode(error) ?? 'unknown'})`);
  }
}

/** False where there is none. A link to a folder is followed if it is our own link: dotfiles are often kept that way. */
function checkFolder({ path, userId }: PrivateFolder): boolean {
  const entry = lookAt(path);
  if (entry === undefined) return false;
  const folder = entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry;
  if (folder === undefined || !folder.isDirectory()) throw unsafe(path, 'is not a folder');
  if (userId === undefined) return true;
  if (entry.uid !== userId || folder.uid !== userId) throw unsafe(path, 'belongs to somebody else');
  if ((folder.mode & OTHERS) === 0) return true;
  throw unsafe(path, 'is open to others', `chmod 700 ${path}`);
}

function checkFile({ userId }: PrivateFolder, path: string, stat: Stats): void {
  if (stat.isSymbolicLink()) throw unsafe(path, 'is a link');
  if (!stat.isFile()) throw unsafe(path, 'is not a file');
  if (userId === undefined) return;
  if (stat.uid !== userId) throw unsafe(path, 'belongs to somebody else');
  if ((stat.mode & OTHERS) !== 0) throw unsafe(path, 'is open to others', `chmod 600 ${path}`);
}

/** What is about to be replaced or removed, if there is anything. */
function checkTarget(folder: PrivateFolder, path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  checkFile(folder, path, stat);
  return true;
}

function unsafe(path: string, why: string, remedy?: string): AilsdError {
  return new AilsdError('CREDENTIALS_UNSAFE', `${path} ${why}`, {
    details: { path },
    ...(remedy === undefined ? {} : { hint: `if nobody has tampered with it: ${remedy}` }),
  });
}

function writeNew(path: string, text: string): void {
  writeText(path, constants.O_CREAT | constants.O_EXCL, text);
}

/** In the place of what is there, block for block. */
function fill(path: string, text: string): void {
  writeText(path, 0, text);
}

function writeText(path: string, flags: number, text: string): void {
  const { O_WRONLY, O_NOFOLLOW } = constants;
  const descriptor = openSync(path, O_WRONLY | O_NOFOLLOW | flags, 0o600);
  try {
    fchmodSync(descriptor, 0o600);
    const whole = Buffer.from(text);
    let rest = whole;
    while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest));
    ftruncateSync(descriptor, whole.length);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** So that the new name survives a power cut; platforms without user ids can't open folders. */
function syncFolder({ path, userId }: PrivateFolder): void {
  if (userId === undefined) return;
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function readWhole(descriptor: number, path: string): string {
  const { size } = fstatSync(descriptor);
  if (size > MOST_BYTES) throw unsafe(path, `is larger than ${MOST_BYTES} bytes`);
  // One more than it should need: a read of zero then says that this was all.
  const buffer = Buffer.alloc(size + 1);
  let length = 0;
  while (length < buffer.length) {
    const read = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (read === 0) break;
    length += read;
  }
  return buffer.toString('utf8', 0, length);
}
