/** Goes to a path step by step, holding each folder open: links are followed while they stay inside, and one that leads out ends it. */
import type { BigIntStats } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { errorCode } from '../../../base/error-code.js';
import { notThere } from './failures.js';
import { Folder } from './folder.js';
import { badPath, leadsOut, type Name, toName } from './spelling.js';

export interface Tree {
  /** The host's path of the workspace. */
  readonly workspace: string;
  /** How programs inside call it: what links that are written whole begin with. */
  readonly workspaceInside: string;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/** A place in a folder that is held open: close it after use. */
export interface Found extends AsyncDisposable {
  readonly folder: Folder;
  /** `undefined`: the folder itself is meant. */
  readonly name: Name | undefined;
  /** What was there a moment ago. */
  readonly status: BigIntStats | undefined;
}

export interface WalkOptions {
  /** Makes the folders that are missing on the way. */
  readonly makes?: boolean;
  /** A link at the end is meant itself; it is still refused if it leads out. */
  readonly keepsLink?: boolean;
}

/** As many as the kernel follows; also how often something may change under our feet. */
const MOST_TURNS = 40;

export async function walk(
  tree: Tree,
  steps: readonly Name[],
  options: WalkOptions = {},
): Promise<Found> {
  await using walker = new Walker(tree, options);
  return await walker.to(steps);
}

class Walker implements AsyncDisposable {
  readonly #tree: Tree;
  readonly #options: WalkOptions;
  #folder: Folder | undefined;
  /** Real folders from the root to where we are. */
  #done: Name[] = [];
  #turns = 0;

  constructor(tree: Tree, options: WalkOptions) {
    this.#tree = tree;
    this.#options = options;
  }

  async to(steps: readonly Name[]): Promise<Found> {
    const left = [...steps];
    await this.#goTo([]);
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (name === '.' || name === '') continue;
      if (name === '..') {
        if (this.#done.length === 0) throw leadsOut();
        await this.#goTo(this.#done.slice(0, -1));
        continue;
      }
      const status = await this.#at().status(name);
      if (status?.isSymbolicLink() === true) {
        if (left.length === 0 && this.#options.keepsLink === true) {
          await this.#checkLink([...this.#done, name]);
          return this.#found(name, status);
        }
        left.unshift(...(await this.#throughLink(name)));
        continue;
      }
      if (left.every((one) => one === '.')) return this.#found(name, status);
      if (status === undefined && this.#options.makes !== true) throw notThere();
      if (status !== undefined && !status.isDirectory()) {
        if (this.#options.makes === true) throw badPath('a part of the path is no folder');
        throw notThere();
      }
      if (!(await this.#into(name, status === undefined))) left.unshift(name);
    }
    return this.#found(undefined, undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder?.[Symbol.asyncDispose]();
  }

  #at(): Folder {
    if (this.#folder === undefined) throw notThere();
    return this.#folder;
  }

  /** Hands the open folder over. */
  #found(name: Name | undefined, status: BigIntStats | undefined): Found {
    const folder = this.#at();
    this.#folder = undefined;
    return { folder, name, status, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
  }

  async #goTo(steps: readonly Name[]): Promise<void> {
    await this.#enter(await Folder.open(this.#tree.workspace));
    this.#done = [];
    // What was a folder before and is not now may be anything: no second look.
    for (const step of steps) {
      await this.#enter(await this.#at().folder(step));
      this.#done.push(step);
    }
  }

  async #enter(next: Folder): Promise<void> {
    const before = this.#folder;
    this.#folder = next;
    await before?.[Symbol.asyncDispose]();
  }

  /** False: it has changed since it was looked at. */
  async #into(name: Name, isNew: boolean): Promise<boolean> {
    const { owner } = this.#tree;
    try {
      if (isNew) await mkdir(this.#at().at(name), { mode: 0o755 });
      const next = await this.#at().folder(name);
      await this.#enter(next);
      if (isNew && owner !== undefined) await next.handle.chown(owner.uid, owner.gid);
    } catch (error) {
      if (!CHANGED.has(errorCode(error) ?? '')) throw error;
      this.#turn();
      return false;
    }
    this.#done.push(name);
    return true;
  }

  /** The steps that take its place. */
  async #throughLink(name: Name): Promise<readonly Name[]> {
    this.#turn();
    const target = await this.#at().target(name);
    if (target === undefined) return [name];
    if (!target.startsWith('/')) return target.split('/').filter((step) => step !== '');
    const inside = toName(this.#tree.workspaceInside);
    if (target !== inside && !target.startsWith(`${inside}/`)) throw leadsOut();
    await this.#goTo([]);
    return target
      .slice(inside.length)
      .split('/')
      .filter((step) => step !== '');
  }

  /** A link is not followed, but where it leads decides whether it may be touched. */
  async #checkLink(steps: readonly Name[]): Promise<void> {
    try {
      await using _followed = await walk(this.#tree, steps);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'NOT_FOUND') return;
      throw error;
    }
  }

  #turn(): void {
    this.#turns += 1;
    if (this.#turns > MOST_TURNS) throw leadsOut();
  }
}

const CHANGED = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EEXIST']);
