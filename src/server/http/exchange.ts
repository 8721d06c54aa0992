/** One request and its answer: who asked, by which id, and what its line in the log will say. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.js';
import type { LogFields, Logger } from '../../base/logger.js';
import { matchRoute } from '../../protocol/routes.js';
import { hasAuthorization } from './bearer.js';
import { errorAnswer, toAilsdError } from './errors.js';
import type { Origin } from './forwarded.js';
import { DRAIN_LIMITS } from './limits.js';
import { HTTPS_HEADERS, SECURITY_HEADERS } from './security-headers.js';

export interface ExchangeParts {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly origin: Origin;
  readonly isHttps: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly origin: Origin;
  /** What its answer carries whatever it is; names as they are sent. */
  readonly headers: Record<string, string>;
  /** As it stood on the request line, without the query, which may hold anything. */
  readonly path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #begin: number;
  #gone: AbortController | undefined;
  #notes: LogFields = {};
  #isAnsweredElsewhere = false;
  #error: unknown;

  constructor(parts: ExchangeParts) {
    const { request, response, requestId, origin, isHttps, clock, logger } = parts;
    this.request = request;
    this.response = response;
    this.requestId = requestId;
    this.origin = origin;
    this.headers = {
      'X-Request-Id': requestId,
      ...SECURITY_HEADERS,
      ...(isHttps ? HTTPS_HEADERS : {}),
    };
    this.path = pathOf(request.url ?? '/');
    this.#clock = clock;
    this.#logger = logger;
    this.#begin = clock.monotonic();
    response.once('close', () => this.#end());
  }

  /** Aborts when the caller has gone before the answer was whole. */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.response.destroyed && !this.response.writableFinished) this.#gone.abort(CALLER_GONE);
    return this.#gone.signal;
  }

  /** Adds to the line that is logged at the end: ids, never a token. */
  note(fields: LogFields): void {
    this.#notes = { ...this.#notes, ...fields };
  }

  /** For code that writes to the response itself: what it does not set stays as it is here. */
  presetHeaders(): void {
    this.#isAnsweredElsewhere = true;
    for (const [name, value] of Object.entries(this.headers)) this.response.setHeader(name, value);
  }

  /** After this answer the connection ends. */
  makeLast(): void {
    this.headers['Connection'] = 'close';
    if (!this.response.headersSent) this.response.setHeader('Connection', 'close');
  }

  fail(thrown: unknown): void {
    this.#error = thrown;
    const { request, response } = this;
    if (response.headersSent) {
      // Half an answer can't be taken back; a cut line tells the caller that it is not whole.
      response.destroy();
      return;
    }
    const answer = errorAnswer(thrown, this.requestId, hasAuthorization(request));
    const length = Buffer.byteLength(answer.body);
    if (!request.complete) drain(request);
    response.writeHead(answer.status, {
      ...this.headers,
      ...answer.headers,
      'Content-Length': length,
    });
    response.end(answer.body);
  }

  /** For whoever answers a failure by itself. */
  noteError(thrown: unknown): void {
    this.#error = thrown;
  }

  #end(): void {
    const { request, response, requestId, origin } = this;
    const isWhole = response.writableFinished;
    if (!isWhole) this.#gone?.abort(CALLER_GONE);
    const isFault = this.#error !== undefined && toAilsdError(this.#error).row.status >= 500;
    this.#logger[isFault ? 'error' : 'info']('request', {
      request_id: requestId,
      method: request.method,
      ...this.#notes,
      route: this.#notes['route'] ?? this.#routeLabel(),
      status: isWhole ? response.statusCode : null,
      duration_ms: Math.round((this.#clock.monotonic() - this.#begin) * 10) / 10,
      address: origin.address,
      ...(this.#error === undefined ? {} : { error: this.#error }),
    });
  }

  /** Nothing of a path that nobody knows: it may hold a secret by mistake. */
  #routeLabel(): string {
    const matched = matchRoute(this.request.method ?? '', this.path);
    if (matched.kind === 'found') return matched.name;
    return this.#isAnsweredElsewhere ? pathLabel(this.path) : '…';
  }
}

const CALLER_GONE = new Error('the caller has gone');

function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path === '' ? '/' : path;
}

/** Of a path that somebody knows: its first part, if that is a plain word. */
function pathLabel(path: string): string {
  const [, first = '', ...rest] = path.split('/', 3);
  const word = PLAIN_WORD.test(first) ? first : '…';
  return rest.length === 0 ? `/${word}` : `/${word}/…`;
}

const PLAIN_WORD = /^[A-Za-z._-]{0,32}$/;

/** Reads on for a while, so that the caller, still sending, gets to see why it was refused; then the line is cut. */
function drain(request: IncomingMessage): void {
  let left = DRAIN_LIMITS.bytes;
  const cut = (): void => {
    request.socket.destroySoon();
  };
  const timer = setTimeout(cut, DRAIN_LIMITS.ms);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  request.once('close', () => clearTimeout(timer));
  request.once('end', () => clearTimeout(timer));
  request.resume();
}
