/** The brakes: every way to lose a root halts, ordinary work does not, and a first run only adds. */
import { describe, expect, it } from 'vitest';
import { type Entry, folderOf, IGNORED, type Side } from '../../../src/sync/core/entry.js';
import { splitFirstRun, summarize } from '../../../src/sync/core/first-run.js';
import { reconcile, type SyncMode, type Trees } from '../../../src/sync/core/reconcile.js';
import {
  countDeletions,
  findHalts,
  type HaltReason,
  haltError,
  type Instances,
  type SafetyOptions,
} from '../../../src/sync/core/safety.js';
import { file, treeOf } from './support/trees.js';

const AGREED: Instances = { local: 'one', remote: 'two' };
const synced = filesOf(100);

/** Each as one side may be met, with the folder it is found in. */
const WAYS: readonly [
  how: string,
  reason: HaltReason,
  tree: Entry | undefined,
  instance?: string,
][] = [
  ['is gone', 'root-missing', undefined],
  ['is emptied', 'root-emptied', folderOf([])],
  ['has only empty folders left', 'root-emptied', folderOf([['src', folderOf([])]])],
  ['has only ignored things left', 'root-emptied', folderOf([['node_modules', IGNORED]])],
  ['became a file', 'root-not-a-folder', file('v1')],
  ['became a link', 'root-not-a-folder', { kind: 'link', target: 'elsewhere' }],
  [
    'cannot be read',
    'root-unreadable',
    { kind: 'problem', problem: { code: 'EACCES', message: 'permission denied' } },
  ],
  ['is an empty mount point', 'root-replaced', folderOf([]), 'another'],
  [
    'is another mount with other files',
    'root-replaced',
    treeOf({ dir: { other: { file: 'v9' } } }),
    'another',
  ],
  ['was made anew with the same files', 'root-replaced', filesOf(100), 'another'],
  ['lost more than half of its files', 'many-deletions', filesOf(49)],
  ['lost all files but one', 'many-deletions', filesOf(1)],
];

describe('a root that is lost', () => {
  it('is lost in 24 ways', () => {
    expect(WAYS.length * 2).toBe(24);
  });

  describe.each(['local', 'remote'] as const)('%s', (side) => {
    it.each(WAYS)('%s: halts', (_, reason, tree, instance) => {
      const trees = sides(side, tree);
      const instances = { ...AGREED, [side]: instance ?? AGREED[side] };
      const halts = findHalts(optionsOf(trees, { instances }));
      expect(halts.map((halt) => halt.reason)).toContain(reason);
      const [first] = halts;
      if (first === undefined) return;
      expect(haltError([first])).toMatchObject({ code: 'SYNC_HALTED', message: first.message });
    });
  });

  it('goes on once somebody said so, for that reason alone', () => {
    const trees = sides('remote', filesOf(40));
    expect(findHalts(optionsOf(trees, { allowed: new Set(['root-emptied']) }))).toHaveLength(1);
    expect(findHalts(optionsOf(trees, { allowed: new Set(['many-deletions']) }))).toEqual([]);
  });

  it('halts in every mode when the source is emptied', () => {
    for (const mode of ['two-way-safe', 'two-way-resolved', 'push', 'mirror'] as const) {
      expect(findHalts(optionsOf(sides('local', folderOf([])), {}, mode)).length).toBeGreaterThan(
        0,
      );
    }
  });
});

describe('ordinary work', () => {
  it('goes on: half of the files, or 49 of them, may be deleted', () => {
    expect(findHalts(optionsOf(sides('local', filesOf(50))))).toEqual([]);
    const few = { baseline: filesOf(60), local: filesOf(11), remote: filesOf(60) };
    expect(findHalts(optionsOf(few))).toEqual([]);
  });

  it('counts 50 of 99 and 51 of 100 as too many, and a bound of one’s own before both', () => {
    expect(findHalts(optionsOf(sides('local', filesOf(49)))).at(0)?.deletions).toBe(51);
    const odd = { baseline: filesOf(99), local: filesOf(49), remote: filesOf(99) };
    expect(findHalts(optionsOf(odd)).at(0)?.deletions).toBe(50);
    expect(findHalts(optionsOf(sides('local', filesOf(49)), { maxDeletions: 51 }))).toEqual([]);
    expect(findHalts(optionsOf(sides('local', filesOf(98)), { maxDeletions: 1 }))).toHaveLength(1);
  });

  it('takes a folder that was moved for no deletion', () => {
    const moved = folderOf([['src', filesOf(100)]]);
    const trees = { baseline: synced, local: moved, remote: synced };
    const plan = reconcile(trees, 'two-way-safe');
    expect(countDeletions(plan.toRemote)).toBe(0);
    expect(findHalts(optionsOf(trees))).toEqual([]);
  });

  it('needs no baseline, nor a root on the other side', () => {
    const trees = { baseline: undefined, local: synced, remote: undefined };
    expect(findHalts({ ...optionsOf(trees), agreedWith: undefined })).toEqual([]);
  });
});

describe('a first run', () => {
  it('adds, and holds what would take something away', () => {
    const local = treeOf({ dir: { mine: { file: 'v1' }, both: { file: 'v1' } } });
    const remote = treeOf({ dir: { theirs: { file: 'v2' }, both: { file: 'v2' } } });
    const trees = { baseline: undefined, local, remote };
    const { additions, held } = splitFirstRun(reconcile(trees, 'mirror'));
    expect(additions.toRemote.map(({ path }) => path)).toEqual(['mine']);
    expect(held.map(({ path, side }) => `${side} ${path}`)).toEqual([
      'remote both',
      'remote theirs',
    ]);
    expect(splitFirstRun(reconcile(trees, 'two-way-safe')).held).toEqual([]);
  });

  it('says what it amounts to', () => {
    const trees = { baseline: undefined, local: filesOf(3), remote: treeOf({ dir: {} }) };
    const { toRemote } = reconcile(trees, 'two-way-safe');
    expect(summarize(toRemote)).toEqual({ created: 3, updated: 0, removed: 0, bytes: 18 });
  });
});

function filesOf(count: number): Entry {
  return folderOf(
    Array.from({ length: count }, (_, at) => [`f${at}`, file(`v${String(at).padStart(5, '0')}`)]),
  );
}

function sides(side: Side, tree: Entry | undefined): Trees {
  return { baseline: synced, local: synced, remote: synced, [side]: tree };
}

function optionsOf(
  trees: Trees,
  more: Partial<SafetyOptions> = {},
  mode: SyncMode = 'two-way-safe',
): SafetyOptions {
  const plan = reconcile(trees, mode);
  return { trees, plan, agreedWith: AGREED, instances: AGREED, ...more };
}
