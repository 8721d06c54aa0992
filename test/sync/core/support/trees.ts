/** Trees for tests: written short, made at random, and carried through a round as both sides would. */
import fc from 'fast-check';
import { applyChanges } from '../../../../src/sync/core/change.js';
import { type Entry, folderOf, IGNORED } from '../../../../src/sync/core/entry.js';
import type { Plan, Trees } from '../../../../src/sync/core/reconcile.js';

/** As the cases write it: a label stands for a content. */
export type Written =
  | null
  | { readonly file: string; readonly exec?: boolean }
  | { readonly dir: Readonly<Record<string, Written>> }
  | { readonly link: string }
  | { readonly untracked: true }
  | { readonly problem: string };

export function treeOf(written: Written): Entry | undefined {
  if (written === null) return undefined;
  if ('file' in written) return file(written.file, written.exec ?? false);
  if ('link' in written) return { kind: 'link', target: written.link };
  if ('untracked' in written) return IGNORED;
  if ('problem' in written) {
    return { kind: 'problem', problem: { code: 'UNREADABLE', message: written.problem } };
  }
  return folderOf(
    Object.entries(written.dir).flatMap(([name, child]) => {
      const entry = treeOf(child);
      return entry === undefined ? [] : [[name, entry] as const];
    }),
  );
}

export function file(label: string, executable = false): Entry {
  return { kind: 'file', sha256: label, size: label.length, executable };
}

/** The three trees when everything planned was done. */
export function afterRound({ baseline, local, remote }: Trees, plan: Plan): Trees {
  return {
    baseline: applyChanges(applyChanges(baseline, plan.agreed), [
      ...plan.toLocal,
      ...plan.toRemote,
    ]),
    local: applyChanges(local, plan.toLocal),
    remote: applyChanges(remote, plan.toRemote),
  };
}

const names = fc.constantFrom('a', 'b', 'c', 'd');
const leaf: fc.Arbitrary<Entry> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('v1', 'v2', 'v3').map((label) => file(label)) },
  { weight: 1, arbitrary: fc.constant(file('v1', true)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('a', 'b').map((target) => ({ kind: 'link' as const, target })),
  },
);
const odd: fc.Arbitrary<Entry> = fc.constantFrom<Entry>(IGNORED, {
  kind: 'problem',
  problem: { code: 'UNREADABLE', message: 'permission denied' },
});

function treesOf(leaves: fc.Arbitrary<Entry>): fc.Arbitrary<Entry | undefined> {
  const { tree } = fc.letrec<{ tree: Entry; folder: Entry }>((tie) => ({
    tree: fc.oneof({ maxDepth: 3, depthSize: 'small' }, leaves, tie('folder')),
    folder: fc
      .uniqueArray(fc.tuple(names, tie('tree')), { maxLength: 4, selector: ([name]) => name })
      .map((children) => folderOf(children)),
  }));
  const root = fc
    .uniqueArray(fc.tuple(names, tree), { maxLength: 4, selector: ([name]) => name })
    .map((children) => folderOf(children));
  return fc.oneof(
    { weight: 12, arbitrary: root },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}

/** What was agreed on, and what each side made of it: half of it untouched, the rest put over at random. */
export const anyTrees: fc.Arbitrary<Trees> = fc
  .tuple(
    treesOf(leaf),
    treesOf(fc.oneof({ weight: 12, arbitrary: leaf }, { weight: 1, arbitrary: odd })),
    treesOf(fc.oneof({ weight: 12, arbitrary: leaf }, { weight: 1, arbitrary: odd })),
    fc.constantFrom('free', 'local-edited', 'remote-edited', 'both-edited'),
  )
  .map(([baseline, local, remote, how]) => ({
    baseline,
    local: how === 'free' ? local : how === 'remote-edited' ? baseline : over(baseline, local),
    remote: how === 'free' ? remote : how === 'local-edited' ? baseline : over(baseline, remote),
  }));

/** The edits put over the base; a name the edits have as `a` deletes `b`, so that there are deletions too. */
function over(base: Entry | undefined, edits: Entry | undefined): Entry | undefined {
  if (base?.kind !== 'folder' || edits?.kind !== 'folder') return edits;
  const children = new Map(base.children);
  for (const [name, edit] of edits.children) {
    if (name === 'a') children.delete('b');
    const merged = over(children.get(name), edit);
    if (merged !== undefined) children.set(name, merged);
  }
  return { ...base, children };
}
