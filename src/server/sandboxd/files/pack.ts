/** A folder as a tar archive, made while it is sent. Links go as they are written; sockets, pipes and devices stay behind. */
import type { FileHandle } from 'node:fs/promises';
import { errorCode } from '../../../base/error-code.js';
import type { TarEntry } from '../../../base/tar-entry.js';
import { tarEnd, tarHeader, tarPadding } from '../../../base/tar-writer.js';
import { AilsdError } from '../../../protocol/errors.js';
import { READ_BYTES } from './content-hash.js';
import type { Folder } from './folder.js';
import { badPath, type Name } from './spelling.js';
import type { Workspace } from './workspace.js';

/** A folder is held open for each. */
const MOST_DEPTH = 128;

export async function* pack(
  workspace: Workspace,
  folder: Folder,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* packFolder(workspace, folder, '', 0, signal);
  yield tarEnd();
}

async function* packFolder(
  workspace: Workspace,
  folder: Folder,
  prefix: string,
  depth: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (depth > MOST_DEPTH) throw badPath('the folder is too deep for an archive');
  for await (const name of folder.names()) {
    signal.throwIfAborted();
    yield* packThing(workspace, folder, name, prefix, depth, signal);
  }
}

async function* packThing(
  workspace: Workspace,
  folder: Folder,
  name: Name,
  prefix: string,
  depth: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const status = await folder.status(name);
  if (status === undefined) return;
  const entry: TarEntry = {
    path: `${prefix}${name}`,
    kind: 'other',
    mode: Number(status.mode) & 0o777,
    sizeBytes: 0,
    modifiedAtMs: Number(status.mtimeMs),
    target: '',
  };
  if (status.isSymbolicLink()) {
    const target = await folder.target(name);
    if (target !== undefined) yield tarHeader({ ...entry, kind: 'link', target });
  } else if (status.isDirectory()) {
    const inner = await unlessGone(folder.folder(name));
    if (inner === undefined) return;
    await using _inner = inner;
    yield tarHeader({ ...entry, kind: 'folder' });
    yield* packFolder(workspace, inner, `${entry.path}/`, depth + 1, signal);
  } else if (status.isFile()) {
    const handle = await unlessGone(workspace.openFile(folder, name));
    if (handle === undefined) return;
    try {
      yield* packFile(handle, entry);
    } finally {
      await handle.close();
    }
  }
}

/** What goes while a folder is packed is not in it. */
async function unlessGone<T>(opening: Promise<T>): Promise<T | undefined> {
  try {
    return await opening;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/** One that grows while it is read is cut where it ended; one that shrinks ends the archive, which then is not whole. */
async function* packFile(
  handle: FileHandle,
  entry: TarEntry,
): AsyncGenerator<Uint8Array, void, undefined> {
  const sizeBytes = (await handle.stat()).size;
  yield tarHeader({ ...entry, kind: 'file', sizeBytes });
  for (let at = 0; at < sizeBytes; ) {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, sizeBytes - at));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0)
      throw new AilsdError('BACKEND_UNAVAILABLE', 'a file became shorter while it was read');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  const padding = tarPadding(sizeBytes);
  if (padding > 0) yield new Uint8Array(padding);
}
