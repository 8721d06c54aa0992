/** Serves the WebSocket routes of the protocol's table: everything that can be refused is refused as HTTP, before the upgrade. */
import { AilsdError } from '../../protocol/errors.js';
import { chooseWire, SUBPROTOCOLS } from '../../protocol/frame-codec.js';
import { MESSAGE_MAX_BYTES } from '../../protocol/frames.js';
import { matchRoute, ROUTES, type RouteName, routeNames } from '../../protocol/routes.js';
import { Call, type Caller } from './call.js';
import { type CallerParts, callerOf, checkParameters } from './caller.js';
import type { Exchange } from './exchange.js';
import type { HandleUpgrade } from './server.js';
import type { Socket, SocketEvents } from './websocket.js';
import { WebSocketAcceptor } from './websocket-accept.js';

/** Rejecting before `accept` is an answer with the error's status; after it, the line is cut. */
export type UpgradeCode = (call: UpgradeCall) => Promise<void>;

export interface UpgradeParts extends CallerParts {
  readonly upgrades: Readonly<Partial<Record<RouteName, UpgradeCode>>>;
  /** Pages of these may open sockets; any other browser page may not. */
  readonly origins: readonly string[];
}

export class UpgradeCall extends Call {
  readonly #head: Buffer;
  readonly #acceptor: WebSocketAcceptor;

  constructor(
    exchange: Exchange,
    parameters: Readonly<Record<string, string>>,
    caller: Caller,
    { head, acceptor }: { readonly head: Buffer; readonly acceptor: WebSocketAcceptor },
  ) {
    super(exchange, parameters, caller);
    this.#head = head;
    this.#acceptor = acceptor;
  }

  /** The subprotocol that will be agreed on; a peer behind us is to be offered this one alone. */
  get subprotocols(): readonly string[] {
    const wire = chooseWire(offeredProtocols(this.exchange));
    return wire === undefined ? [] : [SUBPROTOCOLS[wire]];
  }

  /** From here on it is a WebSocket. */
  accept(events: (socket: Socket) => SocketEvents): void {
    this.#acceptor.accept(this.exchange, this.#head, events);
  }
}

export function createUpgrades({ upgrades, origins, ...parts }: UpgradeParts): HandleUpgrade {
  const acceptor = new WebSocketAcceptor({ messageBytes: MESSAGE_MAX_BYTES });
  const served = new Map(
    routeNames().flatMap((name) => {
      const code = upgrades[name];
      return code === undefined ? [] : [[name, { code, caller: callerOf(ROUTES[name], parts) }]];
    }),
  );
  return async (exchange, head) => {
    const { path, draining } = exchange;
    const matched = matchRoute('WS', path);
    const route = matched.kind === 'found' ? served.get(matched.name) : undefined;
    if (matched.kind !== 'found' || route === undefined) throw nothingHere(matched.kind);
    exchange.note({ route: matched.name });
    if (draining.aborted) throw draining.reason;
    checkHandshake(exchange, origins);
    const caller = await route.caller(exchange);
    const parameters = checkParameters(matched.parameters);
    await route.code(new UpgradeCall(exchange, parameters, caller, { head, acceptor }));
  };
}

function nothingHere(kind: string): AilsdError {
  if (kind === 'malformed')
    return new AilsdError('INVALID_REQUEST', 'the path is not well formed', {
      details: { field: 'path' },
    });
  return new AilsdError('NOT_FOUND', 'there is no WebSocket at this path');
}

/** RFC 6455 section 4.2.1, so far as the library does not; and whose page it is that asks. */
function checkHandshake({ request }: Exchange, origins: readonly string[]): void {
  const { origin } = request.headers;
  const version = request.headers['sec-websocket-version'];
  const key = request.headers['sec-websocket-key'];
  if (version !== '13' || key === undefined || !/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw new AilsdError('INVALID_REQUEST', 'that is no WebSocket handshake of version 13', {
      details: { field: 'sec-websocket-key' },
    });
  if (origin !== undefined && !origins.includes(origin))
    throw new AilsdError('FORBIDDEN', 'pages of this origin may not connect');
}

function offeredProtocols({ request }: Exchange): readonly string[] {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',', MOST_PROTOCOLS).map((one) => one.trim());
}

const MOST_PROTOCOLS = 16;
