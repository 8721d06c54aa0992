/** Removes a folder that hostile programs wrote in: they may have made it unreadable for its owner. Links are removed, never followed. */
import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';

export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes(errorCode(error) ?? '')) throw error;
    await openFolders(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Whoever wrote in it is gone by now: nothing is swapped between looking and changing. */
async function openFolders(path: string): Promise<void> {
  const entry = await lstat(path);
  if (!entry.isDirectory()) return;
  if ((entry.mode & OWNER_ALL) !== OWNER_ALL) await chmod(path, OWNER_ALL);
  for (const child of await readdir(path, { withFileTypes: true })) {
    if (child.isDirectory()) await openFolders(join(path, child.name));
  }
}

const OWNER_ALL = 0o700;
