/** Something that claims to be a sandbox: raw TCP, every byte it was sent kept, its answer whatever a test says. */
import { createServer, type Socket } from 'node:net';

export interface HostileSandbox extends AsyncDisposable {
  readonly port: number;
  /** Everything that anybody sent, as text. */
  readonly heard: string;
  readonly connections: number;
  readonly open: ReadonlySet<Socket>;
  /** Called when a request's head is whole; writes the answer, or does not. */
  answer: (socket: Socket, head: string) => void;
}

export async function hostileSandbox(): Promise<HostileSandbox> {
  const open = new Set<Socket>();
  let heard = '';
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    let head = '';
    let isAnswered = false;
    socket.on('data', (chunk: Buffer) => {
      if (heard.length < HEARD_MAX) heard += chunk.toString('latin1');
      if (isAnswered) return;
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      isAnswered = true;
      hostile.answer(socket, head);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const hostile: HostileSandbox = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get heard() {
      return heard;
    },
    get connections() {
      return connections;
    },
    open,
    answer: (socket) => answerWith(socket, '200 OK', 'Content-Type: application/json', '{}'),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return hostile;
}

const HEARD_MAX = 8 * 1024 * 1024;

export function answerWith(socket: Socket, status: string, headers: string, body: string): void {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n${length}\r\nConnection: close\r\n\r\n${body}`);
}

/** Writes the same chunk for as long as it is taken; how much was taken is in `bytes`. */
export function pour(socket: Socket, chunk: Buffer | string): { bytes: number } {
  const poured = { bytes: 0 };
  const more = (): void => {
    for (let at = 0; at < 64; at++) {
      if (socket.destroyed) return;
      poured.bytes += chunk.length;
      if (!socket.write(chunk)) return void socket.once('drain', more);
    }
    setImmediate(more);
  };
  more();
  return poured;
}
