/** The files of a sandbox: read, look at, list, replace and delete them, and folders as archives both ways. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { buildPath, underBaseUrl } from '../../protocol/routes.js';
import { errorFromAnswer, parseJsonAnswer } from '../http/answer.js';
import type { Http } from '../http/http.js';
import { type TransferAnswer, transfer } from '../http/transfer.js';
import { type Document, isDocument, type Page } from '../sessions/call.js';
import type { Session } from '../sessions/session.js';

export interface FileStatus {
  readonly kind: 'file' | 'folder';
  readonly sizeBytes: number | undefined;
  readonly etag: string | undefined;
  /** Permission bits. */
  readonly mode: number | undefined;
  readonly modifiedAtMs: number | undefined;
}

export interface OpenedFile extends FileStatus {
  /** To be read once. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>;
}

/** An ETag, with its quotes, or `*`. Where it does not hold: PRECONDITION_FAILED, with the `etag` of what is there. */
export interface FileConditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

type Body = () => AsyncIterable<Uint8Array>;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Begun anew for each try. */
  readonly body?: Body | undefined;
}

export class Files {
  readonly #session: Pick<Session, 'httpUrl' | 'token' | 'refresh' | 'canRefresh'>;
  readonly #http: Http;
  readonly #signal: AbortSignal | undefined;

  constructor(
    session: Pick<Session, 'httpUrl' | 'token' | 'refresh' | 'canRefresh'>,
    http: Http,
    signal?: AbortSignal,
  ) {
    this.#session = session;
    this.#http = http;
    this.#signal = signal;
  }

  async read(path: string): Promise<OpenedFile> {
    const answer = await this.#ask({ method: 'GET', path: filePath(path) });
    const status = statusOf(answer);
    return { ...status, chunks: () => exactly(answer.chunks(), status.sizeBytes) };
  }

  async stat(path: string): Promise<FileStatus> {
    const asked = { method: 'HEAD', path: filePath(path) };
    const answer = await this.#ask(asked);
    await answer.whole();
    return statusOf(answer);
  }

  async list(
    path: string,
    page: { limit?: number | undefined; cursor?: string | undefined },
  ): Promise<Page> {
    const query = queryOf({ limit: page.limit, cursor: page.cursor });
    const headers = { accept: 'application/json' };
    const answer = await this.#ask({ method: 'GET', path: `${filePath(path)}${query}`, headers });
    if (statusOf(answer).kind === 'file') {
      await answer.chunks().return();
      throw new AilsdError('INVALID_REQUEST', 'it is a file, and no folder', {
        details: { field: 'path' },
      });
    }
    const value = documentOf(parseJsonAnswer(await answer.whole()));
    const { items, next_cursor: cursor } = value;
    if (Array.isArray(items) && items.every(isDocument))
      return { items, nextCursor: typeof cursor === 'string' ? cursor : undefined };
    throw mismatch('items');
  }

  /** All of the file, or none of it. */
  async write(path: string, body: Body, conditions: FileConditions = {}): Promise<Document> {
    const { ifMatch, ifNoneMatch } = conditions;
    const headers = {
      'content-type': 'application/octet-stream',
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
    };
    return this.#document({ method: 'PUT', path: filePath(path), headers, body });
  }

  async remove(path: string, { ifMatch }: FileConditions = {}): Promise<void> {
    const headers: Record<string, string> = ifMatch === undefined ? {} : { 'if-match': ifMatch };
    await (await this.#ask({ method: 'DELETE', path: filePath(path), headers })).whole();
  }

  /** A folder as a tar archive. */
  async download(path: string): Promise<AsyncIterable<Uint8Array>> {
    const query = queryOf({ path, archive: 'tar' });
    const asked = { method: 'GET', path: `${buildPath('downloadFile', {})}${query}` };
    return (await this.#ask(asked)).chunks();
  }

  /** Unpacks a tar archive into a folder, which is made if need be. */
  async upload(path: string, archive: Body): Promise<Document> {
    const query = queryOf({ path, extract: '1' });
    const headers = { 'content-type': 'application/x-tar' };
    const target = `${buildPath('uploadFile', {})}${query}`;
    return this.#document({ method: 'POST', path: target, headers, body: archive });
  }

  async #document(asked: Asked): Promise<Document> {
    return documentOf(parseJsonAnswer(await (await this.#ask(asked)).whole()));
  }

  /** A token that expired on the way is refreshed once. */
  async #ask(asked: Asked): Promise<TransferAnswer> {
    let answer = await this.#send(asked, await this.#session.token(this.#signal));
    if (answer.status === 401 && this.#session.canRefresh) {
      await answer.chunks().return();
      answer = await this.#send(asked, await this.#session.refresh(this.#signal));
    }
    if (answer.status >= 200 && answer.status <= 299) return answer;
    const failed = await answer.whole();
    // What is only looked at is told without words.
    if (asked.method === 'HEAD') throw errorWithoutWords(failed.status);
    throw errorFromAnswer(failed);
  }

  #send({ method, path, headers, body }: Asked, token: Secret): Promise<TransferAnswer> {
    return transfer(this.#http, {
      method,
      url: underBaseUrl(this.#session.httpUrl, path),
      headers: { ...headers, authorization: `Bearer ${token.reveal()}` },
      body: body?.(),
      signal: this.#signal,
    });
  }
}

function filePath(path: string): string {
  return buildPath('readFile', { path });
}

function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(values))
    if (value !== undefined) search.set(key, String(value));
  return search.size === 0 ? '' : `?${search}`;
}

function statusOf({ headers }: TransferAnswer): FileStatus {
  const size = Number(headers['content-length'] ?? Number.NaN);
  const mode = Number.parseInt(headers['x-ailsd-mode'] ?? '', 8);
  const modified = Date.parse(headers['last-modified'] ?? '');
  // Something in between may let only the usual headers through; of the two only a file has a tag.
  const said = headers['x-ailsd-kind'] ?? (headers['etag'] === undefined ? 'folder' : 'file');
  const kind = said === 'folder' ? 'folder' : 'file';
  return {
    kind,
    sizeBytes: kind === 'folder' || Number.isNaN(size) ? undefined : size,
    etag: headers['etag'],
    mode: Number.isNaN(mode) ? undefined : mode,
    modifiedAtMs: Number.isNaN(modified) ? undefined : modified,
  };
}

async function* exactly(
  chunks: AsyncIterable<Uint8Array>,
  sizeBytes: number | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    yield chunk;
  }
  if (sizeBytes !== undefined && length !== sizeBytes)
    throw new AilsdError('UNREACHABLE', 'the file did not come whole');
}

function errorWithoutWords(status: number): AilsdError {
  const code = STATUS_CODES[status] ?? 'PROTOCOL_MISMATCH';
  return new AilsdError(code, `the sandbox answered ${status}`, { details: { status } });
}

const STATUS_CODES: Readonly<Record<number, AilsdError['code']>> = {
  400: 'INVALID_REQUEST',
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  412: 'PRECONDITION_FAILED',
  503: 'BACKEND_UNAVAILABLE',
};

function documentOf(value: unknown): Document {
  if (isDocument(value)) return value;
  throw mismatch('body');
}

function mismatch(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the sandbox's answer: ${field} is of another form`, {
    details: { field },
  });
}
