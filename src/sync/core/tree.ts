/** Trees of entries: finding, walking, and editing without touching the tree one began with. */
import { type By, childrenOf, type Entry, type FolderEntry, isSameEntry } from './entry.js';

/** The root's path is empty. */
export function joinPath(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** A folder before what is in it, and all of that before the folder's next neighbour. */
export function comparePaths(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const mine = a.charCodeAt(at);
    const theirs = b.charCodeAt(at);
    if (mine !== theirs) {
      if (mine === SLASH) return -1;
      return theirs === SLASH ? 1 : mine - theirs;
    }
  }
  return a.length - b.length;
}

export function entryAt(tree: Entry | undefined, path: string): Entry | undefined {
  if (path === '') return tree;
  let entry = tree;
  for (const name of path.split('/')) entry = childrenOf(entry).get(name);
  return entry;
}

/** Every entry with its path, folders before what is in them, names in the order of `comparePaths`. */
export function* walkTree(
  tree: Entry | undefined,
  path = '',
): Generator<readonly [path: string, entry: Entry], void, undefined> {
  if (tree === undefined) return;
  yield [path, tree];
  const children = childrenOf(tree);
  for (const name of [...children.keys()].sort()) {
    yield* walkTree(children.get(name), joinPath(path, name));
  }
}

/**
 * The fresh tree, made of the known one's own objects wherever the two are alike: memory is paid once, and what is the same
 * object need not be compared.
 */
export function shareTree(fresh: Entry | undefined, known: Entry | undefined): Entry | undefined {
  if (fresh === undefined || known === undefined || fresh === known) return fresh;
  if (!isSameEntry(fresh, known) || !isSameBy(byOf(fresh), byOf(known))) {
    return fresh.kind === 'folder' && known.kind === 'folder' ? shareFolder(fresh, known) : fresh;
  }
  if (fresh.kind !== 'folder' || known.kind !== 'folder') return known;
  const shared = shareFolder(fresh, known);
  if (shared.children.size !== known.children.size) return shared;
  for (const [name, child] of shared.children) {
    if (known.children.get(name) !== child) return shared;
  }
  return known;
}

function shareFolder(fresh: FolderEntry, known: FolderEntry): FolderEntry {
  const children = new Map<string, Entry>();
  for (const [name, child] of fresh.children) {
    children.set(name, shareTree(child, known.children.get(name)) ?? child);
  }
  return { ...fresh, children };
}

/** Makes any number of edits; each folder on the way is copied once, all others stay shared. */
export class TreeEditor {
  #root: Entry | undefined;
  /** The folders that are this editor's own, with what it may change in them. */
  readonly #own = new Map<Entry, Map<string, Entry>>();

  constructor(tree: Entry | undefined) {
    this.#root = tree;
  }

  /** Puts a whole tree at the path. `false`, and nothing done, where there is no folder to put it in. */
  put(path: string, entry: Entry | undefined): boolean {
    if (path === '') {
      this.#root = entry;
      return true;
    }
    const cut = path.lastIndexOf('/');
    const siblings = this.#open(cut === -1 ? '' : path.slice(0, cut));
    const name = path.slice(cut + 1);
    if (siblings === undefined) return entry === undefined;
    if (entry === undefined) siblings.delete(name);
    else siblings.set(name, entry);
    return true;
  }

  /** As `put`, of the path alone: a folder that stays one keeps what is in it. */
  putAlone(path: string, entry: Entry | undefined): boolean {
    const current = entryAt(this.#root, path);
    if (entry?.kind !== 'folder' || current?.kind !== 'folder') return this.put(path, entry);
    return this.put(path, { ...entry, children: current.children });
  }

  at(path: string): Entry | undefined {
    return entryAt(this.#root, path);
  }

  /** The tree as edited. What is edited afterwards shows only in the next one. */
  finish(): Entry | undefined {
    this.#own.clear();
    return this.#root;
  }

  /** What is in the folder at the path, to be changed. */
  #open(path: string): Map<string, Entry> | undefined {
    if (this.#root?.kind !== 'folder') return undefined;
    let siblings = this.#own.get(this.#root);
    if (siblings === undefined) {
      siblings = new Map(this.#root.children);
      this.#root = { ...this.#root, children: siblings };
      this.#own.set(this.#root, siblings);
    }
    if (path === '') return siblings;
    for (const name of path.split('/')) {
      const folder: Entry | undefined = siblings.get(name);
      if (folder?.kind !== 'folder') return undefined;
      let children = this.#own.get(folder);
      if (children === undefined) {
        children = new Map(folder.children);
        const copy: Entry = { ...folder, children };
        this.#own.set(copy, children);
        siblings.set(name, copy);
      }
      siblings = children;
    }
    return siblings;
  }
}

const SLASH = 0x2f;

function byOf(entry: Entry): By | undefined {
  return 'by' in entry ? entry.by : undefined;
}

function isSameBy(a: By | undefined, b: By | undefined): boolean {
  return (
    a?.actor === b?.actor &&
    a?.subject === b?.subject &&
    a?.toolCallId === b?.toolCallId &&
    a?.at === b?.at
  );
}
