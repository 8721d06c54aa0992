/** What the provider keeps of its sandboxes on disk. Each step leaves all or nothing behind, whenever it is cut short. */
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import { ID_PATTERN, type SandboxId } from '../../../protocol/ids.js';
import { parse, type Schema } from '../../../protocol/parse.js';
import { sandboxId } from '../../../protocol/shapes/fields.js';
import {
  type SandboxAccessFile,
  type SandboxSpec,
  sandboxAccessFile,
  sandboxSpec,
} from '../../../protocol/shapes/sandboxd.js';
import { removeTree } from './remove-tree.js';

export class SandboxFolders {
  readonly #root: string;

  constructor(dir: string) {
    this.#root = join(dir, 'sandboxes');
  }

  folder(id: SandboxId): string {
    if (ID_PATTERN.test(id)) return join(this.#root, id);
    throw new AilsdError('INVALID_REQUEST', 'that is not the id of a sandbox');
  }

  /** With both files from the beginning, or not at all. One that is there stays as it is, with whoever's tokens are newest. */
  async make(spec: SandboxSpec, access: SandboxAccessFile): Promise<void> {
    const folder = this.folder(spec.id);
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const made = await mkdtemp(join(this.#root, `${MAKING}${spec.id}-`));
    try {
      await writeWhole(join(made, SPEC), spec);
      await writeWhole(join(made, ACCESS), access);
      await rename(made, folder);
      await syncFolder(this.#root);
    } catch (error) {
      await rm(made, { recursive: true, force: true });
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw toAilsd(error);
      await this.deliver(spec.id, access);
    }
  }

  /** An older one never replaces a newer. */
  async deliver(id: SandboxId, access: SandboxAccessFile): Promise<void> {
    const path = join(this.folder(id), ACCESS);
    const current = await readJson(path, sandboxAccessFile);
    if (current === undefined && (await this.spec(id)) === undefined) throw noSuchSandbox();
    if (current !== undefined && current.generation > access.generation) return;
    await replaceFile(path, access);
  }

  /** For a daemon that comes: it is not to run this one. */
  async markStopped(id: SandboxId): Promise<void> {
    await replaceFile(join(this.folder(id), 'state.json'), { state: 'stopped' });
  }

  async spec(id: SandboxId): Promise<SandboxSpec | undefined> {
    return readJson(join(this.folder(id), SPEC), sandboxSpec);
  }

  async ids(): Promise<readonly SandboxId[]> {
    return (await namesIn(this.#root)).flatMap((name) => {
      const parsed = parse(sandboxId, name, 'INVALID_REQUEST', '');
      return parsed.ok ? [parsed.value] : [];
    });
  }

  /** Gone at once for everybody; what it takes longer to remove is found and removed later if we are cut short. */
  async remove(id: SandboxId): Promise<void> {
    const folder = this.folder(id);
    const gone = await this.#setAside(folder);
    if (gone !== undefined) await removeTree(gone);
  }

  /** Removes what was left half-made or half-removed by somebody who is not there any more. */
  async sweep(): Promise<void> {
    for (const name of await namesIn(this.#root)) {
      const path = join(this.#root, name);
      if (name.startsWith(GONE) || (name.startsWith(MAKING) && (await isOld(path)))) {
        await removeTree(path);
      }
    }
  }

  async #setAside(folder: string): Promise<string | undefined> {
    const aside = join(this.#root, `${GONE}${basename(folder)}-${process.pid}-${Date.now()}`);
    try {
      await rename(folder, aside);
      return aside;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }
}

const SPEC = 'spec.json';
const ACCESS = 'access.json';
/** No id begins with a dot. */
const MAKING = '.making-';
const GONE = '.gone-';

/** Making one takes milliseconds: whoever began this is not at it any more. */
export async function isOld(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > OLD_MS;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

const OLD_MS = 3_600_000;

export function noSuchSandbox(): AilsdError {
  return new AilsdError('NOT_FOUND', 'there is no such sandbox');
}

/** A full disk has a code of its own. */
export function toAilsd(error: unknown): unknown {
  if (!['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')) return error;
  return new AilsdError('STORAGE_FULL', 'the disk of the sandboxes is full', { cause: error });
}

async function writeWhole(path: string, value: unknown): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(JSON.stringify(value));
  await file.sync();
}

/** The old one or the new one, whole, whatever happens. */
async function replaceFile(path: string, value: unknown): Promise<void> {
  try {
    const made = await mkdtemp(join(dirname(path), '.replacing-'));
    try {
      await writeWhole(join(made, 'file'), value);
      await rename(join(made, 'file'), path);
      await syncFolder(dirname(path));
    } finally {
      await rm(made, { recursive: true, force: true });
    }
  } catch (error) {
    throw toAilsd(error);
  }
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

/** `undefined`: it is not there, or not what it should be. */
async function readJson<S extends Schema>(path: string, schema: S) {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    const parsed = parse(schema, value, 'CONFIG_INVALID', '');
    return parsed.ok ? parsed.value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) {
      return undefined;
    }
    throw error;
  }
}

async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
