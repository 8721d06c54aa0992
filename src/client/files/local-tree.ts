/** A folder of this machine as a tar archive, and an archive as a folder: nothing is read or written outside of it. */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { latin1Text, type TarEntry } from '../../base/tar-entry.js';
import { readTar } from '../../base/tar-reader.js';
import { tarEnd, tarHeader, tarPadding } from '../../base/tar-writer.js';
import { AilsdError } from '../../protocol/errors.js';

export interface Tally {
  copied: number;
  bytes: number;
  /** What was left out, and why. */
  skipped(path: string, why: string): void;
}

const READ_BYTES = 256 * 1024;
const MOST_DEPTH = 128;

export async function* packLocal(
  root: string,
  tally: Tally,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* packFolder(root, '', 0, tally);
  yield tarEnd();
}

/** One file, by the name it shall have. */
export async function* packOne(
  path: string,
  name: string,
  tally: Tally,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* packFile(path, entryFor(name, await lstat(path)), tally);
  yield tarEnd();
}

async function* packFolder(
  folder: string,
  prefix: string,
  depth: number,
  tally: Tally,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (depth > MOST_DEPTH) throw new AilsdError('USAGE', `${folder} is too deep to be copied`);
  for (const name of (await readdir(folder)).sort()) {
    const path = join(folder, name);
    const inside = `${prefix}${name}`;
    const status = await lstat(path);
    const entry = entryFor(inside, status);
    if (status.isSymbolicLink()) {
      const target = await readlink(path);
      if (leavesRoot(depth, target)) tally.skipped(inside, 'the link leads out of what is copied');
      else {
        tally.copied += 1;
        yield tarHeader({ ...entry, kind: 'link', target: bytesText(target) });
      }
    } else if (status.isDirectory()) {
      tally.copied += 1;
      yield tarHeader({ ...entry, kind: 'folder' });
      yield* packFolder(path, `${inside}/`, depth + 1, tally);
    } else if (status.isFile()) yield* packFile(path, entry, tally);
    else tally.skipped(inside, 'it is neither file, folder nor link');
  }
}

async function* packFile(
  path: string,
  entry: TarEntry,
  tally: Tally,
): AsyncGenerator<Uint8Array, void, undefined> {
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const sizeBytes = (await handle.stat()).size;
    yield tarHeader({ ...entry, kind: 'file', sizeBytes });
    for (let at = 0; at < sizeBytes; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, sizeBytes - at));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0)
        throw new AilsdError('SESSION_CONFLICT', `${path} became shorter while it was read`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    const padding = tarPadding(sizeBytes);
    if (padding > 0) yield new Uint8Array(padding);
    tally.copied += 1;
    tally.bytes += sizeBytes;
  } finally {
    await handle.close();
  }
}

/** Files are written beside their place and then moved, so that what was there is whole until then. */
export async function unpackLocal(
  root: string,
  archive: AsyncIterable<Uint8Array>,
  tally: Tally,
): Promise<void> {
  await mkdir(root, { recursive: true });
  for await (const { entry, content } of readTar(archive)) {
    const steps = stepsOf(entry.path);
    if (steps === undefined) throw hostile('a name leads out of the folder');
    if (steps.length === 0) continue;
    const path = join(root, ...steps);
    await makeParents(root, steps);
    if (entry.kind === 'folder') {
      const there = await lstat(path).catch(() => undefined);
      if (there !== undefined && !there.isDirectory()) throw inTheWay(path);
      if (there === undefined) await mkdir(path);
    } else if (entry.kind === 'link') {
      const target = textOf(entry.target);
      if (leavesRoot(steps.length - 1, target)) {
        tally.skipped(steps.join('/'), 'the link leads out of what is copied');
        continue;
      }
      await rm(path, { force: true });
      await symlink(target, path);
    } else if (entry.kind === 'file') {
      await writeWhole(path, content(), entry.mode);
      tally.bytes += entry.sizeBytes;
    } else {
      tally.skipped(steps.join('/'), 'it is neither file, folder nor link');
      continue;
    }
    tally.copied += 1;
  }
}

export async function writeWhole(
  path: string,
  content: AsyncIterable<Uint8Array>,
  mode: number,
): Promise<number> {
  const there = await lstat(path).catch(() => undefined);
  if (there?.isDirectory() === true) throw inTheWay(path);
  const made = `${path}.ailsd-${globalThis.crypto.randomUUID().slice(0, 8)}`;
  let length = 0;
  try {
    const handle = await open(made, 'wx', mode & 0o777);
    try {
      for await (const chunk of content) {
        await handle.writeFile(chunk);
        length += chunk.length;
      }
    } finally {
      await handle.close();
    }
    await rename(made, path);
  } finally {
    await rm(made, { force: true });
  }
  return length;
}

/** Never through a link: an archive could have made it. */
async function makeParents(root: string, steps: readonly string[]): Promise<void> {
  for (let end = 1; end < steps.length; end += 1) {
    const path = join(root, ...steps.slice(0, end));
    const there = await lstat(path).catch(() => undefined);
    if (there === undefined) await mkdir(path);
    else if (!there.isDirectory()) throw inTheWay(path);
  }
}

function stepsOf(path: string): readonly string[] | undefined {
  const steps = textOf(path)
    .split('/')
    .filter((step) => step !== '' && step !== '.');
  const isBad = path.startsWith('/') || steps.some((step) => step === '..' || BAD_STEP.test(step));
  return isBad ? undefined : steps;
}

/** On Windows a backslash and a colon lead elsewhere. */
const BAD_STEP = process.platform === 'win32' ? /[\0\\:]/ : /\0/;

function leavesRoot(depth: number, target: string): boolean {
  if (target === '' || /^([/\\]|[A-Za-z]:)/.test(target)) return true;
  let at = depth;
  for (const step of target.split(/[/\\]/)) {
    if (step === '..') at -= 1;
    else if (step !== '' && step !== '.') at += 1;
    if (at < 0) return true;
  }
  return false;
}

function entryFor(
  path: string,
  { mode, mtimeMs }: { readonly mode: number; readonly mtimeMs: number },
): TarEntry {
  return {
    path: bytesText(path),
    kind: 'other',
    mode: mode & 0o777,
    sizeBytes: 0,
    modifiedAtMs: mtimeMs,
    target: '',
  };
}

function bytesText(text: string): string {
  return latin1Text(Buffer.from(text, 'utf8'));
}

function textOf(name: string): string {
  return Buffer.from(name, 'latin1').toString('utf8');
}

function hostile(why: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the archive is refused: ${why}`);
}

function inTheWay(path: string): AilsdError {
  return new AilsdError('ALREADY_EXISTS', `something else is at ${path}`);
}
