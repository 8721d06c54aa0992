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
  /** Aborts when the server wants to end: what goes on without an end of its own is to end. */
  readonly draining: AbortSignal;
  /** Told once, when all is over. */
  readonly onEnd?: ((ended: EndedExchange) => void) | undefined;
}

/** What is counted of it: nothing that names anybody. */
export interface EndedExchange {
  /** The route's name in the protocol's table, if it has one. */
  readonly route: string | undefined;
  /** `undefined`: the caller had gone. */
  readonly status: number | undefined;
  readonly seconds: number;
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
  readonly draining: AbortSignal;
  readonly #onEnd: ExchangeParts['onEnd'];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #begin: number;
  #gone: AbortController | undefined;
  #notes: LogFields = {};
  #isAnsweredElsewhere = false;
  #isUpgraded = false;
  #isEnded = false;
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
    this.draining = parts.draining;
    this.#onEnd = parts.onEnd;
    this.#clock = clock;
    this.#logger = logger;
    this.#begin = clock.monotonic();
    response.once('close', () => this.#end());
  }

  /** Whether the caller left before the answer was whole. */
  get isGone(): boolean {
    return this.response.destroyed && !this.response.writableFinished;
  }

  /** Aborts when the caller has gone before the answer was whole. */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.isGone || this.#isEnded) this.#gone.abort(CALLER_GONE);
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
    if (this.#isUpgraded) {
      request.socket.destroy();
      return;
    }
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

  /** From here on the connection is no longer HTTP; its line in the log comes when it closes. */
  upgraded(): void {
    this.#isUpgraded = true;
    this.response.detachSocket(this.request.socket);
    this.request.socket.once('close', () => this.#end());
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { request, response, requestId, origin } = this;
    const isWhole = this.#isUpgraded || response.writableFinished;
    if (!isWhole || this.#isUpgraded) this.#gone?.abort(CALLER_GONE);
    const isFault = this.#error !== undefined && toAilsdError(this.#error).row.status >= 500;
    const status = this.#isUpgraded ? 101 : response.statusCode;
    const ms = this.#clock.monotonic() - this.#begin;
    const route = this.#routeName();
    this.#onEnd?.({ route, status: isWhole ? status : undefined, seconds: ms / 1_000 });
    this.#logger[isFault ? 'error' : 'info']('request', {
      request_id: requestId,
      method: request.method,
      ...this.#notes,
      route: route ?? (this.#isAnsweredElsewhere ? pathLabel(this.path) : '…'),
      status: isWhole ? status : null,
      duration_ms: Math.round(ms * 10) / 10,
      address: origin.address,
      ...(this.#error === undefined ? {} : { error: this.#error }),
    });
  }

  /** Nothing of a path that nobody knows: it may hold a secret by mistake. */
  #routeName(): string | undefined {
    const { route } = this.#notes;
    if (typeof route === 'string') return route;
    const matched = matchRoute(this.request.method ?? '', this.path);
    return matched.kind === 'found' ? matched.name : undefined;
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
