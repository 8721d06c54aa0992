/** The door: an HTTP server with limits before work, an id for each request, one log line at its end, and a clean end. */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import type { RandomFill } from '../../protocol/ids.js';
import { matchRoute } from '../../protocol/routes.js';
import { BODY_MAX_BYTES } from '../../protocol/shapes/envelope.js';
import { checkBodyHeaders } from './body.js';
import { Connections } from './connections.js';
import { type EndedExchange, Exchange } from './exchange.js';
import { settleOrigin, TrustedProxies } from './forwarded.js';
import { HTTP_LIMITS, type HttpLimits } from './limits.js';
import { answerParserError } from './parser-error.js';
import { requestIdOf } from './request-id.js';

export interface HttpServerParts {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Networks whose `X-Forwarded-*` is believed. */
  readonly trustedProxies: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
  readonly limits?: Partial<HttpLimits> | undefined;
  /** Told of each exchange when it is over, for the counters. */
  readonly onEnd?: ((ended: EndedExchange) => void) | undefined;
}

export type Handle = (exchange: Exchange) => Promise<void>;

/** A request to go on as a WebSocket. `head` is what came after its headers already. */
export type HandleUpgrade = (exchange: Exchange, head: Buffer) => Promise<void>;

export interface Serving {
  /** Whether callers reach us by TLS, ended by a proxy before us. */
  readonly isHttps: boolean;
  /** Absent: whoever asks for one is told that there is none. */
  readonly upgrade?: HandleUpgrade | undefined;
  /** The most a body may have; the JSON limit unless it says otherwise. */
  readonly bodyMaxBytes?: ((exchange: Exchange) => number) | undefined;
}

/** Listens at once; until it is told what to serve, it answers 503. */
export async function openHttpServer(parts: HttpServerParts): Promise<HttpServer> {
  const server = new HttpServer(parts);
  await server.listen();
  return server;
}

export class HttpServer implements AsyncDisposable {
  readonly #parts: HttpServerParts;
  readonly #limits: HttpLimits;
  readonly #proxies: TrustedProxies;
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #open = new Set<Exchange>();
  readonly #upgraded = new Set<Socket>();
  readonly #draining = new AbortController();
  #handle: Handle = notYet;
  #serving: Serving = { isHttps: false };
  #closing: Promise<void> | undefined;

  constructor(parts: HttpServerParts) {
    this.#parts = parts;
    this.#limits = { ...HTTP_LIMITS, ...parts.limits };
    this.#proxies = new TrustedProxies(parts.trustedProxies);
    this.#server = createServer({
      maxHeaderSize: this.#limits.headerBytes,
      headersTimeout: this.#limits.headersTimeoutMs,
      requestTimeout: this.#limits.requestTimeoutMs,
      keepAliveTimeout: this.#limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, this.#limits.headersTimeoutMs),
      noDelay: true,
    });
    this.#server.maxConnections = this.#limits.connections;
    this.#connections = new Connections(this.#limits.connectionsPerAddress, this.#proxies);
    this.#server
      .on('connection', (socket) => this.#connections.admit(socket))
      .on('request', (request, response) => void this.#take(request, response, false))
      .on('checkContinue', (request, response) => void this.#take(request, response, true))
      .on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head))
      .on('clientError', (error, socket) => this.#refuse(error, socket));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#parts.port;
  }

  serve(handle: Handle, serving: Serving): void {
    this.#handle = handle;
    this.#serving = serving;
  }

  /** Connections that have become WebSockets. */
  get upgraded(): number {
    return this.#upgraded.size;
  }

  listen(): Promise<void> {
    const { host, port } = this.#parts;
    return new Promise((resolve, reject) => {
      const fail = (cause: Error): void => reject(cannotListen(host, port, cause));
      this.#server.once('error', fail);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', fail);
        this.#server.on('error', (error) =>
          this.#parts.logger.error('listening failed', { error }),
        );
        resolve();
      });
    });
  }

  /** Takes nothing new, lets what is in flight finish for a while, then cuts it. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const exchange of this.#open) exchange.makeLast();
    this.#draining.abort(new AilsdError('BACKEND_UNAVAILABLE', 'the server is ending'));
    this.#closeIdle();
    const timer = new AbortController();
    const late = this.#parts.clock.sleep(this.#limits.shutdownTimeoutMs, timer.signal).then(
      () => {
        this.#server.closeAllConnections();
        // To Node those are no connections of its own any more.
        for (const socket of this.#upgraded) socket.destroy();
      },
      () => undefined,
    );
    await closed;
    timer.abort();
    await late;
  }

  async #take(request: IncomingMessage, response: ServerResponse, asks: boolean): Promise<void> {
    const exchange = this.#begin(request, response);
    try {
      checkHeaderCount(request, this.#limits.headerCount);
      checkBodyHeaders(request, this.#serving.bodyMaxBytes?.(exchange) ?? BODY_MAX_BYTES);
      if (asks) response.writeContinue();
      await this.#handle(exchange);
    } catch (thrown) {
      exchange.fail(thrown);
    }
  }

  /** Until it is let through it is answered as any request is; a wish for another protocol than WebSocket is passed over. */
  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const { socket } = request;
    // Node listens no longer.
    stream.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    if (!isWebSocket(request)) return this.#take(request, response, false);
    const exchange = this.#begin(request, response);
    try {
      checkHeaderCount(request, this.#limits.headerCount);
      const { upgrade } = this.#serving;
      if (upgrade === undefined) throw new AilsdError('NOT_FOUND', 'there is no WebSocket here');
      this.#upgraded.add(socket);
      socket.once('close', () => {
        this.#upgraded.delete(socket);
        this.#ended(exchange);
      });
      await upgrade(exchange, head);
    } catch (thrown) {
      this.#upgraded.delete(socket);
      exchange.fail(thrown);
    }
  }

  #begin(request: IncomingMessage, response: ServerResponse): Exchange {
    const { clock, logger, random, onEnd } = this.#parts;
    const exchange = new Exchange({
      request,
      response,
      requestId: requestIdOf(request, random),
      origin: settleOrigin(request, this.#proxies),
      isHttps: this.#serving.isHttps,
      clock,
      logger,
      draining: this.#draining.signal,
      onEnd,
    });
    this.#open.add(exchange);
    response.once('close', () => this.#ended(exchange));
    if (this.#closing !== undefined) exchange.makeLast();
    return exchange;
  }

  #ended(exchange: Exchange): void {
    this.#open.delete(exchange);
    if (this.#closing !== undefined) setImmediate(() => this.#closeIdle());
  }

  #closeIdle(): void {
    const busy = new Set([...this.#open].map(({ request }) => request.socket));
    for (const socket of this.#upgraded) busy.add(socket);
    this.#connections.closeAllBut(busy);
  }

  #refuse(error: Error, socket: Duplex): void {
    for (const { request } of this.#open) {
      // An answer is on its way on this connection: ours would land in the middle of it.
      if (request.socket === socket) return void socket.destroy();
    }
    answerParserError(error, socket, this.#parts.random, this.#parts.logger);
  }
}

async function notYet(): Promise<never> {
  throw new AilsdError('BACKEND_UNAVAILABLE', 'the server is starting', {
    details: { retry_after_ms: 1_000 },
  });
}

/** Files go through without being held; whatever is read as a whole is small. */
export function bodyMaxBytes({ request, path }: Exchange): number {
  if (!path.startsWith('/relay/')) return BODY_MAX_BYTES;
  const matched = matchRoute(request.method ?? '', path);
  const isBytes = matched.kind === 'found' && 'request' in matched.route;
  return isBytes && matched.route.request?.media !== undefined
    ? STREAMED_MAX_BYTES
    : BODY_MAX_BYTES;
}

const STREAMED_MAX_BYTES = 16 * 1024 ** 3;

function isWebSocket({ headers, method }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/** Node drops the lines past its own limit in silence, so they are counted raw. */
function checkHeaderCount({ rawHeaders }: IncomingMessage, most: number): void {
  if (rawHeaders.length / 2 <= most) return;
  throw new AilsdError('INVALID_REQUEST', `a request may have ${most} header lines`, {
    details: { field: 'headers' },
  });
}

function cannotListen(host: string, port: number, cause: Error): AilsdError {
  const reason = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
  return new AilsdError('CONFIG_INVALID', `cannot listen on ${host}:${port} (${reason})`, {
    cause,
    details: { field: 'listen' },
    hint: 'choose another address with --listen HOST:PORT; port 0 takes any that is free',
  });
}
