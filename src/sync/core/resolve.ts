/** Somebody's decision about a conflict: what it does on each side, and the version that loses by it, which is kept. */
import { encodeUtf8 } from '../../base/bytes.js';
import { type Change, diffTrees } from './change.js';
import { type By, type Entry, type Side, syncable } from './entry.js';
import type { Losing, Trees } from './reconcile.js';
import { entryAt, walkTree } from './tree.js';

/** `both`: the local version keeps its name, and the remote one stands beside it, on both sides. */
export type Resolution =
  | { readonly choice: 'local' | 'remote' }
  | { readonly choice: 'both'; readonly copyPath: string };

export type Resolved =
  | {
      readonly kind: 'resolved';
      readonly toLocal: readonly Change[];
      readonly toRemote: readonly Change[];
      readonly losing: readonly Losing[];
    }
  /** There is something on that side that is ignored or unreadable, and so can't be put away. */
  | { readonly kind: 'blocked'; readonly side: Side; readonly by: readonly Change[] }
  /** The name for the copy is in use. */
  | { readonly kind: 'taken'; readonly path: string };

export function resolveConflict(trees: Trees, path: string, resolution: Resolution): Resolved {
  const local = entryAt(trees.local, path);
  const remote = entryAt(trees.remote, path);
  if (resolution.choice !== 'both') {
    return resolution.choice === 'local'
      ? overwrite('remote', path, local, remote)
      : overwrite('local', path, remote, local);
  }

  const { copyPath } = resolution;
  if (
    entryAt(trees.local, copyPath) !== undefined ||
    entryAt(trees.remote, copyPath) !== undefined
  ) {
    return { kind: 'taken', path: copyPath };
  }
  const won = overwrite('remote', path, local, remote);
  if (won.kind !== 'resolved') return won;
  const copy: Change = { path: copyPath, before: undefined, after: syncable(remote) };
  // It stands beside the other: nothing is lost.
  return { ...won, toLocal: [copy], toRemote: [...won.toRemote, copy], losing: [] };
}

/** The longest name most file systems take, in bytes. */
const NAME_MAX_BYTES = 255;

/** Where a losing version is kept: beside its place, named for who made it and when. The ending stays, for editors. */
export function conflictPath(path: string, by: By | undefined, time: string): string {
  const cut = path.lastIndexOf('/') + 1;
  const name = path.slice(cut);
  const dot = name.lastIndexOf('.');
  const ending = dot > 0 && name.length - dot <= ENDING_MAX_CHARS ? name.slice(dot) : '';
  const who = (by?.subject ?? by?.actor ?? 'unknown').replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 32);
  const stamp = time.replace(/\.\d+/, '').replace(/[^0-9TZ]/g, '');
  const mark = `.ailsd-conflict.${who}.${stamp}${ending}`;
  const stem = cutName(
    name.slice(0, name.length - ending.length),
    NAME_MAX_BYTES - utf8Length(mark),
  );
  return path.slice(0, cut) + stem + mark;
}

const ENDING_MAX_CHARS = 16;

function overwrite(
  to: Side,
  path: string,
  winner: Entry | undefined,
  loser: Entry | undefined,
): Resolved {
  const before = syncable(loser);
  const after = syncable(winner);
  const by = diffTrees(before, loser, path);
  if (by.length > 0) return { kind: 'blocked', side: to, by };
  // A winner that can't be read is no decision to delete the loser.
  if (after === undefined && winner !== undefined) {
    const side = to === 'remote' ? 'local' : 'remote';
    return { kind: 'blocked', side, by: [{ path, before: undefined, after: winner }] };
  }
  const changes = [{ path, before, after }];
  const losing: Losing[] = [];
  for (const change of diffTrees(after, before, path)) {
    for (const [at, entry] of walkTree(change.after, change.path)) {
      if (entry.kind === 'file' || entry.kind === 'link') {
        losing.push({ path: at, side: to, entry });
      }
    }
  }
  return to === 'remote'
    ? { kind: 'resolved', toLocal: [], toRemote: changes, losing }
    : { kind: 'resolved', toLocal: changes, toRemote: [], losing };
}

function cutName(name: string, maxBytes: number): string {
  let cut = '';
  let bytes = 0;
  for (const character of name) {
    bytes += utf8Length(character);
    if (bytes > maxBytes) break;
    cut += character;
  }
  return cut;
}

function utf8Length(text: string): number {
  return encodeUtf8(text).length;
}
