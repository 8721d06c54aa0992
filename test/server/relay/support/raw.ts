/** Bytes on a line, for what no HTTP client would send. */
import { connect, type Socket } from 'node:net';

/** Sends, and gives everything that comes back until the server closes or the answer's head is whole and no body follows. */
export function rawRequest(port: number, lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    socket.write([...lines, 'Connection: close', '', ''].join('\r\n'));
  });
}

export function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
}

/** Opens a line, sends, and reads nothing. */
export function silentReader(port: number, lines: readonly string[]): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause();
  socket.write([...lines, '', ''].join('\r\n'));
  return socket;
}

export const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
] as const;
