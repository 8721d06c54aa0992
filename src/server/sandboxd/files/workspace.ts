/** The files of one sandbox: found without ever leaving its workspace, read as one version, replaced whole and only if still as expected. */
import { createHash } from 'node:crypto';
import { type FileHandle, link, open, rename, unlink } from 'node:fs/promises';
import type { Clock } from '../../../base/clock.js';
import { errorCode } from '../../../base/error-code.js';
import { ALWAYS, type Conditions, checkWrite, needsTag } from './conditions.js';
import { ContentHashes, etagOf } from './content-hash.js';
import { notThere } from './failures.js';
import type { Folder } from './folder.js';
import { badPath, leadsOut, type Name, stepsOf } from './spelling.js';
import type { Staging } from './staging.js';
import { type Found, type Tree, walk } from './walk.js';

export interface WrittenContent {
  readonly isNew: boolean;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** What somebody opened: close it after use. */
export type Opened =
  | ({ readonly kind: 'file'; readonly handle: FileHandle } & AsyncDisposable)
  | ({ readonly kind: 'folder'; readonly folder: Folder } & AsyncDisposable);

const NEW_FILE_MODE = 0o644;
const PERMISSIONS = 0o777;

export class Workspace {
  readonly tree: Tree;
  readonly staging: Staging;
  readonly hashes: ContentHashes;
  /** Writers of one name, one after another. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(tree: Tree, staging: Staging, clock: Clock) {
    this.tree = tree;
    this.staging = staging;
    this.hashes = new ContentHashes(clock);
  }

  /** A file or a folder; anything else is nothing to read from. */
  async open(path: string): Promise<Opened> {
    const found = await walk(this.tree, stepsOf(path));
    const { folder, name, status } = found;
    if (name === undefined)
      return { kind: 'folder', folder, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
    await using _found = found;
    if (status === undefined) throw notThere();
    if (status.isDirectory()) {
      const inner = await folder.folder(name);
      return {
        kind: 'folder',
        folder: inner,
        [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
      };
    }
    const handle = await this.openFile(folder, name);
    return { kind: 'file', handle, [Symbol.asyncDispose]: () => handle.close() };
  }

  /** Only a file, and only one that is the sandbox's: a second name of a file elsewhere may have been put here. */
  async openFile(folder: Folder, name: Name): Promise<FileHandle> {
    const status = await folder.status(name);
    if (status === undefined) throw notThere();
    if (status.isSymbolicLink()) throw leadsOut();
    if (!status.isFile()) throw badPath('it is neither a file nor a folder');
    const handle = await folder.file(name);
    try {
      const { nlink, uid, ...opened } = await handle.stat({ bigint: true }).then((now) => ({
        nlink: now.nlink,
        uid: now.uid,
        isFile: now.isFile(),
      }));
      if (!opened.isFile) throw badPath('it is neither a file nor a folder');
      if (nlink > 1n && uid !== BigInt(this.#uid())) throw leadsOut();
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Replaces the file, or makes it, once all of the body is here; until then, and if anything fails, what was there stays. */
  async write(
    path: string,
    body: AsyncIterable<Uint8Array>,
    conditions: Conditions,
    signal: AbortSignal,
  ): Promise<WrittenContent> {
    const steps = stepsOf(path);
    if (steps.length === 0) throw badPath('the workspace itself is no file');
    await this.#checkEarly(steps, conditions, signal);
    const staged = this.staging.newPath();
    try {
      const { sizeBytes, sha256 } = await this.stage(staged, body);
      await using found = await walk(this.tree, steps, { makes: true });
      const { folder, name } = found;
      if (name === undefined) throw badPath('it is a folder');
      const isNew = await this.#inTurn(folder, name, () =>
        this.#replace(folder, name, staged, conditions, signal),
      );
      await folder.sync();
      return { isNew, sizeBytes, sha256 };
    } finally {
      await unlink(staged).catch(() => undefined);
    }
  }

  /** A file or link is gone at once, and so is a folder with all that is in it. */
  async remove(path: string, conditions: Conditions, signal: AbortSignal): Promise<void> {
    const steps = stepsOf(path);
    if (steps.length === 0) throw badPath('the workspace itself can not be deleted');
    await using found = await walk(this.tree, steps, { keepsLink: true });
    const { folder, name } = found;
    if (name === undefined) throw badPath('it is a folder');
    const removed = this.staging.newPath();
    await this.#inTurn(folder, name, async () => {
      const status = await folder.status(name);
      if (status === undefined) throw notThere();
      checkWrite(conditions, await this.#tagOf(folder, name, conditions, signal));
      await rename(folder.at(name), removed);
      await folder.sync();
    });
    await this.staging.remove(removed);
  }

  /** Writes a file of ours that is ready to be moved into place. */
  async stage(
    path: string,
    body: AsyncIterable<Uint8Array>,
    { mode = NEW_FILE_MODE, isSynced = true, modifiedAtMs }: StageOptions = {},
  ): Promise<{ readonly sizeBytes: number; readonly sha256: string }> {
    const { owner } = this.tree;
    const hash = createHash('sha256');
    let sizeBytes = 0;
    const handle = await open(path, 'wx', 0o600);
    try {
      for await (const chunk of body) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        await writeAll(handle, chunk);
      }
      if (owner !== undefined) await handle.chown(owner.uid, owner.gid);
      await handle.chmod(mode & PERMISSIONS);
      if (modifiedAtMs !== undefined) await handle.utimes(new Date(), new Date(modifiedAtMs));
      if (isSynced) await handle.sync();
    } finally {
      await handle.close();
    }
    return { sizeBytes, sha256: hash.digest('hex') };
  }

  /** True: there was nothing before. */
  async #replace(
    folder: Folder,
    name: Name,
    staged: string,
    conditions: Conditions,
    signal: AbortSignal,
  ): Promise<boolean> {
    const before = await folder.status(name);
    if (before?.isDirectory() === true) throw badPath('it is a folder');
    checkWrite(conditions, await this.#tagOf(folder, name, conditions, signal));
    if (conditions.ifNoneMatch === '*' && (await this.#linkNew(folder, name, staged))) return true;
    if (before?.isFile() === true && Number(before.mode & 0o777n) !== NEW_FILE_MODE) {
      const handle = await open(staged, 'r');
      await handle.chmod(Number(before.mode) & PERMISSIONS).finally(() => handle.close());
    }
    await rename(staged, folder.at(name));
    return before === undefined;
  }

  /** Also no program of the sandbox that is faster can be overwritten so. False: this disk knows no second names. */
  async #linkNew(folder: Folder, name: Name, staged: string): Promise<boolean> {
    try {
      await link(staged, folder.at(name));
      return true;
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EEXIST') checkWrite({ ...ALWAYS, ifNoneMatch: '*' }, null);
      if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EMLINK') return false;
      throw error;
    }
  }

  /** So that a body nobody will take need not be sent. */
  async #checkEarly(
    steps: readonly Name[],
    conditions: Conditions,
    signal: AbortSignal,
  ): Promise<void> {
    let found: Found;
    try {
      found = await walk(this.tree, steps);
    } catch (error) {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
      checkWrite(conditions, undefined);
      return;
    }
    await using _found = found;
    const { folder, name, status } = found;
    if (name === undefined || status?.isDirectory() === true) throw badPath('it is a folder');
    checkWrite(conditions, await this.#tagOf(folder, name, conditions, signal));
  }

  /** `null` where something is there whose tag nobody asked for, or that has none. */
  async #tagOf(
    folder: Folder,
    name: Name,
    conditions: Conditions,
    signal: AbortSignal,
  ): Promise<string | null | undefined> {
    const status = await folder.status(name);
    if (status === undefined) return undefined;
    if (!status.isFile() || !needsTag(conditions)) return null;
    const handle = await this.openFile(folder, name);
    try {
      return etagOf((await this.hashes.of(handle, signal)).sha256);
    } finally {
      await handle.close();
    }
  }

  async #inTurn<T>(folder: Folder, name: Name, work: () => Promise<T>): Promise<T> {
    const { dev, ino } = await folder.handle.stat({ bigint: true });
    const key = `${dev}:${ino}:${name}`;
    const before = this.#turns.get(key);
    const turn = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    this.#turns.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    }
  }

  #uid(): number {
    return this.tree.owner?.uid ?? process.getuid?.() ?? 0;
  }
}

export interface StageOptions {
  readonly mode?: number;
  readonly isSynced?: boolean;
  readonly modifiedAtMs?: number;
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) {
    const { bytesWritten } = await handle.write(chunk, at, chunk.length - at);
    at += bytesWritten;
  }
}
