/** WebSockets of callers, joined with a sandbox's: the sandbox is reached before the caller's upgrade, so that a failure is an answer. */
import type { LookupFunction } from 'node:net';
import { onAbort } from '../../../base/abort.js';
import type { Secret } from '../../../base/secret.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError } from '../../../protocol/errors.js';
import { MESSAGE_MAX_BYTES } from '../../../protocol/frames.js';
import type { Metrics } from '../../http/metrics.js';
import type { UpgradeCall } from '../../http/upgrade.js';
import type { Socket } from '../../http/websocket.js';
import { dialWebSocket } from '../../http/websocket-dial.js';
import { guardedLookup, placeOf } from './address.js';
import { Bridge } from './bridge.js';
import type { RelayLimits } from './http-relay.js';

export interface SocketTarget {
  /** From the store. */
  readonly wsUrl: string;
  /** Below it. */
  readonly path: string;
  /** Absent: the sandbox is told of no token at all. */
  readonly token: Secret | undefined;
}

export interface SocketRelayParts {
  readonly limits: RelayLimits;
  readonly resolve?: LookupFunction | undefined;
  readonly metrics?: Metrics | undefined;
}

export type Look = (
  text: string,
  bridge: Bridge,
) => string | undefined | Promise<string | undefined>;

export class SocketRelay {
  readonly #parts: SocketRelayParts;
  readonly #lookup: LookupFunction;

  constructor(parts: SocketRelayParts) {
    this.#parts = parts;
    this.#lookup = guardedLookup(parts.resolve);
  }

  /** Dials, then lets the caller in. `look` sees every text message of the client. Gives the bridge, once both are joined. */
  async join(call: UpgradeCall, target: SocketTarget, look: Look): Promise<Bridge> {
    const { exchange } = call;
    const sandbox = await this.dial(call, target);
    if (exchange.isGone) {
      sandbox.cut();
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the caller has gone');
    }
    return new Promise((resolve, reject) => {
      try {
        call.accept((client) => {
          const bridge = this.bridge(call, client, look);
          bridge.join(sandbox);
          sandbox.handOver(bridge.sandboxEvents);
          sandbox.resume();
          resolve(bridge);
          return bridge.clientEvents;
        });
      } catch (thrown) {
        sandbox.cut();
        reject(thrown);
      }
    });
  }

  /** Nothing of it is read before it is handed over and resumed. */
  async dial(call: UpgradeCall, { wsUrl, path, token }: SocketTarget): Promise<Socket> {
    const { exchange } = call;
    const { protocol, hostname, port, basePath } = placeOf(wsUrl);
    const host = hostname.includes(':') ? `[${hostname}]` : hostname;
    const socket = await dialWebSocket(
      {
        url: `${protocol === 'https:' ? 'wss' : 'ws'}://${host}:${port}${basePath}${path}`,
        protocols: call.subprotocols,
        headers: {
          'x-request-id': exchange.requestId,
          ...(token && { authorization: `Bearer ${token.reveal()}` }),
        },
        handshakeTimeoutMs: this.#parts.limits.connectMs,
        messageBytes: MESSAGE_MAX_BYTES,
        lookup: this.#lookup,
        signal: exchange.signal,
      },
      (opened) => {
        opened.pause();
        return { message: () => undefined, closed: () => undefined };
      },
    );
    return socket;
  }

  bridge(call: UpgradeCall, client: Socket, look: Look): Bridge {
    const { limits, metrics } = this.#parts;
    let callOff = (): void => undefined;
    const bridge: Bridge = new Bridge(client, {
      limits,
      fromClient: (text) => look(text, bridge),
      onBytes: (direction, bytes) => metrics?.relayed(direction, bytes),
      onEnd: () => callOff(),
    });
    callOff = onAbort(call.exchange.draining, () => bridge.end(CLOSES.goingAway));
    return bridge;
  }
}
