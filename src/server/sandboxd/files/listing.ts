/** A folder as pages of what is in it, in the order of the names' bytes; no more is held than a page. */
import { decodeUtf8 } from '../../../base/bytes.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { FileEntry } from '../../../protocol/shapes/files.js';
import type { Folder } from './folder.js';
import { type Name, toBytes } from './spelling.js';

export interface FolderPage {
  readonly items: readonly FileEntry[];
  readonly next_cursor?: string;
}

export async function listPage(
  folder: Folder,
  limit: number,
  cursor: string | undefined,
): Promise<FolderPage> {
  const after = cursor === undefined ? undefined : nameOf(cursor);
  const { names, hasMore } = await smallest(folder, limit, after);
  const items: FileEntry[] = [];
  for (const name of names) {
    const entry = await entryOf(folder, name);
    // It may have gone since.
    if (entry !== undefined) items.push(entry);
  }
  const last = names.at(-1);
  return hasMore && last !== undefined ? { items, next_cursor: cursorOf(last) } : { items };
}

async function smallest(
  folder: Folder,
  limit: number,
  after: Name | undefined,
): Promise<{ readonly names: readonly Name[]; readonly hasMore: boolean }> {
  let kept: Name[] = [];
  let hasMore = false;
  const trim = (): void => {
    // By bytes, which Latin-1 text compares by.
    kept.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    hasMore ||= kept.length > limit;
    kept = kept.slice(0, limit);
  };
  for await (const name of folder.names()) {
    if (after !== undefined && name <= after) continue;
    kept.push(name);
    if (kept.length > 4 * limit) trim();
  }
  trim();
  return { names: kept, hasMore };
}

async function entryOf(folder: Folder, name: Name): Promise<FileEntry | undefined> {
  const status = await folder.status(name);
  if (status === undefined) return undefined;
  const common = {
    ...nameFields(name),
    mode: Number(status.mode) & 0o777,
    modified_at: new Date(Number(status.mtimeMs)).toISOString(),
  };
  if (status.isFile()) return { ...common, kind: 'file', size_bytes: Number(status.size) };
  if (status.isDirectory()) return { ...common, kind: 'folder' };
  if (!status.isSymbolicLink()) return { ...common, kind: 'other' };
  const target = await folder.target(name);
  const text = target === undefined ? undefined : decodeUtf8(toBytes(target));
  return { ...common, kind: 'link', ...(text === undefined ? {} : { target: text }) };
}

function nameFields(name: Name): { readonly name: string; readonly name_encoding?: 'base64' } {
  const bytes = toBytes(name);
  const text = decodeUtf8(bytes);
  if (text !== undefined) return { name: text };
  return { name: bytes.toString('base64'), name_encoding: 'base64' };
}

function cursorOf(name: Name): string {
  return toBytes(name).toString('base64url');
}

function nameOf(cursor: string): Name {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length > 0 && bytes.toString('base64url') === cursor) return bytes.toString('latin1');
  throw new AilsdError('INVALID_REQUEST', 'the request: cursor is not one of ours', {
    details: { field: 'cursor' },
  });
}
