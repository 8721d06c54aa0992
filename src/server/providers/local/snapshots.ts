/** Snapshots of the local provider: a copy of a sandbox's workspace and home. All of one is there, or none of it. */
import { mkdir, mkdtemp, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import { ID_PATTERN, type SnapshotId } from '../../../protocol/ids.js';
import { copyTree } from './copy-tree.js';
import { removeTree } from './remove-tree.js';
import { toAilsd } from './sandbox-folders.js';

export class Snapshots {
  readonly #root: string;

  constructor(dir: string) {
    this.#root = join(dir, 'snapshots');
  }

  /** Of a sandbox that may be running: each file as it is when its turn comes. One that is there already is kept. */
  async take(id: SnapshotId, sandboxFolder: string, signal: AbortSignal): Promise<number> {
    const made = await this.#make(id);
    try {
      const bytes = await copyParts(sandboxFolder, made, signal);
      await rename(made, this.#folder(id));
      return bytes;
    } catch (error) {
      await removeTree(made);
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw toAilsd(error);
      throw new AilsdError('ALREADY_EXISTS', 'there is such a snapshot');
    }
  }

  /** Into a sandbox whose processes have ended. Cut short, each part is the old one or the new one, and it can be repeated. */
  async restore(id: SnapshotId, sandboxFolder: string, signal: AbortSignal): Promise<void> {
    const source = this.#folder(id);
    if ((await partsIn(source)).length === 0) {
      throw new AilsdError('NOT_FOUND', 'there is no such snapshot');
    }
    const made = await mkdtemp(join(sandboxFolder, '.restoring-'));
    try {
      await copyParts(source, made, signal);
      for (const part of PARTS) {
        await rename(join(sandboxFolder, part), join(made, `${part}.old`)).catch(ignoreAbsent);
        await rename(join(made, part), join(sandboxFolder, part)).catch(ignoreAbsent);
      }
    } catch (error) {
      throw toAilsd(error);
    } finally {
      await removeTree(made);
    }
  }

  async remove(id: SnapshotId): Promise<void> {
    const made = await this.#make(id);
    try {
      await rename(this.#folder(id), join(made, 'gone')).catch(ignoreAbsent);
    } finally {
      await removeTree(made);
    }
  }

  #folder(id: SnapshotId): string {
    if (ID_PATTERN.test(id)) return join(this.#root, id);
    throw new AilsdError('INVALID_REQUEST', 'that is not the id of a snapshot');
  }

  async #make(id: SnapshotId): Promise<string> {
    this.#folder(id);
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    return mkdtemp(join(this.#root, '.making-'));
  }
}

const PARTS = ['workspace', 'home'] as const;

async function copyParts(from: string, to: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for (const part of await partsIn(from)) {
    bytes += await copyTree(join(from, part), join(to, part), signal);
  }
  return bytes;
}

async function partsIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder);
    return PARTS.filter((part) => names.includes(part));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function ignoreAbsent(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}
