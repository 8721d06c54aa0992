/** The front door: finds the sandbox and the route, looks at the token, and lets in, or says no in the way the contract has it. */
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { Secret } from '../../../base/secret.js';
import { AilsdError } from '../../../protocol/errors.js';
import { UNAUTHENTICATED_MESSAGE_MAX_BYTES } from '../../../protocol/frames.js';
import { matchRoute } from '../../../protocol/routes.js';
import { bearerOf, hasAuthorization } from '../../http/bearer.js';
import type { Answer } from '../../http/call.js';
import { checkParameters } from '../../http/caller.js';
import type { Exchange } from '../../http/exchange.js';
import { streamAnswer } from '../../http/stream-answer.js';
import { WebSocketAcceptor } from '../../http/websocket-accept.js';
import type { Access } from '../access/access.js';
import type { Identity } from '../access/identity.js';
import { Connection } from './connection.js';
import type { SandboxRoutes } from './routes.js';
import { WaitingRoom } from './waiting-room.js';

/** What the door needs of a sandbox. */
export interface Place {
  readonly id: string;
  readonly access: Access;
  readonly routes: SandboxRoutes;
  readonly isRunning: boolean;
  /** Aborts when it stops. */
  readonly signal: AbortSignal;
}

export interface DoorParts {
  /** In a daemon of many the path begins with `/s/ID`; in a daemon of one there is nothing to say. */
  readonly find: (id: string | undefined) => Place | undefined;
  readonly isOfMany: boolean;
  /** Pages of these may connect; any other browser page may not. */
  readonly origins: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often live connections are looked at. */
const SWEEP_MS = 500;
const PING_EVERY_SWEEPS = 40;

export class Door implements Disposable {
  readonly #parts: DoorParts;
  readonly #acceptor = new WebSocketAcceptor({ messageBytes: UNAUTHENTICATED_MESSAGE_MAX_BYTES });
  readonly #waiting = new WaitingRoom();
  readonly #open = new Map<Connection, Place>();
  /** HTTP requests that are being answered for somebody. */
  readonly #calls = new Map<
    AbortController,
    { readonly place: Place; readonly identity: Identity }
  >();
  readonly #timer: NodeJS.Timeout;
  #sweeps = 0;

  constructor(parts: DoorParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.sweep(), SWEEP_MS);
    this.#timer.unref();
  }

  /** Connections whose owner is known. */
  connectionsOf(id: string): number {
    let count = 0;
    for (const place of this.#open.values()) if (place.id === id) count += 1;
    return count;
  }

  readonly handle = async (exchange: Exchange): Promise<void> => {
    const { path, place } = this.#placeOf(exchange);
    if (place === undefined) return this.#answer(exchange, HEALTHY);
    const { method = '' } = exchange.request;
    const matched = matchRoute(method, path);
    if (matched.kind !== 'found') throw nothingHere(matched);
    const { name, route } = matched;
    exchange.note({ route: name });
    if (name === 'getHealth') return this.#answer(exchange, HEALTHY);
    const code = place.routes.http[name];
    if (code === undefined) throw nothingHere({ kind: 'none' });
    const identity = this.#identify(exchange, place);
    exchange.note({ jti: identity.jti, sub: identity.subject });
    if (route.capability !== undefined && !identity.allowed.has(route.capability))
      throw denied(route.capability);
    const { capabilities: [either] = [] } = route;
    if (either !== undefined && !route.capabilities?.some((one) => identity.allowed.has(one)))
      throw denied(either);
    const parameters = checkParameters(matched.parameters);
    const ended = new AbortController();
    this.#calls.set(ended, { place, identity });
    const signal = AbortSignal.any([ended.signal, exchange.signal, place.signal]);
    try {
      const answer = await code({ exchange, parameters, identity, signal });
      await this.#answer(exchange, answer);
    } finally {
      this.#calls.delete(ended);
    }
  };

  readonly upgrade = async (exchange: Exchange, head: Buffer): Promise<void> => {
    const { origins, clock, logger } = this.#parts;
    const { origin } = exchange.request.headers;
    if (origin !== undefined && !origins.includes(origin))
      throw new AilsdError('FORBIDDEN', 'pages of this origin may not connect');
    const { path, place } = this.#placeOf(exchange);
    const matched = matchRoute('WS', path);
    if (place === undefined || matched.kind !== 'found') throw nothingHere({ kind: 'none' });
    const endpoint = place.routes.sockets[matched.name];
    const { capability } = matched.route;
    if (endpoint === undefined || capability === undefined) throw nothingHere({ kind: 'none' });
    exchange.note({ route: matched.name });
    const known = this.#waiting.enter(exchange.origin.address);
    exchange.request.socket.once('close', known);
    const token = tokenIn(exchange);
    this.#acceptor.accept(exchange, head, (socket) => {
      const connection: Connection = new Connection({
        socket,
        access: place.access,
        endpoint,
        capability,
        connectionId: exchange.requestId,
        clock,
        logger,
        onIdentity: ({ jti, subject }) => {
          known();
          exchange.note({ jti, sub: subject });
          this.#open.set(connection, place);
        },
        onClosed: () => {
          known();
          this.#open.delete(connection);
        },
      });
      // After the handshake's answer is out, so that nothing overtakes it.
      queueMicrotask(() => connection.begin(token));
      return connection;
    });
  };

  /** Ends what is open for a token that no longer counts. Also by hand, when it is known that something has changed. */
  sweep(): void {
    const nowMs = this.#parts.clock.now();
    const places = new Set([
      ...this.#open.values(),
      ...[...this.#calls.values()].map(({ place }) => place),
    ]);
    for (const { access } of places) access.refresh();
    this.#sweeps += 1;
    const isPing = this.#sweeps % PING_EVERY_SWEEPS === 0;
    for (const connection of this.#open.keys()) {
      connection.check(nowMs);
      if (isPing) connection.ping();
    }
    for (const [ended, { place, identity }] of this.#calls)
      if (place.access.admit(identity.token).kind !== 'valid') ended.abort(TOKEN_ENDED);
  }

  /** Says goodbye to everybody at a sandbox that stops, or to all. */
  closeAll(close: Parameters<Connection['close']>[0], id?: string): void {
    for (const [connection, place] of this.#open)
      if (id === undefined || place.id === id) connection.close(close);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #placeOf({ path }: Exchange): { readonly path: string; readonly place: Place | undefined } {
    if (path === '/healthz') return { path, place: undefined };
    const { find, isOfMany } = this.#parts;
    const [, id, rest] = isOfMany ? (IN_MANY.exec(path) ?? []) : [path, undefined, path];
    const place = isOfMany && id === undefined ? undefined : find(id);
    if (place === undefined || rest === undefined) throw nothingHere({ kind: 'none' });
    if (!place.isRunning) throw new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox is not running');
    return { path: rest, place };
  }

  #identify(exchange: Exchange, { access }: Place): Identity {
    const admission = access.admit(bearerOf(exchange.request));
    switch (admission.kind) {
      case 'valid':
        return admission.identity;
      case 'unknown':
        throw new AilsdError('BACKEND_UNAVAILABLE', 'it is not known yet whose tokens count');
      case 'expired':
      case 'invalid':
        throw new AilsdError('UNAUTHENTICATED', 'the token is not accepted here', {
          internal: admission.kind,
        });
    }
  }

  async #answer(exchange: Exchange, answer: Answer): Promise<void> {
    const { status = 200, headers, body, text, stream, isSent } = answer;
    if (isSent === true) return;
    if (stream !== undefined) return streamAnswer(exchange, answer);
    const content = text ?? (body === undefined ? '' : JSON.stringify(body));
    exchange.response.writeHead(status, {
      ...exchange.headers,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
      ...(status === 204 ? {} : { 'Content-Length': Buffer.byteLength(content) }),
    });
    exchange.response.end(status === 204 ? undefined : content);
  }
}

const IN_MANY = /^\/s\/([A-Za-z0-9._:-]{1,128})(\/.*)$/s;
const HEALTHY: Answer = { body: { status: 'ok' } };
const TOKEN_ENDED = new AilsdError('UNAUTHENTICATED', 'the token has ended');

/** A header that is no bearer token is a token that is not accepted. */
function tokenIn({ request }: Exchange): Secret | undefined {
  if (!hasAuthorization(request)) return undefined;
  try {
    return bearerOf(request);
  } catch {
    return new Secret('');
  }
}

function denied(capability: string): AilsdError {
  return new AilsdError('CAPABILITY_DENIED', `this needs ${capability}`, {
    details: { capability },
  });
}

function nothingHere(
  matched: Exclude<ReturnType<typeof matchRoute>, { kind: 'found' }>,
): AilsdError {
  if (matched.kind === 'malformed')
    return new AilsdError('INVALID_REQUEST', 'the path is not well formed', {
      details: { field: 'path' },
    });
  if (matched.kind === 'wrong-method')
    return new AilsdError('METHOD_NOT_ALLOWED', 'this path is not for that method', {
      details: { allow: matched.allowed.filter((method) => method !== 'WS') },
    });
  return new AilsdError('NOT_FOUND', 'there is nothing at this path');
}
