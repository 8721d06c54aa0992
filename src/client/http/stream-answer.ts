/** An answer that is read as it comes, for logs that are followed and exports of any length: line by line, never all at once. */
import { type ClientRequest, type IncomingMessage, request as send } from 'node:http';
import { onAbort } from '../../base/abort.js';
import { concatBytes, decodeUtf8 } from '../../base/bytes.js';
import { AilsdError } from '../../protocol/errors.js';
import type { HttpResponse } from './exchange.js';
import { toFailure } from './failures.js';
import type { Http, HttpRequest } from './http.js';

export interface StreamedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** To be read once, to its end or until the loop is left: then the connection is closed. */
  lines(): AsyncGenerator<string, void, undefined>;
  /** The beginning of it, as an answer like any other: what an error says. */
  whole(): Promise<HttpResponse>;
}

export const LINE_MAX_BYTES = 24 * 1024 * 1024;
const WHOLE_MAX_BYTES = 64 * 1024;
/** For the answer to begin; how long it then goes on is the caller's wish. */
const BEGIN_MS = 30_000;

/** The URL is absolute. Aborting the request's signal ends it at any time. */
export async function streamAnswer(http: Http, request: HttpRequest): Promise<StreamedAnswer> {
  const url = new URL(request.url);
  const agent = await http.agentFor(request.url);
  const { method = 'GET', headers = {}, body, signal } = request;
  signal?.throwIfAborted();
  const outgoing = send(url, { method, headers: { ...headers }, agent });
  const stopListening = signal && onAbort(signal, () => outgoing.destroy());
  const fail = (error: unknown): unknown => toFailure(error, { host: url.host, signal });
  try {
    outgoing.setTimeout(BEGIN_MS, () => outgoing.destroy());
    const incoming = await answerTo(outgoing, body);
    outgoing.setTimeout(0);
    incoming.once('close', () => stopListening?.());
    return toStreamed(incoming, fail);
  } catch (error) {
    stopListening?.();
    outgoing.destroy();
    throw fail(error);
  }
}

function answerTo(
  outgoing: ClientRequest,
  body: string | Uint8Array | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Stays for good: what fails after the answer began is told to whoever reads it.
    outgoing.on('error', reject);
    outgoing.on('close', () => reject(new Error('closed before it answered')));
    outgoing.once('response', resolve);
    outgoing.end(body);
  });
}

function toStreamed(incoming: IncomingMessage, fail: (error: unknown) => unknown): StreamedAnswer {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const status = incoming.statusCode ?? 0;
  return {
    status,
    headers,
    async *lines() {
      try {
        yield* linesOf(incoming);
      } catch (error) {
        throw fail(error);
      } finally {
        incoming.destroy();
      }
    },
    async whole() {
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of incoming) {
        if (!(chunk instanceof Uint8Array)) continue;
        chunks.push(chunk);
        length += chunk.length;
        if (length >= WHOLE_MAX_BYTES) break;
      }
      return { status, headers, body: concatBytes(chunks) };
    },
  };
}

async function* linesOf(incoming: IncomingMessage): AsyncGenerator<string, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    if (!(chunk instanceof Uint8Array)) continue;
    let rest: Uint8Array = chunk;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      yield textOf([...parts, rest.subarray(0, end)]);
      parts = [];
      length = 0;
      rest = rest.subarray(end + 1);
    }
    if (rest.length === 0) continue;
    parts.push(rest);
    length += rest.length;
    if (length > LINE_MAX_BYTES) throw notLines(`a line is longer than ${LINE_MAX_BYTES} bytes`);
  }
  if (length > 0) yield textOf(parts);
}

const NEWLINE = 0x0a;

function textOf(parts: readonly Uint8Array[]): string {
  const text = decodeUtf8(concatBytes(parts));
  if (text === undefined) throw notLines('a line is not UTF-8');
  return text;
}

function notLines(why: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the server's answer: ${why}`);
}
