/**
 * Copies a folder in which programs may be at work, and hostile: every entry is reached by the descriptor of its folder and opened without
 * following links, so a folder swapped for a link between two steps leads nowhere. Shares the blocks where the file system can.
 */
import { constants } from 'node:fs';
import {
  chmod,
  copyFile,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readlink,
  symlink,
  utimes,
} from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';

/** Files, folders and links; sockets, pipes and devices are left out. Returns the bytes of its files. `to` must not be there. */
export async function copyTree(from: string, to: string, signal: AbortSignal): Promise<number> {
  await using folder = await openFolder(from);
  return await copyFolder(folder, to, 0, signal);
}

/** Each level holds a descriptor. */
const MAX_DEPTH = 256;
const { COPYFILE_EXCL, COPYFILE_FICLONE, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } =
  constants;

async function copyFolder(
  folder: FileHandle,
  to: string,
  depth: number,
  signal: AbortSignal,
): Promise<number> {
  if (depth > MAX_DEPTH) {
    throw new AilsdError('INVALID_REQUEST', `folders are nested more than ${MAX_DEPTH} deep`);
  }
  const { mode, atime, mtime } = await folder.stat();
  await mkdir(to, { mode: 0o700 });
  let bytes = 0;
  for (const entry of await readdir(insideOf(folder), { withFileTypes: true })) {
    signal.throwIfAborted();
    const source = join(insideOf(folder), entry.name);
    const target = join(to, entry.name);
    if (entry.isSymbolicLink()) await copyLink(source, target);
    else if (entry.isDirectory()) bytes += await copyInner(source, target, depth, signal);
    else if (entry.isFile()) bytes += await copyContent(source, target);
  }
  await chmod(to, mode & PERMISSIONS);
  await utimes(to, atime, mtime);
  return bytes;
}

/** Neither setuid nor setgid nor sticky. */
const PERMISSIONS = 0o777;

async function copyInner(
  source: string,
  target: string,
  depth: number,
  signal: AbortSignal,
): Promise<number> {
  const folder = await ifStillThere(openFolder(source));
  if (folder === undefined) return 0;
  await using inner = folder;
  return await copyFolder(inner, target, depth + 1, signal);
}

async function copyContent(source: string, target: string): Promise<number> {
  const opened = await ifStillThere(open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (opened === undefined) return 0;
  await using file = opened;
  const { mode, size, atime, mtime } = await file.stat();
  if (!(await file.stat()).isFile()) return 0;
  // By the descriptor: what is copied is what was looked at.
  await copyFile(insideOf(file), target, COPYFILE_EXCL | COPYFILE_FICLONE);
  await chmod(target, mode & PERMISSIONS);
  await utimes(target, atime, mtime);
  return size;
}

async function copyLink(source: string, target: string): Promise<void> {
  const text = await ifStillThere(readlink(source, 'buffer'));
  if (text !== undefined) await symlink(text, target);
}

function openFolder(path: string): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/** What a descriptor stands for, as a path. Only Linux has such paths; elsewhere there is no isolation to get round. */
function insideOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Removed, or become something else, since it was listed: then it was not there. */
async function ifStillThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL', 'ENXIO'].includes(errorCode(error) ?? '')) {
      return undefined;
    }
    throw error;
  }
}
