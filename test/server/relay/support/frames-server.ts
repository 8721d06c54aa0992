/** A sandbox's WebSocket end, with nothing of ours in it: keeps what comes, and says what it is told to say. */
import { createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

export interface FramesServer extends AsyncDisposable {
  readonly port: number;
  readonly messages: (string | Buffer)[];
  readonly paths: string[];
  /** Headers and messages, as text. */
  readonly heard: string;
  readonly open: number;
  readonly sockets: ReadonlySet<WebSocket>;
  onOpen: (socket: WebSocket) => void;
}

export async function framesServer(): Promise<FramesServer> {
  const messages: (string | Buffer)[] = [];
  const paths: string[] = [];
  let heard = '';
  const http = createServer();
  const server = new WebSocketServer({ server: http });
  server.on('connection', (socket, request) => {
    paths.push(request.url ?? '');
    heard += JSON.stringify(request.rawHeaders);
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      messages.push(isBinary ? data : data.toString());
      heard += data.toString('latin1');
    });
    frames.onOpen(socket);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const address = http.address();
  const frames: FramesServer = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    messages,
    paths,
    get heard() {
      return heard;
    },
    get open() {
      return server.clients.size;
    },
    sockets: server.clients,
    onOpen: () => undefined,
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
  return frames;
}
