/** The first run, which has no baseline to tell what is new: it only adds, and what it will do can be read beforehand. */
import { type Change, diffTrees } from './change.js';
import { childrenOf, type Entry, type Side } from './entry.js';
import type { Plan } from './reconcile.js';
import { walkTree } from './tree.js';

export interface FirstRun {
  /** Of the plan, what only adds. */
  readonly additions: Plan;
  /** What would take something away. While there is any and nobody has said to go on, no baseline may be stored. */
  readonly held: readonly HeldChange[];
}

export interface HeldChange extends Change {
  readonly side: Side;
}

export function splitFirstRun(plan: Plan): FirstRun {
  const held = [...hold('local', plan.toLocal), ...hold('remote', plan.toRemote)];
  const additions: Plan = {
    ...plan,
    toLocal: plan.toLocal.filter(isAddition),
    toRemote: plan.toRemote.filter(isAddition),
    losing: [],
  };
  return { additions, held };
}

/** What changes amount to, for people to read. Links count as files. */
export interface Summary {
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  /** Of the files that come, which is more than will be sent where some content is there already. */
  readonly bytes: number;
}

export function summarize(changes: Iterable<Change>): Summary {
  const sum = { created: 0, updated: 0, removed: 0, bytes: 0 };
  for (const { path, before, after } of changes) {
    for (const change of diffTrees(before, after, path)) add(change, sum);
  }
  return sum;
}

function add({ before, after }: Change, sum: { -readonly [K in keyof Summary]: number }): void {
  if (isFile(before) && isFile(after)) {
    sum.updated += 1;
    sum.bytes += after.kind === 'file' ? after.size : 0;
    return;
  }
  for (const [, entry] of walkTree(before)) if (isFile(entry)) sum.removed += 1;
  for (const [, entry] of walkTree(after)) {
    if (!isFile(entry)) continue;
    sum.created += 1;
    sum.bytes += entry.kind === 'file' ? entry.size : 0;
  }
}

function hold(side: Side, changes: readonly Change[]): HeldChange[] {
  return changes.filter((change) => !isAddition(change)).map((change) => ({ ...change, side }));
}

/** An empty folder in which something is put, or in place of which, has nothing to lose. */
function isAddition({ before }: Change): boolean {
  return before === undefined || (before.kind === 'folder' && childrenOf(before).size === 0);
}

function isFile(entry: Entry | undefined): entry is Extract<Entry, { kind: 'file' | 'link' }> {
  return entry?.kind === 'file' || entry?.kind === 'link';
}
