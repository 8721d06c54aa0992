/** What `ailsd files` does: opens the thread's sandbox, asks for its files, prints the answer. */
import { createReadStream } from 'node:fs';
import type { FileStatus } from '../../client/files/files.js';
import type { Document } from '../../client/sessions/call.js';
import { AilsdError } from '../../protocol/errors.js';
import type { ListOptions, PutOptions, RemoveOptions } from '../commands/files.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { timeText } from '../login/time-text.js';
import { fieldLines, shown } from '../sessions/document-text.js';
import { printPages } from '../sessions/pages.js';
import { readIn, statusHere, writeOut } from './pipes.js';
import { parseRemote } from './place.js';
import { type FileOptions, withFiles } from './with-files.js';

export async function runFilesList(
  context: Context,
  named: string | undefined,
  options: ListOptions,
): Promise<void> {
  const place = parseRemote(named);
  const columns = [
    { heading: 'MODE', cell: modeCell },
    { heading: 'SIZE', cell: (item: Document) => shown(item, 'size_bytes') },
    { heading: 'MODIFIED', cell: (item: Document) => shown(item, 'modified_at') },
    { heading: 'NAME', cell: nameCell },
  ];
  await withFiles(context, place, options, 'read', (files) =>
    printPages(context, options, columns, (page) => files.list(place.path, page)),
  );
}

export async function runFilesCat(
  context: Context,
  named: string,
  options: FileOptions,
): Promise<void> {
  const place = parseRemote(named);
  await withFiles(context, place, options, 'read', async (files) => {
    const file = await files.read(place.path);
    if (file.kind === 'folder') {
      await file.chunks().return();
      throw new AilsdError('INVALID_REQUEST', 'it is a folder', {
        hint: 'list it with `ailsd files ls`, or copy it with `ailsd cp -r`',
      });
    }
    await writeOut(file.chunks());
  });
}

export async function runFilesPut(
  context: Context,
  source: string,
  named: string,
  { ifMatch, isNew, ...options }: PutOptions,
): Promise<void> {
  const place = parseRemote(named);
  if (place.isFolder) throw new AilsdError('USAGE', 'that names a folder, and no file');
  if (source !== '-' && !(await statusHere(source)).isFile())
    throw new AilsdError('USAGE', `${source} is no file`);
  const body = source === '-' ? readIn : () => createReadStream(source);
  const conditions = { ifMatch, ifNoneMatch: isNew === true ? '*' : undefined };
  const written = await withFiles(context, place, options, 'create', (files) =>
    files.write(place.path, body, conditions),
  );
  context.output.result(written, () => shown(written, 'etag'));
}

export async function runFilesRemove(
  context: Context,
  named: string,
  { ifMatch, recursive, ...options }: RemoveOptions,
): Promise<void> {
  const place = parseRemote(named);
  await withFiles(context, place, options, 'change', async (files) => {
    // Nobody deletes a folder by mistake.
    if (recursive !== true && (await isFolder(files.stat(place.path)))) {
      throw new AilsdError('USAGE', 'it is a folder', {
        hint: 'add -r to delete all that is in it',
      });
    }
    await files.remove(place.path, { ifMatch });
  });
  context.output.result({ path: place.path, deleted: true }, () => '');
}

/** A link that leads nowhere is no folder, and may be deleted. */
async function isFolder(status: Promise<FileStatus>): Promise<boolean> {
  try {
    return (await status).kind === 'folder';
  } catch (error) {
    if (error instanceof AilsdError && error.code === 'NOT_FOUND') return false;
    throw error;
  }
}

export async function runFilesStat(
  context: Context,
  named: string,
  options: FileOptions,
): Promise<void> {
  const place = parseRemote(named);
  const status = await withFiles(context, place, options, 'read', (files) =>
    files.stat(place.path),
  );
  const { kind, sizeBytes, etag, mode, modifiedAtMs } = status;
  const document = {
    path: place.path,
    kind,
    size_bytes: sizeBytes,
    mode,
    modified_at: modifiedAtMs === undefined ? undefined : new Date(modifiedAtMs).toISOString(),
    etag,
  };
  context.output.result(document, () =>
    fieldLines(
      [
        ['kind', kind],
        ['size', sizeBytes === undefined ? '' : `${sizeBytes} bytes`],
        ['mode', mode === undefined ? '' : mode.toString(8).padStart(3, '0')],
        ['modified', modifiedAtMs === undefined ? '' : timeText(modifiedAtMs)],
        ['etag', escapeText(etag ?? '')],
      ],
      context.style,
    ),
  );
}

function modeCell(item: Document): string {
  const letters: Readonly<Record<string, string>> = { folder: 'd', link: 'l', other: '?' };
  const { mode, kind } = item;
  const digits = typeof mode === 'number' ? mode.toString(8).padStart(3, '0') : '';
  return `${letters[String(kind)] ?? '-'}${digits}`;
}

function nameCell(item: Document): string {
  const { name, name_encoding: encoding } = item;
  const text = String(name);
  const plain = encoding === 'base64' ? Buffer.from(text, 'base64').toString() : text;
  const target = shown(item, 'target');
  return escapeText(plain) + (target === '' ? '' : ` -> ${target}`);
}
