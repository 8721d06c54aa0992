/** Takes WebSocket upgrades: the handshake and the subprotocol. Who may in was decided before, by an answer to the request. */
import { WebSocketServer } from 'ws';
import { chooseWire, SUBPROTOCOLS } from '../../protocol/frame-codec.js';
import type { Exchange } from './exchange.js';
import {
  PoliteWebSocket,
  Socket,
  type SocketBounds,
  type SocketEvents,
  wsOptions,
} from './websocket.js';

export class WebSocketAcceptor {
  readonly #server: WebSocketServer;

  constructor(bounds: SocketBounds) {
    this.#server = new WebSocketServer({
      ...wsOptions(bounds),
      noServer: true,
      clientTracking: false,
      WebSocket: PoliteWebSocket,
      handleProtocols: (offered) => {
        const wire = chooseWire(offered);
        return wire === undefined ? false : SUBPROTOCOLS[wire];
      },
    });
  }

  /** `open` is called once the handshake is done, before any message; a bad handshake is answered with 400 and calls nothing. */
  accept(exchange: Exchange, head: Buffer, open: (socket: Socket) => SocketEvents): void {
    exchange.upgraded();
    const { request } = exchange;
    this.#server.handleUpgrade(request, request.socket, head, (ws) => {
      const socket: Socket = new Socket(ws, NOBODY);
      socket.handOver(open(socket));
    });
  }
}

/** No event comes before `open` has returned: the library reads in a later turn. */
const NOBODY: SocketEvents = { message: () => undefined, closed: () => undefined };
