/** One request of a caller, sent on to a sandbox: no redirects, bodies piped with nothing held, both ends freed together. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { onAbort } from '../../../base/abort.js';
import type { Secret } from '../../../base/secret.js';
import { AilsdError, errorRow, isErrorCode } from '../../../protocol/errors.js';
import { parseAnswer, type Schema } from '../../../protocol/parse.js';
import { BODY_MAX_BYTES, errorEnvelope } from '../../../protocol/shapes/envelope.js';
import { readJson } from '../../http/body.js';
import type { Answer, Call } from '../../http/call.js';
import type { Exchange } from '../../http/exchange.js';
import type { Metrics } from '../../http/metrics.js';
import { readQuery } from '../../http/query.js';
import { guardedLookup, placeOf, unreachable } from './address.js';
import { headersToClient, headersToSandbox } from './headers.js';

export interface RelayLimits {
  /** To be connected. */
  readonly connectMs: number;
  /** From a request that is whole to the headers of its answer, where the answer does not wait for a command. */
  readonly answerMs: number;
  /** The same where it does. */
  readonly commandMs: number;
  /** Neither end takes or gives a byte of a body for this long; a log that is followed may be silent. */
  readonly stallMs: number;
  /** Kept of what is sent to a slow WebSocket; past it the other side is not read. */
  readonly bufferedBytes: number;
}

export const RELAY_LIMITS: RelayLimits = {
  connectMs: 5_000,
  answerMs: 30_000,
  commandMs: 3_600_000,
  stallMs: 60_000,
  bufferedBytes: 256 * 1024,
};

/** What is asked of a sandbox. All of it is ours or was parsed: nothing of a request's line or host is taken over. */
export interface RelayedRequest {
  /** From the store. */
  readonly baseUrl: string;
  readonly method: string;
  /** Below the base, encoded. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Absent: the sandbox is told of no token at all. */
  readonly token: Secret | undefined;
  readonly answerMs: number;
  /** Whether the caller's body goes along; of any other it is not even looked at. */
  readonly hasBody: boolean;
  /** The answer has no end of its own: when the server wants to end, it is cut. */
  readonly isEndless?: boolean | undefined;
}

export interface HttpRelayParts {
  readonly limits: RelayLimits;
  readonly resolve?: LookupFunction | undefined;
  readonly metrics?: Metrics | undefined;
}

export class HttpRelay {
  readonly #limits: RelayLimits;
  readonly #lookup: LookupFunction;
  readonly #metrics: Metrics | undefined;

  constructor({ limits, resolve, metrics }: HttpRelayParts) {
    this.#limits = limits;
    this.#lookup = guardedLookup(resolve);
    this.#metrics = metrics;
  }

  /** Answers the exchange with what the sandbox says. Errors of the sandbox become ours, with our request id. */
  async relay(exchange: Exchange, asked: RelayedRequest): Promise<Answer> {
    const cut = new AbortController();
    const stop = (): void => cut.abort();
    exchange.response.once('close', stop);
    const callOff = asked.isEndless === true ? onAbort(exchange.draining, stop) : undefined;
    try {
      const answer = await this.#send(exchange, asked, cut.signal);
      const { statusCode = 0 } = answer;
      if (statusCode >= 400) throw await errorOf(answer);
      // A redirect is neither followed nor passed on: the place it names was never registered.
      if (statusCode < 200 || (statusCode >= 300 && statusCode !== 304)) {
        answer.destroy();
        throw unreachable(`the sandbox answered ${statusCode}`);
      }
      await this.#pass(answer, exchange, cut.signal);
      return { isSent: true };
    } catch (thrown) {
      if (thrown instanceof AilsdError) throw thrown;
      throw unreachable('the line broke', thrown);
    } finally {
      exchange.response.off('close', stop);
      callOff?.();
      cut.abort();
    }
  }

  #send(
    exchange: Exchange,
    asked: RelayedRequest,
    signal: AbortSignal,
  ): Promise<http.IncomingMessage> {
    const { connectMs } = this.#limits;
    const { protocol, hostname, port, basePath } = placeOf(asked.baseUrl);
    const query = new URLSearchParams(asked.query).toString();
    const { request } = exchange;
    return new Promise((resolve, reject) => {
      const outgoing = (protocol === 'https:' ? https : http).request({
        protocol,
        hostname,
        port,
        // A connection of its own: what one sandbox leaves on a line never meets another's request.
        agent: false,
        lookup: this.#lookup,
        method: asked.method,
        path: `${basePath}${asked.path}${query === '' ? '' : `?${query}`}`,
        headers: {
          ...headersToSandbox(request.headers, exchange.requestId, asked.hasBody),
          ...(asked.token && { authorization: `Bearer ${asked.token.reveal()}` }),
        },
        maxHeaderSize: HEADERS_MAX_BYTES,
        signal,
      });
      let timer = setTimeout(() => outgoing.destroy(new Error('not connected')), connectMs);
      const wait = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => outgoing.destroy(new Error('no answer')), asked.answerMs);
      };
      outgoing.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', wait);
        else wait();
      });
      let answer: http.IncomingMessage | undefined;
      const failed = (cause: Error): void => {
        clearTimeout(timer);
        // A body that ends with its line looks whole even if the line broke.
        answer?.destroy(cause);
        reject(cause instanceof AilsdError ? cause : unreachable(cause.message, cause));
      };
      outgoing.once('response', (incoming) => {
        clearTimeout(timer);
        answer = incoming;
        resolve(incoming);
      });
      outgoing.on('error', failed);
      // Also without an error: when it switches to a protocol that nobody asked for.
      outgoing.once('close', () => {
        if (answer === undefined) failed(new Error('closed without an answer'));
      });
      // Without a length and a method that has one, a body would be read as the next request.
      if (!asked.hasBody) outgoing.end();
      // Ends the other way when either side breaks; what that was, the events above have told.
      else pipeline(request, outgoing).catch(() => undefined);
    });
  }

  async #pass(
    answer: http.IncomingMessage,
    { response, headers }: Exchange,
    signal: AbortSignal,
  ): Promise<void> {
    // The pipe itself slows a sandbox down to the pace of its reader; one that never reads is let go.
    const stalled = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    answer.on('pause', () => {
      clearTimeout(timer);
      timer = setTimeout(() => stalled.abort(), this.#limits.stallMs);
    });
    response.on('drain', () => clearTimeout(timer));
    answer.on('data', (chunk: Buffer) => this.#metrics?.relayed('to_client', chunk.length));
    response.writeHead(answer.statusCode ?? 200, {
      ...headersToClient(answer.headers),
      ...headers,
    });
    response.flushHeaders();
    // The pipe has half a dozen of its own.
    response.setMaxListeners(LISTENERS_MAX);
    try {
      await pipeline(answer, response, { signal: AbortSignal.any([signal, stalled.signal]) });
    } catch {
      // The answer was under way: a cut line tells the caller that it is not whole.
      response.destroy();
      answer.destroy();
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Of the query, what the route has a name for, as it was written. */
export function knownQuery(call: Call, schema: Schema): Readonly<Record<string, string>> {
  const known = Object(call.query(schema));
  const given = Object.entries(readQuery(call.exchange.request.url ?? ''));
  return Object.fromEntries(given.filter(([name]) => Object.hasOwn(known, name)));
}

const HEADERS_MAX_BYTES = 16 * 1024;
const LISTENERS_MAX = 32;

/** The sandbox's own words are taken only where they are an error of our table, and never one that speaks for the broker. */
async function errorOf(answer: http.IncomingMessage): Promise<AilsdError> {
  const { statusCode = 500 } = answer;
  if (statusCode >= 500 || statusCode === 401 || statusCode === 407) {
    answer.destroy();
    return unreachable(`the sandbox answered ${statusCode}`);
  }
  try {
    const parsed = parseAnswer(errorEnvelope, await readJson(answer, BODY_MAX_BYTES));
    if (!parsed.ok) throw parsed.error;
    const { code, message, ...details } = parsed.value.error;
    if (!isErrorCode(code) || errorRow(code).status !== statusCode)
      throw new Error('no error of ours');
    return new AilsdError(code, message, { details: plain(details) });
  } catch (cause) {
    answer.destroy();
    return unreachable(`the sandbox answered ${statusCode} in words of its own`, cause);
  }
}

/** Those that our own errors have, and nothing that could not stand in a header. */
function plain(details: Readonly<Record<string, unknown>>): Record<string, string | number> {
  const kept: Record<string, string | number> = {};
  for (const name of ['field', 'capability', 'etag', 'max_bytes', 'retry_after_ms'] as const) {
    const value = details[name];
    if (typeof value === 'number') kept[name] = value;
    if (typeof value === 'string' && /^[\x20-\x7e]{0,256}$/.test(value)) kept[name] = value;
  }
  return kept;
}
