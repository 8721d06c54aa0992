/** Files over HTTP: read, look at, list, replace and delete them; folders as tar archives in and out. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';
import { type Output, parseRequest, type Schema } from '../../../protocol/parse.js';
import { PAGE_ITEMS } from '../../../protocol/shapes/envelope.js';
import { downloadQuery, fileQuery, uploadQuery } from '../../../protocol/shapes/files.js';
import type { Answer } from '../../http/call.js';
import { errorAnswer } from '../../http/errors.js';
import { readQuery } from '../../http/query.js';
import type { SandboxCall, SandboxRouteCode, SandboxRoutes } from '../door/routes.js';
import { conditionsOf, isFresh, rangeOf } from './conditions.js';
import { etagOf, READ_BYTES } from './content-hash.js';
import { toFileError } from './failures.js';
import { listPage } from './listing.js';
import { pack } from './pack.js';
import { receive } from './receive.js';
import { badPath } from './spelling.js';
import { unpack } from './unpack.js';
import type { Opened, Workspace } from './workspace.js';

/** Files up to this are read whole before anything is sent, so that tag and bytes are surely of one moment. */
const WHOLE_BYTES = 1024 * 1024;
/** By how much one may grow between the look at its size and the reading. */
const GROWTH_BYTES = 16 * 1024;

/** The routes, and when one of them was last asked for. */
export class FileRoutes {
  readonly http: SandboxRoutes['http'];
  lastActiveAtMs = 0;

  constructor(workspace: Workspace, clock: Clock) {
    const timed =
      (code: SandboxRouteCode): SandboxRouteCode =>
      async (call) => {
        this.lastActiveAtMs = clock.now();
        try {
          return await code(call);
        } catch (error) {
          throw toFileError(error);
        }
      };
    this.http = {
      readFile: timed((call) => {
        const { archive, limit = PAGE_ITEMS.default, cursor } = query(fileQuery, call);
        const form = archive === 'tar' ? 'tar' : formOf(call.exchange.request.headers.accept);
        return read(workspace, call, pathIn(call), { form, limit, cursor });
      }),
      statFile: timed((call) => look(workspace, call)),
      downloadFile: timed((call) =>
        read(workspace, call, query(downloadQuery, call).path, { form: 'tar', limit: 0 }),
      ),
      writeFile: timed((call) => write(workspace, call, pathIn(call))),
      uploadFile: timed((call) => {
        const { path, extract } = query(uploadQuery, call);
        return extract === true ? extractInto(workspace, call, path) : write(workspace, call, path);
      }),
      deleteFile: timed(async (call) => {
        const conditions = conditionsOf(call.exchange.request.headers);
        await workspace.remove(pathIn(call), conditions, call.signal);
        return { status: 204 };
      }),
    };
  }
}

type Form = 'list' | 'tar' | 'none';

interface FolderWish {
  readonly form: Form;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

async function read(
  workspace: Workspace,
  call: SandboxCall,
  path: string,
  wish: FolderWish,
): Promise<Answer> {
  const opened = await workspace.open(path);
  if (opened.kind === 'file') return readFile(workspace, call, opened);
  const { folder } = opened;
  if (wish.form === 'tar') {
    return {
      headers: { ...FOLDER, 'Content-Type': 'application/x-tar' },
      stream: closing(opened, translated(pack(workspace, folder, call.signal))),
    };
  }
  await using _opened = opened;
  if (wish.form === 'none')
    throw new AilsdError('NOT_ACCEPTABLE', 'a folder is JSON or application/x-tar');
  checkFolder(call);
  return { headers: FOLDER, body: await listPage(folder, wish.limit, wish.cursor) };
}

/** A folder has no tag. */
function checkFolder({ exchange }: SandboxCall): void {
  isFresh({ ...conditionsOf(exchange.request.headers), ifNoneMatch: undefined }, null);
}

const FOLDER = { 'X-Ailsd-Kind': 'folder' };

async function readFile(
  workspace: Workspace,
  call: SandboxCall,
  opened: Extract<Opened, { kind: 'file' }>,
): Promise<Answer> {
  const { handle } = opened;
  const { size } = await handle.stat();
  const whole = size > WHOLE_BYTES ? undefined : await readWhole(handle, size, opened);
  if (whole !== undefined) {
    const sha256 = createHash('sha256').update(whole.bytes).digest('hex');
    const file = { sha256, sizeBytes: whole.bytes.length, headers: whole.headers };
    const { first, last, answer } = partOf(call, file);
    if (first === undefined) return answer;
    const part = whole.bytes.subarray(first, last + 1);
    return { ...answer, stream: once(part) };
  }
  try {
    const { sha256, status } = await workspace.hashes.of(handle, call.signal);
    const file = { sha256, sizeBytes: Number(status.size), headers: await aboutFile(handle) };
    const { first, last, answer } = partOf(call, file);
    if (first === undefined) {
      await handle.close();
      return answer;
    }
    const isWhole = first === 0 && last === file.sizeBytes - 1;
    const stream = contentOf(handle, first, last, isWhole ? sha256 : undefined);
    return { ...answer, stream: closing(opened, stream) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readWhole(handle: FileHandle, size: number, opened: AsyncDisposable) {
  await using _opened = opened;
  const headers = await aboutFile(handle);
  const buffer = Buffer.allocUnsafe(size + GROWTH_BYTES);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) break;
  }
  if (length === buffer.length)
    throw new AilsdError('BACKEND_UNAVAILABLE', 'the file grows while it is read');
  return { headers, bytes: buffer.subarray(0, length) };
}

interface FileFacts {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly headers: Readonly<Record<string, string>>;
}

type Part =
  | { readonly first: number; readonly last: number; readonly answer: Answer }
  /** There is nothing to send but this. */
  | { readonly first: undefined; readonly last?: undefined; readonly answer: Answer };

function partOf(call: SandboxCall, { sha256, sizeBytes, headers }: FileFacts): Part {
  const { exchange } = call;
  const etag = etagOf(sha256);
  const asked = exchange.request.headers;
  if (isFresh(conditionsOf(asked), etag))
    return { first: undefined, answer: bare(call, 304, { ETag: etag }) };
  const common = { ...headers, ETag: etag };
  const range = rangeOf(asked, sizeBytes, etag);
  if (range === 'unsatisfiable') {
    const error = new AilsdError('RANGE_NOT_SATISFIABLE', 'the file does not reach so far', {
      details: { size_bytes: sizeBytes },
    });
    const { status, body, headers: own } = errorAnswer(error, exchange.requestId, true);
    exchange.noteError(error);
    const all = { ...own, 'Content-Range': `bytes */${sizeBytes}` };
    return { first: undefined, answer: { status, headers: all, text: body } };
  }
  if (range === undefined) {
    const answer = { headers: { ...common, 'Content-Length': String(sizeBytes) } };
    return { first: 0, last: sizeBytes - 1, answer };
  }
  const { first, last } = range;
  const place = {
    'Content-Length': String(last - first + 1),
    'Content-Range': `bytes ${first}-${last}/${sizeBytes}`,
  };
  return { first, last, answer: { status: 206, headers: { ...common, ...place } } };
}

async function aboutFile(handle: FileHandle): Promise<Readonly<Record<string, string>>> {
  const { mode, mtime } = await handle.stat();
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': 'attachment',
    'Accept-Ranges': 'bytes',
    'Last-Modified': mtime.toUTCString(),
    'X-Ailsd-Kind': 'file',
    'X-Ailsd-Mode': (mode & 0o777).toString(8).padStart(3, '0'),
  };
}

async function look(workspace: Workspace, call: SandboxCall): Promise<Answer> {
  await using opened = await workspace.open(pathIn(call));
  if (opened.kind === 'folder') {
    checkFolder(call);
    const { mode, mtime } = await opened.folder.handle.stat();
    return bare(call, 200, {
      ...FOLDER,
      'Content-Type': 'application/json',
      'Last-Modified': mtime.toUTCString(),
      'X-Ailsd-Mode': (mode & 0o777).toString(8).padStart(3, '0'),
    });
  }
  const { sha256, status } = await workspace.hashes.of(opened.handle, call.signal);
  const etag = etagOf(sha256);
  if (isFresh(conditionsOf(call.exchange.request.headers), etag))
    return bare(call, 304, { ETag: etag });
  const about = await aboutFile(opened.handle);
  return bare(call, 200, { ...about, ETag: etag, 'Content-Length': String(status.size) });
}

/** An answer whose headers speak of a body that it does not have. */
function bare(
  { exchange }: SandboxCall,
  status: number,
  headers: Readonly<Record<string, string>>,
): Answer {
  exchange.response.writeHead(status, { ...exchange.headers, ...headers });
  exchange.response.end();
  return { isSent: true };
}

/** With a hash: the last piece is kept back until all of it is known to be what the tag says. */
async function* contentOf(
  handle: FileHandle,
  first: number,
  last: number,
  sha256: string | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash('sha256');
  let kept: Uint8Array | undefined;
  for (let at = first; at <= last; ) {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, last + 1 - at));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw changed();
    at += bytesRead;
    const piece = buffer.subarray(0, bytesRead);
    if (sha256 !== undefined) hash.update(piece);
    if (kept !== undefined) yield kept;
    kept = piece;
  }
  if (sha256 !== undefined && hash.digest('hex') !== sha256) throw changed();
  if (kept !== undefined) yield kept;
}

function changed(): AilsdError {
  return new AilsdError('BACKEND_UNAVAILABLE', 'the file changed while it was sent');
}

async function write(workspace: Workspace, call: SandboxCall, path: string): Promise<Answer> {
  const { request } = call.exchange;
  if (request.headers['content-range'] !== undefined)
    throw new AilsdError('INVALID_REQUEST', 'a part of a file cannot be written', {
      details: { field: 'content-range' },
    });
  const conditions = conditionsOf(request.headers);
  const written = await workspace.write(
    path,
    receive(request, call.signal),
    conditions,
    call.signal,
  );
  const { isNew, sizeBytes, sha256 } = written;
  const etag = etagOf(sha256);
  return {
    status: isNew ? 201 : 200,
    headers: { ETag: etag },
    body: { path, size_bytes: sizeBytes, etag, sha256 },
  };
}

async function extractInto(workspace: Workspace, call: SandboxCall, path: string): Promise<Answer> {
  const { request } = call.exchange;
  const { ifMatch, ifNoneMatch } = conditionsOf(request.headers);
  if (ifMatch !== undefined || ifNoneMatch !== undefined)
    throw new AilsdError('INVALID_REQUEST', 'an archive is unpacked without conditions', {
      details: { field: ifMatch === undefined ? 'if-none-match' : 'if-match' },
    });
  const { sizeBytes } = await unpack(workspace, path, receive(request, call.signal));
  // Whatever followed the archive's end is read and left.
  request.resume();
  return { body: { path, size_bytes: sizeBytes } };
}

function pathIn({ parameters }: SandboxCall): string {
  return parameters['path'] ?? '';
}

function formOf(accept: string | undefined): Form {
  if (accept === undefined || accept === '' || /application\/(json|\*)|\*\/\*/i.test(accept))
    return /^\s*application\/x-tar\b/i.test(accept ?? '') ? 'tar' : 'list';
  return /application\/x-tar\b/i.test(accept) ? 'tar' : 'none';
}

function query<S extends Schema>(schema: S, { exchange }: SandboxCall): Output<S> {
  const { url = '' } = exchange.request;
  checkEncoding(url);
  const parsed = parseRequest(schema, readQuery(url));
  if (parsed.ok) return parsed.value;
  throw parsed.error;
}

/** Bytes that are no UTF-8 would be read as another name than was meant. */
function checkEncoding(url: string): void {
  try {
    decodeURIComponent(url.slice(url.indexOf('?') + 1));
  } catch {
    throw badPath('the query is not well encoded');
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes.length > 0) yield bytes;
}

async function* closing<T>(
  opened: AsyncDisposable,
  pieces: AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  await using _opened = opened;
  yield* pieces;
}

async function* translated<T>(pieces: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* pieces;
  } catch (error) {
    throw toFileError(error);
  }
}
