/** A plan made into steps, some of which fail or never happen, and the baseline that follows from what did. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { advanceBaseline, openBaseline } from '../../../src/sync/core/baseline.js';
import { applyChanges, diffTrees } from '../../../src/sync/core/change.js';
import { childrenOf, type Entry, isSameEntry, isSameTree } from '../../../src/sync/core/entry.js';
import { linkProblem } from '../../../src/sync/core/link.js';
import { reconcile, type Trees } from '../../../src/sync/core/reconcile.js';
import { conflictPath, resolveConflict } from '../../../src/sync/core/resolve.js';
import { holdClashes, readScan } from '../../../src/sync/core/side-traits.js';
import {
  fromState,
  isSameState,
  type Step,
  type StepResult,
  toState,
  toSteps,
} from '../../../src/sync/core/step.js';
import { entryAt, shareTree, TreeEditor, walkTree } from '../../../src/sync/core/tree.js';
import {
  applyScanned,
  fromWireChange,
  fromWireResult,
  snapshotLines,
  toWireChange,
  toWireEntries,
  toWireResult,
} from '../../../src/sync/core/wire.js';
import { anyTrees, file, treeOf } from './support/trees.js';

const RUNS = process.env['AILSD_SOAK'] === '1' ? 50_000 : 3_000;

describe('trees', () => {
  it('a base with its difference from a target put on it is the target, and the base is untouched', () => {
    fc.assert(
      fc.property(anyTrees, ({ local, remote }) => {
        const lines = [...snapshotLines(local)];
        expect(isSameTree(applyChanges(local, diffTrees(local, remote)), remote)).toBe(true);
        expect([...snapshotLines(local)]).toEqual(lines);
      }),
      { numRuns: RUNS },
    );
  });

  it('a fresh tree that is like the known one is the known one', () => {
    fc.assert(
      fc.property(anyTrees, ({ local, remote }) => {
        const fresh = applyScanned(undefined, toWireEntries(local));
        expect(shareTree(fresh, local)).toBe(local);
        expect(isSameTree(shareTree(remote, local), remote)).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });

  it('pass the wire without loss, whole or as what differs', () => {
    const by = {
      actor: 'agent',
      subject: 'bot',
      toolCallId: 't1',
      at: '2026-02-27T20:20:00Z',
    } as const;
    const tree = applyChanges(treeOf({ dir: { d: { dir: { f: { file: 'v1' } } } } }), [
      { path: 'd/g', after: { kind: 'file', sha256: 'v2', size: 2, executable: true, by } },
    ]);
    const wire = [...toWireEntries(tree)];
    expect(applyScanned(undefined, JSON.parse(JSON.stringify(wire)))).toEqual(tree);
    const less = applyScanned(tree, [{ path: 'd', kind: 'folder' }], [{ path: 'd/f' }]);
    expect([...snapshotLines(less)]).toEqual([
      '["","folder"]',
      '["d","folder"]',
      '["d/g","file","v2",2,true]',
    ]);
    expect(() => applyScanned(undefined, [{ path: 'x', kind: 'ignored' }])).toThrow(
      /never told of/,
    );
    const step: Step = { path: 'a', expect: { kind: 'absent' }, to: { kind: 'folder' }, by };
    expect(fromWireChange(toWireChange(step))).toEqual(step);
    const result: StepResult = { outcome: 'conflict', current: { kind: 'absent' }, by };
    expect(fromWireResult(toWireResult(result))).toEqual(result);
  });
});

describe('a round', () => {
  it('done whole, brings the sides and the baseline where the plan said', () => {
    fc.assert(
      fc.property(anyTrees, (trees) => {
        const plan = reconcile(trees, 'two-way-safe');
        const after = carryOut(trees, () => true);
        expect(isSameTree(after.local, applyChanges(trees.local, plan.toLocal))).toBe(true);
        expect(isSameTree(after.remote, applyChanges(trees.remote, plan.toRemote))).toBe(true);
        const changes = [...plan.agreed, ...plan.toLocal, ...plan.toRemote];
        expect(isSameTree(after.baseline, applyChanges(trees.baseline, changes))).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });

  it('of which any steps fail loses nothing that was to come back, and ends where it would have ended', () => {
    fc.assert(
      fc.property(anyTrees, fc.infiniteStream(fc.boolean()), (trees, coins) => {
        const whole = carryOut(trees, () => true);
        const partly = carryOut(trees, () => coins.next().value === true);
        const mended = carryOut(partly, () => true);
        for (const [path, entry] of walkTree(whole.local)) {
          if (entry.kind !== 'file' && entry.kind !== 'link') continue;
          expect(isSameEntry(entryAt(mended.local, path), entry), path).toBe(true);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('removes from below and first, and makes folders before what is in them', () => {
    const before = treeOf({ dir: { old: { dir: { x: { file: 'v1' } } } } });
    const after = treeOf({ dir: { Old: { dir: { x: { file: 'v1' } } } } });
    const changes = diffTrees(before, after).reverse();
    expect(changes.map(({ path }) => path)).toEqual(['Old', 'old']);
    const steps = toSteps(changes, () => ({ actor: 'agent' }));
    expect(steps.map(({ path, to }) => `${path} ${to.kind}`)).toEqual([
      'old/x absent',
      'old absent',
      'Old folder',
      'Old/x file',
    ]);
    expect(steps[0]?.by).toEqual({ actor: 'agent' });
  });
});

describe('a disk that keeps less', () => {
  const insensitive = { caseSensitive: false, keepsExecutable: true };
  const exact = { caseSensitive: true, keepsExecutable: true };

  it('gets neither of two names it could not tell apart, and a problem says so', () => {
    const local = treeOf({
      dir: {
        a: { file: 'v1' },
        A: { file: 'v2' },
        d: { dir: { x: { file: 'v1' }, X: { file: 'v2' } } },
      },
    });
    const remote = treeOf({ dir: {} });
    const plan = reconcile({ baseline: remote, local, remote }, 'two-way-safe');
    const held = holdClashes(plan, { local, remote }, { local: exact, remote: insensitive });
    expect(held.plan.toRemote).toEqual([
      { path: 'd', before: undefined, after: treeOf({ dir: {} }) },
    ]);
    expect(held.problems.map(({ path }) => path).sort()).toEqual(['A', 'a', 'd/X', 'd/x']);
    expect(holdClashes(plan, { local, remote }, { local: exact, remote: exact }).problems).toEqual(
      [],
    );
  });

  it('lets a name change its case, and one that is there change its content', () => {
    const remote = treeOf({ dir: { core: { file: 'v1' }, k: { file: 'v1' } } });
    const local = treeOf({ dir: { Core: { file: 'v1' }, k: { file: 'v2' }, K: { file: 'v3' } } });
    const plan = reconcile({ baseline: remote, local, remote }, 'two-way-safe');
    const held = holdClashes(plan, { local, remote }, { local: exact, remote: insensitive });
    expect(held.plan.toRemote.map(({ path }) => path)).toEqual(['Core', 'core', 'k']);
    expect(held.problems.map(({ path }) => path)).toEqual(['K']);
  });

  it('that respells names or drops executable bits is read as if it had not', () => {
    const baseline = treeOf({ dir: { 'caf\u00e9': { dir: { run: { file: 'v1', exec: true } } } } });
    const scanned = treeOf({ dir: { 'cafe\u0301': { dir: { run: { file: 'v1' } } } } });
    const traits = { caseSensitive: true, keepsExecutable: false, normalForm: 'nfd' } as const;
    expect(isSameTree(readScan(scanned, traits, [baseline]), baseline)).toBe(true);
    expect(readScan(scanned, exact, [baseline])).toBe(scanned);
  });

  it.each([
    ['a', 'b', undefined],
    ['d/a', '../b', undefined],
    ['d/a', 'x/../../b', undefined],
    ['a', '../b', 'LINK_OUTSIDE'],
    ['d/a', '../../b', 'LINK_OUTSIDE'],
    ['a', '/etc', 'LINK_OUTSIDE'],
    ['a', 'C:/x', 'LINK_OUTSIDE'],
    ['d/a', '../../d/a', 'LINK_OUTSIDE'],
    ['a', 'x\\y', 'LINK_NOT_PORTABLE'],
    ['a', '', 'LINK_NOT_PORTABLE'],
  ])('a link at %s to %s is a problem: %s', (path, target, code) => {
    expect(linkProblem(path, target)?.code).toBe(code);
  });
});

describe('a decision', () => {
  const trees = {
    baseline: treeOf({ dir: { 'a.txt': { file: 'v1' } } }),
    local: treeOf({ dir: { 'a.txt': { file: 'v2' } } }),
    remote: treeOf({ dir: { 'a.txt': { file: 'v3' } } }),
  };

  it('for one side names the version that loses; for both, none does', () => {
    expect(resolveConflict(trees, 'a.txt', { choice: 'local' })).toMatchObject({
      toLocal: [],
      toRemote: [{ path: 'a.txt', after: file('v2') }],
      losing: [{ side: 'remote', entry: file('v3') }],
    });
    expect(resolveConflict(trees, 'a.txt', { choice: 'remote' })).toMatchObject({
      toRemote: [],
      losing: [{ side: 'local', entry: file('v2') }],
    });
    expect(resolveConflict(trees, 'a.txt', { choice: 'both', copyPath: 'c' })).toMatchObject({
      toLocal: [{ path: 'c', after: file('v3') }],
      toRemote: [{ path: 'a.txt' }, { path: 'c' }],
      losing: [],
    });
    expect(resolveConflict(trees, 'a.txt', { choice: 'both', copyPath: 'a.txt' })).toEqual({
      kind: 'taken',
      path: 'a.txt',
    });
  });

  it('is blocked by what cannot be put away', () => {
    const blocked = {
      ...trees,
      remote: treeOf({ dir: { 'a.txt': { dir: { nm: { untracked: true } } } } }),
    };
    expect(resolveConflict(blocked, 'a.txt', { choice: 'local' })).toMatchObject({
      kind: 'blocked',
      side: 'remote',
    });
  });

  it('keeps a loser beside its place, under a name that says whose it is and fits any disk', () => {
    const by = { actor: 'agent', subject: 'bot/7' } as const;
    expect(conflictPath('d/a.txt', by, '2026-02-27T20:20:00.123Z')).toBe(
      'd/a.ailsd-conflict.bot-7.20260227T202000Z.txt',
    );
    expect(
      Buffer.byteLength(conflictPath('é'.repeat(127), undefined, '2026-02-27T20:20:00Z')),
    ).toBeLessThanOrEqual(255);
  });
});

/** A round on both sides; a step is made if it succeeds and its path is as expected, as the wire's rules say. */
function carryOut(trees: Trees, succeeds: () => boolean): Trees {
  const plan = reconcile(trees, 'two-way-safe');
  const local = toSteps(plan.toLocal);
  const remote = toSteps(plan.toRemote);
  let baseline = openBaseline(trees.baseline, plan);
  const onLocal = make(trees.local, local, succeeds);
  const onRemote = make(trees.remote, remote, succeeds);
  baseline = advanceBaseline(baseline, local, onLocal.results);
  baseline = advanceBaseline(baseline, remote, onRemote.results);
  return { baseline, local: onLocal.tree, remote: onRemote.tree };
}

function make(tree: Entry | undefined, steps: readonly Step[], succeeds: () => boolean) {
  const editor = new TreeEditor(tree);
  const results = steps.map((step): StepResult => {
    const there = editor.at(step.path);
    const isEmpty = step.to.kind === 'folder' || childrenOf(there).size === 0;
    const current = toState(there);
    if (!isSameState(current, step.expect)) return { outcome: 'conflict', current };
    const problem = { code: 'FAILED', message: 'made to fail' };
    if (!succeeds() || !isEmpty) return { outcome: 'problem', problem };
    if (!editor.putAlone(step.path, fromState(step.to))) return { outcome: 'problem', problem };
    return { outcome: 'done' };
  });
  return { tree: editor.finish(), results };
}
