/** The brakes: what a plan may not do without somebody's explicit word. A halt means that nothing at all is carried out. */
import { AilsdError } from '../../protocol/errors.js';
import type { Change } from './change.js';
import { childrenOf, countFiles, type Entry, type Side } from './entry.js';
import type { Plan, Trees } from './reconcile.js';
import { entryAt, walkTree } from './tree.js';

/** Fewer deletions than this are never held up, but those of everything there is. */
export const DELETIONS_MIN = 50;
export const DELETIONS_MAX_SHARE = 0.5;

export type HaltReason =
  | 'root-missing'
  | 'root-not-a-folder'
  | 'root-unreadable'
  | 'root-replaced'
  | 'root-emptied'
  | 'many-deletions';

export interface Halt {
  readonly reason: HaltReason;
  /** The side that something is wrong with; for deletions, the one they were to be made on. */
  readonly side: Side;
  readonly message: string;
  /** Files and links that were to be deleted, and how many there are. */
  readonly deletions?: number;
  readonly files?: number;
}

/** Names the folder itself, not its content: another one was made anew or mounted over. Unknown where there is no root. */
export type Instances = Readonly<Record<Side, string | undefined>>;

export interface SafetyOptions {
  readonly trees: Trees;
  readonly plan: Plan;
  /** The folders the baseline was agreed on with; `undefined` as long as there is no baseline. */
  readonly agreedWith: Instances | undefined;
  readonly instances: Instances;
  /** In place of the two bounds above: more deletions than this on a side halt. */
  readonly maxDeletions?: number;
  /** What somebody has looked at and said to go on with. */
  readonly allowed?: ReadonlySet<HaltReason>;
}

/** Every reason to stop, the gravest first; none means that the plan may be carried out. */
export function findHalts(options: SafetyOptions): Halt[] {
  const halts: Halt[] = [];
  // Without a baseline nothing can be missing, and `splitFirstRun` sees to the rest.
  if (options.trees.baseline !== undefined) {
    for (const side of SIDES) halts.push(...rootHalts(options, side));
  }
  for (const side of SIDES) halts.push(...deletionHalts(options, side));
  return halts.filter(({ reason }) => options.allowed?.has(reason) !== true);
}

export function haltError(halts: readonly [Halt, ...Halt[]]): AilsdError {
  return new AilsdError('SYNC_HALTED', halts.map(({ message }) => message).join('; '), {
    details: { halts },
  });
}

/**
 * Files and links that changes take away. One whose content turns up under another name in the same changes was moved, and
 * is not counted.
 */
export function countDeletions(changes: readonly Change[]): number {
  const arrivals = new Map<string, number>();
  for (const { path, before, after } of changes) {
    for (const [at, entry] of walkTree(after, path)) {
      if (entry.kind !== 'file' || hasFile(before, at.slice(path.length))) continue;
      arrivals.set(entry.sha256, (arrivals.get(entry.sha256) ?? 0) + 1);
    }
  }
  let count = 0;
  for (const { path, before, after } of changes) {
    for (const [at, entry] of walkTree(before, path)) {
      if (entry.kind !== 'file' && entry.kind !== 'link') continue;
      if (hasFile(after, at.slice(path.length))) continue;
      const moved = entry.kind === 'file' ? (arrivals.get(entry.sha256) ?? 0) : 0;
      if (entry.kind === 'file' && moved > 0) arrivals.set(entry.sha256, moved - 1);
      else count += 1;
    }
  }
  return count;
}

const SIDES = ['local', 'remote'] as const;

function rootHalts({ trees, agreedWith, instances }: SafetyOptions, side: Side): Halt[] {
  const root = trees[side];
  const where = side === 'local' ? 'the local folder' : "the sandbox's folder";
  if (trees.baseline?.kind !== 'folder') return [];
  if (root === undefined) {
    return [{ reason: 'root-missing', side, message: `${where} is gone` }];
  }
  if (root.kind === 'problem') {
    const message = `${where} cannot be read: ${root.problem.message}`;
    return [{ reason: 'root-unreadable', side, message }];
  }
  if (root.kind !== 'folder') {
    return [{ reason: 'root-not-a-folder', side, message: `${where} is no longer a folder` }];
  }
  const halts: Halt[] = [];
  if (agreedWith === undefined || agreedWith[side] !== instances[side]) {
    const message = `${where} is not the one that was synchronised before`;
    halts.push({ reason: 'root-replaced', side, message });
  }
  const files = countFiles(trees.baseline);
  const other = side === 'local' ? trees.remote : trees.local;
  if (files > 0 && countFiles(root) === 0 && countFiles(other) > 0) {
    halts.push({ reason: 'root-emptied', side, message: `${where} has been emptied`, files });
  }
  return halts;
}

function deletionHalts({ trees, plan, maxDeletions }: SafetyOptions, side: Side): Halt[] {
  const deletions = countDeletions(side === 'local' ? plan.toLocal : plan.toRemote);
  if (deletions === 0) return [];
  const files = countFiles(trees[side]);
  const isEverything = deletions >= files && files > 1;
  const isMany =
    maxDeletions === undefined
      ? deletions >= DELETIONS_MIN && deletions > files * DELETIONS_MAX_SHARE
      : deletions > maxDeletions;
  if (!isEverything && !isMany) return [];
  const where = side === 'local' ? 'locally' : 'in the sandbox';
  const message = `${deletions} of ${files} files would be deleted ${where}`;
  return [{ reason: 'many-deletions', side, message, deletions, files }];
}

/** Whether there is a file or link at a path that begins with `/`, or is empty, below the entry. */
function hasFile(entry: Entry | undefined, below: string): boolean {
  if (below === '') return entry?.kind === 'file' || entry?.kind === 'link';
  if (childrenOf(entry).size === 0) return false;
  const found = entryAt(entry, below.slice(1));
  return found?.kind === 'file' || found?.kind === 'link';
}
