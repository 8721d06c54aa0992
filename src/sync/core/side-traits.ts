/** What a side's disk cannot keep, and how its scans are read all the same: names, case, normal forms, executable bits. */
import type { Change } from './change.js';
import { childrenOf, type Entry, type Problem, type Side } from './entry.js';
import type { Plan } from './reconcile.js';
import { entryAt, joinPath } from './tree.js';

export interface SideTraits {
  readonly caseSensitive: boolean;
  readonly keepsExecutable: boolean;
  /** What the disk makes of names; `undefined` when it keeps them as they are. */
  readonly normalForm?: 'nfc' | 'nfd';
}

export interface PathProblem extends Problem {
  readonly path: string;
  readonly side: Side;
}

/**
 * A scan as it would be had the disk kept everything: a name that differs from a known one by normal form alone is that one,
 * and a file is as executable as where it is known. The references are asked in their order: baseline, then other side.
 */
export function readScan(
  scanned: Entry | undefined,
  traits: SideTraits,
  references: readonly (Entry | undefined)[],
): Entry | undefined {
  if (traits.keepsExecutable && traits.normalForm === undefined) return scanned;
  return restore(scanned, traits, references);
}

/** The plan without what a side's disk could not tell apart, and a problem for each name that had to be left out. */
export function holdClashes(
  plan: Plan,
  trees: Readonly<Record<Side, Entry | undefined>>,
  traits: Readonly<Record<Side, SideTraits>>,
): { readonly plan: Plan; readonly problems: readonly PathProblem[] } {
  const problems: PathProblem[] = [];
  const toLocal = withoutClashes('local', plan.toLocal, trees.local, traits.local, problems);
  const toRemote = withoutClashes('remote', plan.toRemote, trees.remote, traits.remote, problems);
  return problems.length === 0
    ? { plan, problems }
    : { plan: { ...plan, toLocal, toRemote }, problems };
}

/** Equal for names that such a disk takes for one. */
export function foldName(name: string, traits: SideTraits): string {
  const normal = traits.normalForm === undefined ? name : name.normalize('NFC');
  // Upper case first: some letters have one of these only, such as ß and the final sigma.
  return traits.caseSensitive ? normal : normal.normalize('NFC').toUpperCase().toLowerCase();
}

function restore(
  entry: Entry | undefined,
  traits: SideTraits,
  references: readonly (Entry | undefined)[],
): Entry | undefined {
  if (entry?.kind === 'file') {
    const known = references.find((one) => one?.kind === 'file');
    if (traits.keepsExecutable || known?.kind !== 'file') return entry;
    return known.executable === entry.executable
      ? entry
      : { ...entry, executable: known.executable };
  }
  if (entry?.kind !== 'folder') return entry;
  const spellings = traits.normalForm === undefined ? undefined : spellingsOf(references);
  const children = new Map<string, Entry>();
  let isSame = true;
  for (const [name, child] of entry.children) {
    const known = spellings?.get(name.normalize('NFC')) ?? name;
    const restored = restore(
      child,
      traits,
      references.map((one) => childrenOf(one).get(known)),
    );
    if (restored === undefined) continue;
    isSame &&= restored === child && known === name;
    children.set(known, restored);
  }
  return isSame ? entry : { ...entry, children };
}

/** By normal form, each name as the first reference that has it spells it. */
function spellingsOf(references: readonly (Entry | undefined)[]): Map<string, string> {
  const spellings = new Map<string, string>();
  for (const reference of references) {
    for (const name of childrenOf(reference).keys()) {
      const key = name.normalize('NFC');
      if (!spellings.has(key)) spellings.set(key, name);
    }
  }
  return spellings;
}

function withoutClashes(
  side: Side,
  changes: readonly Change[],
  tree: Entry | undefined,
  traits: SideTraits,
  problems: PathProblem[],
): readonly Change[] {
  if (traits.caseSensitive && traits.normalForm === undefined) return changes;
  const report = (path: string, other: string) => {
    const message = `on this side it could not be told apart from ${other}`;
    problems.push({ path, side, code: 'NAME_CLASH', message });
  };
  const folders = new Map<string, Change[]>();
  for (const change of changes) {
    const folder = change.path.slice(0, Math.max(change.path.lastIndexOf('/'), 0));
    const siblings = folders.get(folder);
    if (siblings === undefined) folders.set(folder, [change]);
    else siblings.push(change);
  }
  const held = new Set<Change>();
  for (const [folder, siblings] of folders) {
    const names = new Set(childrenOf(entryAt(tree, folder)).keys());
    const byName = new Map(siblings.map((change) => [nameOf(change.path), change]));
    for (const [name, { after }] of byName) {
      if (after === undefined) names.delete(name);
      else names.add(name);
    }
    for (const [name, other] of clashesAmong(names, traits)) {
      const change = byName.get(name);
      // One that is there already may well change: only what would come beside it is left out.
      if (change === undefined || change.before !== undefined || change.path === '') continue;
      held.add(change);
      report(change.path, joinPath(folder, other));
    }
  }
  return changes
    .filter((change) => !held.has(change))
    .map((change) => {
      const after = pruned(change.path, change.after, traits, report);
      return after === change.after ? change : { ...change, after };
    });
}

/** A tree that is to be made, without the names in it that clash. */
function pruned(
  path: string,
  entry: Entry | undefined,
  traits: SideTraits,
  report: (path: string, other: string) => void,
): Entry | undefined {
  if (entry?.kind !== 'folder') return entry;
  let children: Map<string, Entry> | undefined;
  for (const [name, other] of clashesAmong(entry.children.keys(), traits)) {
    children ??= new Map(entry.children);
    children.delete(name);
    report(joinPath(path, name), joinPath(path, other));
  }
  for (const [name, child] of children ?? entry.children) {
    const part = pruned(joinPath(path, name), child, traits, report);
    if (part === undefined || part === child) continue;
    children ??= new Map(entry.children);
    children.set(name, part);
  }
  return children === undefined ? entry : { ...entry, children };
}

/** Each name that another one folds to as well, with that other one. */
function clashesAmong(names: Iterable<string>, traits: SideTraits): Map<string, string> {
  const clashes = new Map<string, string>();
  const firsts = new Map<string, string>();
  for (const name of names) {
    const key = foldName(name, traits);
    const first = firsts.get(key);
    if (first === undefined) {
      firsts.set(key, name);
      continue;
    }
    clashes.set(name, first);
    if (!clashes.has(first)) clashes.set(first, name);
  }
  return clashes;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
