/** Unpacks a tar archive into a folder: all of it is received and looked at before anything of it is put in place. */
import { lchown, link, mkdir, rename, symlink } from 'node:fs/promises';
import { errorCode } from '../../../base/error-code.js';
import { type TarEntry, TarError } from '../../../base/tar-entry.js';
import { readTar, type TarItem } from '../../../base/tar-reader.js';
import { AilsdError } from '../../../protocol/errors.js';
import { PATH_MAX_CHARS } from '../../../protocol/frame-fields.js';
import { badPath, type Name, stepsOf, toBytes } from './spelling.js';
import { walk } from './walk.js';
import type { Workspace } from './workspace.js';

export interface Unpacked {
  readonly files: number;
  readonly sizeBytes: number;
}

const MOST_ENTRIES = 200_000;
const NAME_MAX_BYTES = 255;

/** A thing of the archive that lies ready. */
interface Ready {
  readonly kind: 'file' | 'folder' | 'link';
  readonly steps: readonly Name[];
  /** Where it lies; folders are made in place. */
  readonly staged: string;
  readonly mode: number;
}

export async function unpack(
  workspace: Workspace,
  path: string,
  body: AsyncIterable<Uint8Array>,
): Promise<Unpacked> {
  const base = stepsOf(path);
  const folder = workspace.staging.newPath();
  await mkdir(folder, { mode: 0o700 });
  try {
    const archive = new Archive(workspace, base, folder);
    for await (const item of readTar(body)) await archive.take(item);
    // The rest of the body is padding; a caller who still sends it is to hear the answer.
    await archive.checkPlaces();
    await archive.place();
    return { files: archive.files, sizeBytes: archive.sizeBytes };
  } catch (error) {
    if (error instanceof TarError) throw badArchive(`it cannot be read: ${error.message}`);
    throw error;
  } finally {
    await workspace.staging.remove(folder);
  }
}

class Archive {
  files = 0;
  sizeBytes = 0;
  readonly #workspace: Workspace;
  readonly #base: readonly Name[];
  readonly #folder: string;
  readonly #ready = new Map<string, Ready>();

  constructor(workspace: Workspace, base: readonly Name[], folder: string) {
    this.#workspace = workspace;
    this.#base = base;
    this.#folder = folder;
  }

  async take({ entry, content }: TarItem): Promise<void> {
    const steps = stepsIn(entry.path);
    if (steps.length === 0 && entry.kind === 'folder') return;
    const key = steps.join('/');
    const before = this.#ready.get(key);
    const isFolderAgain = before?.kind === 'folder' && entry.kind === 'folder';
    if (steps.length === 0 || (before !== undefined && !isFolderAgain))
      throw badArchive('a name comes twice');
    if (this.#ready.size >= MOST_ENTRIES) throw badArchive('it holds too many things');
    for (let end = 1; end < steps.length; end += 1) {
      const parent = this.#ready.get(steps.slice(0, end).join('/'));
      if (parent !== undefined && parent.kind !== 'folder')
        throw badArchive('a name goes through a file or link');
    }
    const staged = `${this.#folder}/${this.#ready.size}`;
    const kind = await this.#stage(entry, steps, staged, content);
    this.#ready.set(key, { kind, steps, staged, mode: entry.mode & 0o777 });
  }

  /** What would be in the way, or leads out, is found before anything is changed. */
  async checkPlaces(): Promise<void> {
    const parents = new Set(
      [...this.#ready.values()].flatMap(({ steps }) =>
        steps.slice(1).map((_, at) => steps.slice(0, at + 1).join('/')),
      ),
    );
    for (const key of parents) {
      const one = this.#ready.get(key);
      if (one !== undefined && one.kind !== 'folder')
        throw badArchive('a name goes through a file or link');
    }
    for (const { steps, kind } of this.#ready.values()) {
      const all = [...this.#base, ...steps];
      try {
        await using found = await walk(this.#workspace.tree, all, { keepsLink: kind !== 'folder' });
        const { status } = found;
        const isFolder = found.name === undefined || status?.isDirectory() === true;
        if (status === undefined && found.name !== undefined) continue;
        if (isFolder !== (kind === 'folder')) throw badPath('something else is in its place');
      } catch (error) {
        if (errorCode(error) !== 'NOT_FOUND') throw error;
        await this.#checkParents(all);
      }
    }
  }

  async place(): Promise<void> {
    const { tree } = this.#workspace;
    // Also an empty archive makes the folder it is unpacked into.
    await this.#placeFolder(this.#base, 0o755);
    for (const { kind, steps, staged, mode } of this.#ready.values()) {
      const all = [...this.#base, ...steps];
      if (kind === 'folder') {
        await this.#placeFolder(all, mode);
        continue;
      }
      await using found = await walk(tree, all, { makes: true, keepsLink: true });
      if (found.name === undefined) throw badPath('it is a folder');
      await rename(staged, found.folder.at(found.name));
    }
  }

  async #placeFolder(steps: readonly Name[], mode: number): Promise<void> {
    const { tree } = this.#workspace;
    await using found = await walk(tree, steps, { makes: true });
    if (found.name === undefined || found.status?.isDirectory() === true) return;
    await mkdir(found.folder.at(found.name), { mode: 0o755 });
    await using made = await found.folder.folder(found.name);
    if (tree.owner !== undefined) await made.handle.chown(tree.owner.uid, tree.owner.gid);
    // One that its owner could not enter could not be filled or deleted either.
    await made.handle.chmod(mode | 0o700);
  }

  /** A file where a folder has to be is said before anything is changed. */
  async #checkParents(steps: readonly Name[]): Promise<void> {
    for (let end = steps.length - 1; end > 0; end -= 1) {
      try {
        await using found = await walk(this.#workspace.tree, steps.slice(0, end));
        if (found.name === undefined || found.status?.isDirectory() === true) return;
        if (found.status !== undefined) throw badPath('a part of the path is no folder');
      } catch (error) {
        if (errorCode(error) !== 'NOT_FOUND') throw error;
      }
    }
  }

  async #stage(
    entry: TarEntry,
    steps: readonly Name[],
    staged: string,
    content: TarItem['content'],
  ): Promise<Ready['kind']> {
    switch (entry.kind) {
      case 'folder':
        return 'folder';
      case 'file': {
        const { mode, modifiedAtMs } = entry;
        const options = { mode, modifiedAtMs, isSynced: false };
        const { sizeBytes } = await this.#workspace.stage(staged, content(), options);
        this.files += 1;
        this.sizeBytes += sizeBytes;
        return 'file';
      }
      case 'hard-link': {
        const first = this.#ready.get(stepsIn(entry.target).join('/'));
        if (first?.kind !== 'file') throw badArchive('a hard link to what is not in it');
        await link(first.staged, staged);
        this.files += 1;
        return 'file';
      }
      case 'link':
        checkTarget(this.#base.length + steps.length - 1, entry.target);
        await symlink(toBytes(entry.target), staged);
        await this.#own(staged);
        this.files += 1;
        return 'link';
      case 'other':
        throw badArchive('it holds something that is neither file, folder nor link');
    }
  }

  async #own(staged: string): Promise<void> {
    const { owner } = this.#workspace.tree;
    if (owner !== undefined) await lchown(staged, owner.uid, owner.gid);
  }
}

/** Relative, and never above the workspace. `depth`: of the folder the link is in. */
function checkTarget(depth: number, target: string): void {
  if (target === '' || target.startsWith('/') || target.includes('\0'))
    throw badArchive('a link leads out of the workspace');
  let at = depth;
  for (const step of target.split('/')) {
    if (step === '..') at -= 1;
    else if (step !== '' && step !== '.') at += 1;
    if (at < 0) throw badArchive('a link leads out of the workspace');
  }
}

/** `./` in front is how most archives begin. */
function stepsIn(path: string): readonly Name[] {
  if (path.startsWith('/') || path.includes('\0') || path.length > PATH_MAX_CHARS)
    throw badArchive('a name leads out of the folder');
  const steps = path.split('/').filter((step) => step !== '' && step !== '.');
  if (steps.includes('..')) throw badArchive('a name leads out of the folder');
  if (steps.some(({ length }) => length > NAME_MAX_BYTES)) throw badArchive('a name is too long');
  return steps;
}

function badArchive(why: string): AilsdError {
  return new AilsdError('INVALID_REQUEST', `the archive is refused: ${why}`, {
    details: { field: 'body' },
  });
}
