/** Opens a WebSocket to another server, for a relay: one try, no redirects, and the same bounds as for those who come to us. */
import type { LookupFunction } from 'node:net';
import { WebSocket } from 'ws';
import { AilsdError } from '../../protocol/errors.js';
import { Socket, type SocketBounds, type SocketEvents, wsOptions } from './websocket.js';

export interface Dial extends SocketBounds {
  readonly url: string;
  readonly protocols: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly handshakeTimeoutMs: number;
  /** Where names lead; absent: where the system says. */
  readonly lookup?: LookupFunction | undefined;
  readonly signal: AbortSignal;
}

/** Rejects with BACKEND_UNAVAILABLE, or with the signal's reason. Events begin when it resolves. */
export function dialWebSocket(
  dial: Dial,
  events: (socket: Socket) => SocketEvents,
): Promise<Socket> {
  const { url, protocols, headers, handshakeTimeoutMs, lookup, signal } = dial;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const ws = new WebSocket(url, [...protocols], {
      ...wsOptions(dial),
      headers: { ...headers },
      ...(lookup && { lookup }),
      followRedirects: false,
      handshakeTimeout: handshakeTimeoutMs,
    });
    const stop = (): void => {
      ws.terminate();
      reject(signal.reason);
    };
    const fail = (cause: Error): void => {
      signal.removeEventListener('abort', stop);
      reject(
        new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox cannot be reached', {
          internal: cause.message,
          cause,
        }),
      );
    };
    signal.addEventListener('abort', stop, { once: true });
    ws.once('error', fail);
    ws.once('open', () => {
      signal.removeEventListener('abort', stop);
      const socket: Socket = new Socket(ws, { message: () => undefined, closed: () => undefined });
      socket.handOver(events(socket));
      ws.off('error', fail);
      resolve(socket);
    });
  });
}
