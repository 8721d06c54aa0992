/** A request and an answer of any length, both as they come: never more of either in memory than a few pieces. */
import { type ClientRequest, type IncomingMessage, request as send } from 'node:http';
import { onAbort } from '../../base/abort.js';
import { concatBytes } from '../../base/bytes.js';
import type { HttpResponse } from './exchange.js';
import { toFailure } from './failures.js';
import type { Http, HttpRequest } from './http.js';

export interface TransferRequest extends Omit<HttpRequest, 'body' | 'timeoutMs' | 'maxBytes'> {
  readonly body?: AsyncIterable<Uint8Array> | undefined;
}

export interface TransferAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** To be read once, to its end or until the loop is left: then the connection is closed. One that is cut is an error. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>;
  /** A short answer, such as an error. */
  whole(): Promise<HttpResponse>;
}

/** Nothing sent and nothing received for so long: the line is dead, whatever its socket says. */
const SILENCE_MS = 120_000;
const WHOLE_MAX_BYTES = 4 * 1024 * 1024;

/** The URL is absolute. An answer that comes before all of the body was sent ends the sending. */
export async function transfer(http: Http, request: TransferRequest): Promise<TransferAnswer> {
  const url = new URL(request.url);
  const { method = 'GET', headers = {}, body, signal } = request;
  const agent = await http.agentFor(request.url);
  signal?.throwIfAborted();
  const outgoing = send(url, { method, headers: { ...headers }, agent });
  const stopListening = signal && onAbort(signal, () => outgoing.destroy());
  const fail = (error: unknown): unknown => toFailure(error, { host: url.host, signal });
  outgoing.setTimeout(SILENCE_MS, () => outgoing.destroy());
  outgoing.once('close', () => stopListening?.());
  const answered = answerTo(outgoing);
  try {
    const [incoming] = await Promise.all([answered, sendBody(outgoing, body, answered)]);
    return toAnswer(incoming, fail);
  } catch (error) {
    outgoing.destroy();
    throw fail(error);
  }
}

function answerTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('close', () => reject(new Error('closed before it answered')));
    outgoing.once('response', resolve);
  });
}

async function sendBody(
  outgoing: ClientRequest,
  body: AsyncIterable<Uint8Array> | undefined,
  answered: Promise<unknown>,
): Promise<void> {
  let isOver = false;
  const over = answered.then(
    () => undefined,
    () => undefined,
  );
  void over.then(() => {
    isOver = true;
  });
  for await (const chunk of body ?? []) {
    if (isOver) break;
    if (outgoing.write(chunk)) continue;
    const drained = new Promise<void>((resolve) => outgoing.once('drain', () => resolve()));
    await Promise.race([drained, over]);
  }
  outgoing.end();
}

function toAnswer(incoming: IncomingMessage, fail: (error: unknown) => unknown): TransferAnswer {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const status = incoming.statusCode ?? 0;
  const chunks = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of incoming) if (chunk instanceof Uint8Array) yield chunk;
    } catch (error) {
      throw fail(error);
    } finally {
      incoming.destroy();
    }
  };
  return {
    status,
    headers,
    chunks,
    async whole() {
      const parts: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of chunks()) {
        parts.push(chunk);
        length += chunk.length;
        if (length > WHOLE_MAX_BYTES) break;
      }
      return { status, headers, body: concatBytes(parts) };
    },
  };
}
