/** Where files are made before they are moved into the workspace, and folders are taken to be deleted: out of every program's sight. */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { Folder } from './folder.js';

/** What a daemon before us left in it is gone when this returns. */
export async function openStaging(folder: string, workspace: string): Promise<Staging> {
  const beside = join(folder, 'staging');
  const within = join(workspace, '.ailsd-staging');
  await mkdir(beside, { recursive: true, mode: 0o700 });
  if (await reaches(beside, workspace)) {
    await new Staging(within).sweep();
    await rm(within, { recursive: true, force: true });
    return swept(new Staging(beside));
  }
  // The workspace is a file system of its own: nothing is moved into it at once but from inside.
  await mkdir(within, { recursive: true, mode: 0o700 });
  return swept(new Staging(within));
}

export class Staging {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Of something that is not there yet. */
  newPath(): string {
    return join(this.path, randomBytes(12).toString('hex'));
  }

  async sweep(): Promise<void> {
    for (const name of await readdir(this.path).catch(() => []))
      await this.remove(join(this.path, name));
  }

  /**
   * Deletes what lies at a path of ours, a folder with all that is in it. Folders in it are moved up here first, so that however deep
   * it is, and whatever a program still does in it, each step is one name in one open folder.
   */
  async remove(path: string): Promise<void> {
    const left = [path];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (!(await isFolder(next))) {
        await unlink(next).catch(unlessGone);
        continue;
      }
      await this.#empty(next, left);
    }
  }

  async #empty(path: string, left: string[]): Promise<void> {
    {
      await using folder = await Folder.open(path);
      for await (const name of folder.names()) {
        const status = await folder.status(name);
        if (status?.isDirectory() !== true) {
          const isMoved = await unlink(folder.at(name)).then(
            () => false,
            (error) => errorCode(error) === 'EISDIR' || errorCode(error) === 'EPERM',
          );
          if (!isMoved) continue;
        }
        const moved = this.newPath();
        await rename(folder.at(name), moved).then(() => left.push(moved), unlessGone);
      }
    }
    try {
      await rmdir(path);
    } catch (error) {
      // Somebody who still had it open put something into it.
      if (errorCode(error) === 'ENOTEMPTY') left.push(path);
      else unlessGone(error);
    }
  }
}

async function swept(staging: Staging): Promise<Staging> {
  await staging.sweep();
  return staging;
}

/** Tried, since two mounts of one file system look like one. */
async function reaches(staging: string, workspace: string): Promise<boolean> {
  const probe = randomBytes(12).toString('hex');
  const there = join(workspace, `.ailsd-probe-${probe}`);
  await writeFile(join(staging, probe), '', { mode: 0o600 });
  try {
    await rename(join(staging, probe), there);
    await unlink(there);
    return true;
  } catch (error) {
    await unlink(join(staging, probe)).catch(unlessGone);
    if (errorCode(error) === 'EXDEV') return false;
    throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch {
    return false;
  }
}

function unlessGone(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}
