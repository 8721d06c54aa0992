/** The file a SQLite database is kept in: it holds keys and hashes, so it is its owner's alone. */
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { makeFolders } from './make-folders.js';

/** Makes what is missing, a folder 0700 and a file 0600, and gives the file's absolute path. */
export async function prepareSqliteFile(path: string, logger: Logger): Promise<string> {
  const file = resolve(path);
  let handle: FileHandle | undefined;
  try {
    await makeFolders(dirname(file));
    // SQLite gives its side files, `-wal` and `-shm`, the mode of this one.
    handle = await open(file, 'a', 0o600);
    await closeToOthers(handle, file, logger);
    return await realpath(file);
  } catch (cause) {
    throw new AilsdError('CONFIG_INVALID', 'the database file can not be made or opened', {
      cause,
      details: { path },
      hint: 'make the database file and its folder yours',
    });
  } finally {
    await handle?.close();
  }
}

async function closeToOthers(handle: FileHandle, file: string, logger: Logger): Promise<void> {
  const { mode } = await handle.stat();
  if ((mode & 0o077) === 0) return;
  // Volumes that are mounted for a group open every file to it at each start: mended, not refused.
  await handle.chmod(0o600);
  logger.warn('the database file was open to others and is no longer', { file });
}
