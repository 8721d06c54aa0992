/**
 * Three-way reconcile: from what was last agreed on and what each side has now, what to do on each. Pure: it compares
 * contents and never a clock, and the same three trees always give the same plan.
 */
import { type Change, diffTrees, isNews, unionOfNames } from './change.js';
import {
  childrenOf,
  type Entry,
  type FileEntry,
  isSameEntry,
  type LinkEntry,
  type Side,
  syncable,
  withoutChildren,
} from './entry.js';
import { comparePaths, joinPath, walkTree } from './tree.js';

/**
 * `two-way-safe`: both are carried over, and where both changed the same, neither is touched. `two-way-resolved`: there the
 * local side wins. `push`: local to remote, never over something new there; `pull`: the other way round. `mirror`: the remote
 * becomes what the local side is.
 */
export const SYNC_MODES = ['two-way-safe', 'two-way-resolved', 'push', 'pull', 'mirror'] as const;

export type SyncMode = (typeof SYNC_MODES)[number];

export interface Trees {
  /** Last agreed on; never holds problems or what is ignored. `undefined` before the first run. */
  readonly baseline: Entry | undefined;
  readonly local: Entry | undefined;
  readonly remote: Entry | undefined;
}

/** All lists are in the order of `comparePaths`. In none of them is a path below another's, but in `agreed`. */
export interface Plan {
  readonly toLocal: readonly Change[];
  readonly toRemote: readonly Change[];
  /** What both sides have already, and the baseline has not: folders alone, what they hold in changes of its own. */
  readonly agreed: readonly Change[];
  readonly conflicts: readonly Conflict[];
  /** The versions that lose to the changes above and exist nowhere else: to be kept before those are made. */
  readonly losing: readonly Losing[];
  /** Paths ignored on one side only: nothing is done there. */
  readonly ignoredOnOneSide: readonly string[];
}

/** Nothing at or below the path is touched on either side. */
export interface Conflict {
  readonly path: string;
  /** `blocked`: one side's change would take away what is ignored or unreadable on the other. */
  readonly cause: 'both-changed' | 'blocked';
  readonly local: readonly Change[];
  readonly remote: readonly Change[];
}

export interface Losing {
  readonly path: string;
  readonly side: Side;
  readonly entry: FileEntry | LinkEntry;
}

export function reconcile({ baseline, local, remote }: Trees, mode: SyncMode): Plan {
  const work = new Reconciler(mode);
  work.visit('', baseline, local, remote);
  return work.plan();
}

/** Whether there is nothing to do, not even to remember; conflicts may be left. */
export function isIdle(plan: Plan): boolean {
  return plan.toLocal.length + plan.toRemote.length + plan.agreed.length === 0;
}

class Reconciler {
  readonly #mode: SyncMode;
  readonly #changes: Record<Side, Change[]> = { local: [], remote: [] };
  readonly #agreed: Change[] = [];
  readonly #conflicts: Conflict[] = [];
  readonly #losing: Losing[] = [];
  readonly #ignoredOnOneSide: string[] = [];

  constructor(mode: SyncMode) {
    this.#mode = mode;
  }

  plan(): Plan {
    return {
      toLocal: this.#changes.local.sort(byPath),
      toRemote: this.#changes.remote.sort(byPath),
      agreed: this.#agreed.sort(byPath),
      conflicts: this.#conflicts.sort(byPath),
      losing: this.#losing.sort(byPath),
      ignoredOnOneSide: this.#ignoredOnOneSide.sort(comparePaths),
    };
  }

  visit(
    path: string,
    baseline: Entry | undefined,
    local: Entry | undefined,
    remote: Entry | undefined,
  ): void {
    if (local === remote && remote === baseline) return;
    // The three are not one object. Most are alike all the same, and found out to be so below.

    if (local?.kind === 'problem' || remote?.kind === 'problem') return;
    // Both sides are known here. The problem itself is reported by the scan that met it.

    if (local?.kind === 'ignored' || remote?.kind === 'ignored') {
      const other = local?.kind === 'ignored' ? remote : local;
      if (other !== undefined && other.kind !== 'ignored') this.#ignoredOnOneSide.push(path);
      this.#forget(path, baseline);
      return;
    }
    // Neither is ignored here. Ignoring is no deletion: ignore files travel too, and may differ for a while.

    if (local === undefined && remote === undefined) {
      this.#forget(path, baseline);
      return;
    }
    // At least one side has something that can be synced.

    if (isSameEntry(local, remote)) {
      const isKnown = isSameEntry(baseline, local);
      if (!isKnown && local !== undefined) {
        this.#agreed.push({ path, before: baseline, after: withoutChildren(local) });
      }
      if (local?.kind !== 'folder') return;
      // What the baseline had at this path goes with the change above, all that was below it included.
      const known = isKnown ? baseline : undefined;
      for (const name of unionOfNames(local, remote, known)) {
        this.visit(
          joinPath(path, name),
          childrenOf(known).get(name),
          childrenOf(local).get(name),
          childrenOf(remote).get(name),
        );
      }
      return;
    }
    // They differ at this very path: so at most one is a folder, and at most one is as in the baseline.

    switch (this.#mode) {
      case 'two-way-safe':
      case 'two-way-resolved':
        this.#bothWays(path, baseline, local, remote);
        break;
      case 'push':
        this.#oneWay('remote', path, baseline, local, remote);
        break;
      case 'pull':
        this.#oneWay('local', path, baseline, remote, local);
        break;
      case 'mirror':
        this.#mirror(path, baseline, local, remote);
        break;
    }
  }

  #bothWays(
    path: string,
    baseline: Entry | undefined,
    local: Entry | undefined,
    remote: Entry | undefined,
  ): void {
    const toRemote: Carry = { to: 'remote', path, winner: syncable(local), loser: remote };
    const toLocal: Carry = { to: 'local', path, winner: syncable(remote), loser: local };
    const localDiff = diffTrees(baseline, toRemote.winner, path);
    const remoteDiff = diffTrees(baseline, toLocal.winner, path);

    const localNews = localDiff.filter(isNews);
    const remoteNews = remoteDiff.filter(isNews);

    if (remoteDiff.length === 0) this.#carry(toRemote, localDiff);
    else if (localDiff.length === 0) this.#carry(toLocal, remoteDiff);
    // Both changed. What one only took away, it has nothing new in.
    else if (localNews.length === 0 && remoteNews.length === 0) {
      // The baseline is a folder that one side lacks altogether and the other has a part of: all of it goes.
      if (toRemote.winner === undefined) this.#carry(toRemote, localDiff);
      else this.#carry(toLocal, remoteDiff);
    }
    // At least one has something new, before which deletions give way: a folder comes back whole.
    else if (remoteNews.length === 0) this.#carry(toRemote, localNews);
    else if (localNews.length === 0) this.#carry(toLocal, remoteNews);
    // Both have something new: one of them can win only at the other's expense.
    else if (this.#mode === 'two-way-resolved') this.#carry(toRemote, localNews, remoteNews);
    else
      this.#conflict('remote', { path, cause: 'both-changed', given: localNews, met: remoteNews });
  }

  #oneWay(
    to: Side,
    path: string,
    baseline: Entry | undefined,
    source: Entry | undefined,
    target: Entry | undefined,
  ): void {
    const given = [{ path, before: baseline, after: source }];
    const news = diffTrees(baseline, syncable(target), path).filter(isNews);
    if (news.length === 0) {
      this.#carry({ to, path, winner: syncable(source), loser: target }, given);
      return;
    }
    // The target has something new, which nothing may be put over.

    if (source === undefined && !(baseline?.kind === 'folder' && target?.kind === 'folder')) {
      // Nothing wants its place: it is the target's own, and no longer synced.
      this.#forget(path, baseline);
      return;
    }
    // The source has something for this place, or took away a folder of which only a part is still the old one.

    this.#conflict(to, { path, cause: 'both-changed', given, met: news });
  }

  #mirror(
    path: string,
    baseline: Entry | undefined,
    local: Entry | undefined,
    remote: Entry | undefined,
  ): void {
    const given = [{ path, before: baseline, after: local }];
    const lost = diffTrees(baseline, syncable(remote), path).filter(isNews);
    this.#carry({ to: 'remote', path, winner: syncable(local), loser: remote }, given, lost);
  }

  /** Puts the winner in the loser's place, unless there is something in it that can't be put back. */
  #carry(carry: Carry, given: readonly Change[], lost: readonly Change[] = []): void {
    const { to, path, winner, loser } = carry;
    const before = syncable(loser);
    const met = diffTrees(before, loser, path);
    if (met.length > 0) {
      this.#conflict(to, { path, cause: 'blocked', given, met });
      return;
    }
    this.#changes[to].push({ path, before, after: winner });
    for (const change of lost) {
      for (const [at, entry] of walkTree(change.after, change.path)) {
        if (entry.kind === 'file' || entry.kind === 'link') {
          this.#losing.push({ path: at, side: to, entry });
        }
      }
    }
  }

  #conflict(to: Side, { path, cause, given, met }: Meeting): void {
    if (to === 'remote') this.#conflicts.push({ path, cause, local: given, remote: met });
    else this.#conflicts.push({ path, cause, local: met, remote: given });
  }

  #forget(path: string, baseline: Entry | undefined): void {
    if (baseline !== undefined) this.#agreed.push({ path, before: baseline, after: undefined });
  }
}

interface Carry {
  readonly to: Side;
  readonly path: string;
  readonly winner: Entry | undefined;
  readonly loser: Entry | undefined;
}

interface Meeting {
  readonly path: string;
  readonly cause: Conflict['cause'];
  /** On the side a change comes from, and on the one it was to be made on. */
  readonly given: readonly Change[];
  readonly met: readonly Change[];
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return comparePaths(a.path, b.path);
}
