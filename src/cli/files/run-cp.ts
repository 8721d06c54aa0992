/** `ailsd cp`: copies files and folders between this machine and a sandbox, or through a pipe. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Files } from '../../client/files/files.js';
import {
  packLocal,
  packOne,
  type Tally,
  unpackLocal,
  writeWhole,
} from '../../client/files/local-tree.js';
import { AilsdError } from '../../protocol/errors.js';
import type { CpOptions } from '../commands/cp.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { readIn, statusHere, writeOut } from './pipes.js';
import { baseName, below, type Place, parsePlace, type RemotePlace } from './place.js';
import { withFiles } from './with-files.js';

export async function runCp(
  context: Context,
  places: readonly string[],
  options: CpOptions,
): Promise<void> {
  const from = places.slice(0, -1).map(parsePlace);
  const to = parsePlace(places.at(-1) ?? '');
  if (from.length === 0) throw new AilsdError('USAGE', 'it is not said where to copy it');
  const tally = newTally(context);
  if (to.kind === 'remote') {
    if (from.some(({ kind }) => kind === 'remote')) throw oneSide();
    await withFiles(context, to, options, 'create', async (files) => {
      for (const place of from) await copyIn(files, place, to, from.length > 1, options, tally);
    });
  } else {
    for (const place of from) {
      if (place.kind !== 'remote') throw oneSide();
      await withFiles(context, place, options, 'read', (files) =>
        copyOut(files, place, to, from.length > 1, options, tally),
      );
    }
  }
  const { copied, bytes } = tally;
  if (to.kind !== 'pipe') context.output.result({ copied, size_bytes: bytes }, () => '');
  if (copied > 0) return;
  context.output.notice('nothing was copied');
  context.exit(EXIT.failed);
}

async function copyIn(
  files: Files,
  from: Place,
  to: RemotePlace,
  isMany: boolean,
  options: CpOptions,
  tally: Tally,
): Promise<void> {
  if (from.kind === 'pipe') {
    if (to.isFolder) throw needsName();
    const { size_bytes: size } = await files.write(to.path, readIn, conditionsOf(options));
    tally.copied += 1;
    tally.bytes += Number(size);
    return;
  }
  if (from.kind === 'remote') throw oneSide();
  const status = await statusHere(from.path);
  const name = basename(join(from.path, '.').replace(/[/\\]\.$/, '')) || basename(process.cwd());
  const isInto = isMany || to.isFolder || (await isFolder(files, to.path));
  const path = isInto ? below(to.path, name) : to.path;
  if (status.isDirectory()) {
    if (options.recursive !== true) return tally.skipped(from.path, 'it is a folder: add -r');
    const goal = isInto && !/[/\\]\.?$/.test(from.path) ? path : to.path;
    tally.copied += 1;
    await files.upload(goal, () => packLocal(from.path, tally));
  } else if (!status.isFile()) tally.skipped(from.path, 'it is no file');
  else if ((status.mode & 0o111) !== 0 && options.ifMatch === undefined) {
    // Only an archive says that a file may be run.
    const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
    await files.upload(folder, () => packOne(from.path, baseName(path), tally));
  } else {
    await files.write(path, () => createReadStream(from.path), conditionsOf(options));
    tally.copied += 1;
    tally.bytes += status.size;
  }
}

async function copyOut(
  files: Files,
  from: RemotePlace,
  to: Exclude<Place, RemotePlace>,
  isMany: boolean,
  options: CpOptions,
  tally: Tally,
): Promise<void> {
  const { kind, mode = 0o644 } = await files.stat(from.path);
  if (kind === 'folder' && options.recursive !== true)
    return tally.skipped(from.path || 'the workspace', 'it is a folder: add -r');
  if (to.kind === 'pipe') {
    const bytes =
      kind === 'folder' ? await files.download(from.path) : (await files.read(from.path)).chunks();
    tally.bytes += await writeOut(bytes);
    tally.copied += 1;
    return;
  }
  const there = await stat(to.path).catch(() => undefined);
  const isInto = isMany || there?.isDirectory() === true || /[/\\]$/.test(to.path);
  const goal = isInto && from.path !== '' ? join(to.path, baseName(from.path)) : to.path;
  if (kind === 'folder') {
    tally.copied += 1;
    await unpackLocal(goal, await files.download(from.path), tally);
    return;
  }
  tally.bytes += await writeWhole(goal, (await files.read(from.path)).chunks(), mode);
  tally.copied += 1;
}

function newTally({ output }: Context): Tally {
  return {
    copied: 0,
    bytes: 0,
    skipped: (path, why) => output.notice(`left out ${path}: ${why}`),
  };
}

async function isFolder(files: Files, path: string): Promise<boolean> {
  try {
    return (await files.stat(path)).kind === 'folder';
  } catch (error) {
    if (error instanceof AilsdError && error.code === 'NOT_FOUND') return false;
    throw error;
  }
}

function conditionsOf({ ifMatch }: CpOptions) {
  return { ifMatch };
}

function oneSide(): AilsdError {
  return new AilsdError('USAGE', 'one side is this machine and the other a sandbox', {
    hint: 'write the sandbox’s side as THREAD:PATH, or :PATH for the thread that is set',
  });
}

function needsName(): AilsdError {
  return new AilsdError('USAGE', 'what comes by a pipe has no name', {
    hint: 'name the file: ailsd cp - THREAD:folder/name',
  });
}
