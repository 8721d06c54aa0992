/** Changes path by path, as a side makes them: each only if its path is still as expected. */
import type { Change } from './change.js';
import { type By, childrenOf, type Entry, type Problem } from './entry.js';
import { joinPath } from './tree.js';

/** What is at a path, or is to be there, without what is below it. */
export type State =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'file';
      readonly sha256: string;
      readonly size: number;
      readonly executable: boolean;
    }
  | { readonly kind: 'folder' }
  | { readonly kind: 'link'; readonly target: string };

export interface Step {
  readonly path: string;
  readonly expect: State;
  readonly to: State;
  readonly by?: By;
}

/** In the order of the steps. What already was as it should be is done, so that steps can be sent again. */
export type StepResult =
  | { readonly outcome: 'done' }
  | { readonly outcome: 'conflict'; readonly current: State; readonly by?: By }
  | { readonly outcome: 'problem'; readonly problem: Problem };

/**
 * In an order in which they can be made: removals first and from below, so that a name is free for one that differs from it
 * only in case; then folders before what is in them. `goneBy` knows who took away what is no longer there.
 */
export function toSteps(
  changes: Iterable<Change>,
  goneBy: (path: string) => By | undefined = () => undefined,
): Step[] {
  const removals: Step[] = [];
  const others: Step[] = [];
  for (const { path, before, after } of changes) {
    split(path, before, after, goneBy, removals, others);
  }
  return removals.concat(others);
}

export function toState(entry: Entry | undefined): State {
  switch (entry?.kind) {
    case 'file':
      return {
        kind: 'file',
        sha256: entry.sha256,
        size: entry.size,
        executable: entry.executable,
      };
    case 'folder':
      return { kind: 'folder' };
    case 'link':
      return { kind: 'link', target: entry.target };
    default:
      return { kind: 'absent' };
  }
}

/** A folder comes without what is in it. */
export function fromState(state: State, by?: By): Entry | undefined {
  if (state.kind === 'absent') return undefined;
  const entry = state.kind === 'folder' ? { ...state, children: new Map() } : state;
  return by === undefined ? entry : { ...entry, by };
}

export function isSameState(a: State, b: State): boolean {
  switch (a.kind) {
    case 'file':
      return b.kind === 'file' && a.sha256 === b.sha256 && a.executable === b.executable;
    case 'link':
      return b.kind === 'link' && a.target === b.target;
    case 'absent':
    case 'folder':
      return a.kind === b.kind;
  }
}

function split(
  path: string,
  before: Entry | undefined,
  after: Entry | undefined,
  goneBy: (path: string) => By | undefined,
  removals: Step[],
  others: Step[],
): void {
  if (before === after) return;
  const stays = childrenOf(after);
  for (const [name, child] of childrenOf(before)) {
    split(joinPath(path, name), child, stays.get(name), goneBy, removals, others);
  }
  const expect = toState(before);
  const to = toState(after);
  if (!isSameState(expect, to)) {
    const by = after === undefined ? goneBy(path) : byOf(after);
    const step = by === undefined ? { path, expect, to } : { path, expect, to, by };
    (after === undefined ? removals : others).push(step);
  }
  for (const [name, child] of stays) {
    if (childrenOf(before).has(name)) continue;
    split(joinPath(path, name), undefined, child, goneBy, removals, others);
  }
}

function byOf(entry: Entry): By | undefined {
  return 'by' in entry ? entry.by : undefined;
}
