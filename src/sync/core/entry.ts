/** What is at a path of a synchronised tree. Nothing there is `undefined`. Entries never change: trees share them. */

export type Side = 'local' | 'remote';

/** What a person or an agent put there. Alike by digest and executable bit; no clock is part of it. */
export interface FileEntry {
  readonly kind: 'file';
  /** 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  readonly executable: boolean;
  readonly by?: By;
}

export interface FolderEntry {
  readonly kind: 'folder';
  readonly children: ReadonlyMap<string, Entry>;
  readonly by?: By;
}

export interface LinkEntry {
  readonly kind: 'link';
  /** As written, never followed. */
  readonly target: string;
  readonly by?: By;
}

/** There, but not to be read or synced, so that nothing at or below it is known to be gone. */
export interface ProblemEntry {
  readonly kind: 'problem';
  readonly problem: Problem;
}

/** There, but of no concern, and not looked into. */
export interface IgnoredEntry {
  readonly kind: 'ignored';
}

export type Entry = FileEntry | FolderEntry | LinkEntry | ProblemEntry | IgnoredEntry;

/** Who is known to have made it; `at` is for people to read and never compared. */
export interface By {
  readonly actor: 'human' | 'agent';
  readonly subject?: string;
  readonly toolCallId?: string;
  readonly at?: string;
}

/** Why one path is not synced. The code is for programs, the message for people. */
export interface Problem {
  readonly code: string;
  readonly message: string;
}

export const IGNORED: IgnoredEntry = { kind: 'ignored' };

export function folderOf(children: Iterable<readonly [string, Entry]>, by?: By): FolderEntry {
  const map = new Map(children);
  return by === undefined
    ? { kind: 'folder', children: map }
    : { kind: 'folder', children: map, by };
}

export function childrenOf(entry: Entry | undefined): ReadonlyMap<string, Entry> {
  return entry?.kind === 'folder' ? entry.children : NO_CHILDREN;
}

/** Whether two are the same at their own path; two folders are, whatever is in them. */
export function isSameEntry(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  switch (a.kind) {
    case 'file':
      return b.kind === 'file' && a.sha256 === b.sha256 && a.executable === b.executable;
    case 'link':
      return b.kind === 'link' && a.target === b.target;
    case 'problem':
      return (
        b.kind === 'problem' &&
        a.problem.code === b.problem.code &&
        a.problem.message === b.problem.message
      );
    case 'folder':
    case 'ignored':
      return a.kind === b.kind;
  }
}

/** Whether two are the same with all that is below them. */
export function isSameTree(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === b) return true;
  if (!isSameEntry(a, b)) return false;
  const mine = childrenOf(a);
  const theirs = childrenOf(b);
  if (mine.size !== theirs.size) return false;
  for (const [name, child] of mine) {
    if (!isSameTree(child, theirs.get(name))) return false;
  }
  return true;
}

/** The part of a tree that can be synced; the very same object where that is all of it. */
export function syncable(entry: Entry | undefined): Entry | undefined {
  if (entry === undefined || entry.kind === 'problem' || entry.kind === 'ignored') return undefined;
  if (entry.kind !== 'folder') return entry;
  let kept: Map<string, Entry> | undefined;
  for (const [name, child] of entry.children) {
    const part = syncable(child);
    if (part === child) continue;
    kept ??= new Map(entry.children);
    if (part === undefined) kept.delete(name);
    else kept.set(name, part);
  }
  return kept === undefined ? entry : { ...entry, children: kept };
}

/** What a folder alone, without what is in it, is: the other kinds are themselves. */
export function withoutChildren(entry: Entry): Entry {
  if (entry.kind !== 'folder' || entry.children.size === 0) return entry;
  return { ...entry, children: NO_CHILDREN };
}

/** Files and links at and below: what would be lost with it. */
export function countFiles(entry: Entry | undefined): number {
  if (entry === undefined) return 0;
  if (entry.kind === 'file' || entry.kind === 'link') return 1;
  let count = 0;
  for (const child of childrenOf(entry).values()) count += countFiles(child);
  return count;
}

const NO_CHILDREN: ReadonlyMap<string, Entry> = new Map();
