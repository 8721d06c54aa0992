/** A server's data folder: `server.json`, and the store unless that is elsewhere. Its owner's alone. */

import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import { CONFIG_FILE } from '../config.js';
import { makeFolders } from '../store/make-folders.js';

/** Reads `server.json`. Whoever can change it can send everybody's tokens anywhere. */
export async function readConfigFile(folder: string): Promise<unknown> {
  const path = join(resolve(folder), CONFIG_FILE);
  const file = await openIn(folder, path);
  try {
    const { mode, size } = await file.stat();
    if (process.platform !== 'win32' && (mode & WRITABLE_BY_OTHERS) !== 0)
      throw invalid(`${path} can be changed by others`, 'make it yours alone: chmod 600');
    if (size > CONFIG_MAX_BYTES) throw invalid(`${path} is too large`);
    return JSON.parse(await file.readFile('utf8'));
  } catch (cause) {
    if (cause instanceof AilsdError) throw cause;
    throw invalid(`${path} cannot be read: ${reasonOf(cause)}`);
  } finally {
    await file.close();
  }
}

/**
 * Makes the folder, if need be, and claims it by the file: of two at once one wins. The claim is given up when
 * `fill` fails, and folders that were made for it go.
 */
export async function createDataFolder<T>(
  folder: string,
  config: object,
  fill: () => Promise<T>,
): Promise<T> {
  const path = join(resolve(folder), CONFIG_FILE);
  const missing = await missingFolders(resolve(folder));
  try {
    await makeFolder(folder);
    await claim(path, config);
    try {
      return await fill();
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  } catch (error) {
    // Only what is empty goes: another may have begun to use it.
    for (const made of missing) await rmdir(made).catch(() => undefined);
    throw error;
  }
}

/** The innermost first. */
async function missingFolders(path: string): Promise<readonly string[]> {
  const isThere = await stat(path).then(
    () => true,
    (error: unknown) => errorCode(error) !== 'ENOENT',
  );
  const parent = dirname(path);
  if (isThere || parent === path) return [];
  return [path, ...(await missingFolders(parent))];
}

const CONFIG_MAX_BYTES = 64 * 1024;
const WRITABLE_BY_OTHERS = 0o022;

async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolders(resolve(folder));
    const { mode, uid } = await stat(folder);
    const isOurs = process.getuid === undefined || uid === process.getuid();
    if (!isOurs || (process.platform !== 'win32' && (mode & 0o077) !== 0))
      throw invalid(
        `${folder} is open to others`,
        'name a new folder, or make it yours: chmod 700',
      );
  } catch (cause) {
    if (cause instanceof AilsdError) throw cause;
    throw invalid(`${folder} cannot be made: ${reasonOf(cause)}`);
  }
}

async function claim(path: string, config: object): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (cause) {
    if (errorCode(cause) !== 'EEXIST') throw invalid(`${path} cannot be made: ${reasonOf(cause)}`);
    throw new AilsdError('ALREADY_EXISTS', 'this folder already holds a server', {
      details: { field: 'dir' },
      hint: 'start it with `ailsd server start`, or name another folder',
    });
  }
  try {
    await file.writeFile(`${JSON.stringify(config, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function openIn(folder: string, path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    if (errorCode(cause) !== 'ENOENT') throw invalid(`${path} cannot be read: ${reasonOf(cause)}`);
    throw new AilsdError('NOT_FOUND', `${folder} holds no server`, {
      details: { field: 'dir' },
      hint: 'make one with `ailsd server init --dir DIR`',
    });
  }
}

/** A name nobody guesses or has: 128 random bits behind a word for what it names. */
export function freshId(kind: 'usr' | 'svc' | 'app' | 'trust'): string {
  return `${kind}_${randomBytes(16).toString('hex')}`;
}

function invalid(message: string, hint = 'see docs/operating.md'): AilsdError {
  return new AilsdError('CONFIG_INVALID', message, { hint });
}

function reasonOf(error: unknown): string {
  return errorCode(error) ?? (error instanceof SyntaxError ? 'it is not JSON' : String(error));
}
