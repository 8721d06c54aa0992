/** Entries, states and who made them, between our own words and those of the sync frames, without loss either way. */
import { AilsdError } from '../../protocol/errors.js';
import type { SyncClientFrame, SyncServerFrame } from '../../protocol/sync-frames.js';
import type { By, Entry } from './entry.js';
import type { Step, StepResult } from './step.js';
import { TreeEditor, walkTree } from './tree.js';

type Scanned = Extract<SyncServerFrame, { type: 'scanned' }>;
export type WireEntry = Scanned['entries'][number];
export type WireBy = NonNullable<Extract<WireEntry, { kind: 'file' }>['by']>;
export type WireChange = Extract<SyncClientFrame, { type: 'transition' }>['changes'][number];
export type WireResult = Extract<SyncServerFrame, { type: 'transitioned' }>['results'][number];

/** A tree entry by entry, the root first: for `scanned`, for a file on disk, and for telling two trees apart by a digest. */
export function* toWireEntries(tree: Entry | undefined): Generator<WireEntry, void, undefined> {
  for (const [path, entry] of walkTree(tree)) yield toWireEntry(path, entry);
}

/**
 * One line for each entry, without who made it: trees with the same lines are the same tree. The room that may do so hashes
 * them, each with a newline behind it, for the name of a snapshot.
 */
export function* snapshotLines(tree: Entry | undefined): Generator<string, void, undefined> {
  for (const [path, entry] of walkTree(tree)) {
    switch (entry.kind) {
      case 'file':
        yield JSON.stringify([path, 'file', entry.sha256, entry.size, entry.executable]);
        break;
      case 'link':
        yield JSON.stringify([path, 'link', entry.target]);
        break;
      case 'problem':
        yield JSON.stringify([path, 'problem', entry.problem.code, entry.problem.message]);
        break;
      case 'folder':
      case 'ignored':
        yield JSON.stringify([path, entry.kind]);
    }
  }
}

/** What a scan told, on top of what was known: nothing, or the tree the scan tells the differences from. */
export function applyScanned(
  known: Entry | undefined,
  entries: Iterable<WireEntry>,
  gone: Iterable<{ readonly path: string }> = [],
): Entry | undefined {
  const editor = new TreeEditor(known);
  for (const { path } of gone) editor.put(path, undefined);
  for (const entry of entries) {
    if (editor.putAlone(entry.path, fromWireEntry(entry))) continue;
    throw new AilsdError(
      'PROTOCOL_MISMATCH',
      'a scan told of something in a folder it never told of',
    );
  }
  return editor.finish();
}

export function toWireChange({ path, expect, to, by }: Step): WireChange {
  return by === undefined ? { path, expect, to } : { path, expect, to, by: toWireBy(by) };
}

export function fromWireChange({ path, expect, to, by }: WireChange): Step {
  return by === undefined ? { path, expect, to } : { path, expect, to, by: fromWireBy(by) };
}

export function toWireResult(result: StepResult): WireResult {
  if (result.outcome !== 'conflict') return result;
  const { outcome, current, by } = result;
  return by === undefined ? { outcome, current } : { outcome, current, by: toWireBy(by) };
}

export function fromWireResult(result: WireResult): StepResult {
  if (result.outcome !== 'conflict') return result;
  const { outcome, current, by } = result;
  return by === undefined ? { outcome, current } : { outcome, current, by: fromWireBy(by) };
}

export function toWireBy({ actor, subject, toolCallId, at }: By): WireBy {
  return {
    actor,
    ...(subject !== undefined && { subject }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
    ...(at !== undefined && { at }),
  };
}

export function fromWireBy({ actor, subject, tool_call_id, at }: WireBy): By {
  return {
    actor,
    ...(subject !== undefined && { subject }),
    ...(tool_call_id !== undefined && { toolCallId: tool_call_id }),
    ...(at !== undefined && { at }),
  };
}

function toWireEntry(path: string, entry: Entry): WireEntry {
  const by = 'by' in entry && entry.by !== undefined ? { by: toWireBy(entry.by) } : {};
  switch (entry.kind) {
    case 'file': {
      const { kind, sha256, size, executable } = entry;
      return { path, kind, sha256, size, executable, ...by };
    }
    case 'folder':
      return { path, kind: 'folder', ...by };
    case 'link':
      return { path, kind: 'link', target: entry.target, ...by };
    case 'problem':
      return { path, kind: 'problem', problem: entry.problem };
    case 'ignored':
      return { path, kind: 'ignored' };
  }
}

function fromWireEntry(entry: WireEntry): Entry {
  const by = 'by' in entry && entry.by !== undefined ? { by: fromWireBy(entry.by) } : {};
  switch (entry.kind) {
    case 'file': {
      const { kind, sha256, size, executable } = entry;
      return { kind, sha256, size, executable, ...by };
    }
    case 'folder':
      return { kind: 'folder', children: new Map(), ...by };
    case 'link':
      return { kind: 'link', target: entry.target, ...by };
    case 'problem':
      return { kind: 'problem', problem: entry.problem };
    case 'ignored':
      return { kind: 'ignored' };
  }
}
