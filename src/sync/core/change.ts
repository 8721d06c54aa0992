/** Differences between trees: `applyChanges(base, diffTrees(base, target))` is the target. */
import { AilsdError } from '../../protocol/errors.js';
import { childrenOf, type Entry, isSameEntry } from './entry.js';
import { joinPath, TreeEditor } from './tree.js';

/** A whole tree in place of another one. The path of the root is empty. */
export interface Change {
  readonly path: string;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
}

/** The highest paths at which the two differ: none is below another. */
export function diffTrees(base: Entry | undefined, target: Entry | undefined, path = ''): Change[] {
  const changes: Change[] = [];
  collect(path, base, target, changes);
  return changes;
}

/** `after` may also be a folder alone: what it holds then comes in changes of its own, after it. */
export function applyChanges(
  base: Entry | undefined,
  changes: Iterable<Pick<Change, 'path' | 'after'>>,
): Entry | undefined {
  const editor = new TreeEditor(base);
  for (const { path, after } of changes) {
    if (editor.put(path, after)) continue;
    throw new AilsdError('INTERNAL', 'a change has no folder to be made in', {
      internal: `no folder for ${path}`,
    });
  }
  return editor.finish();
}

/** Whether it brings something, as against only taking away. */
export function isNews(change: Change): boolean {
  return change.after !== undefined;
}

/** Every name in any of the folders, once. */
export function unionOfNames(...folders: readonly (Entry | undefined)[]): Iterable<string> {
  const filled = folders.map(childrenOf).filter((children) => children.size > 0);
  const [first, ...others] = filled;
  if (first === undefined) return [];
  // Mostly the same names: a set is made only if there is one the first folder lacks.
  let names: Set<string> | undefined;
  for (const children of others) {
    for (const name of children.keys()) {
      if (first.has(name)) continue;
      names ??= new Set(first.keys());
      names.add(name);
    }
  }
  return names ?? first.keys();
}

function collect(
  path: string,
  base: Entry | undefined,
  target: Entry | undefined,
  changes: Change[],
): void {
  if (base === target) return;
  if (!isSameEntry(base, target)) {
    changes.push({ path, before: base, after: target });
    return;
  }
  for (const name of unionOfNames(base, target)) {
    collect(
      joinPath(path, name),
      childrenOf(base).get(name),
      childrenOf(target).get(name),
      changes,
    );
  }
}
