/** Servers for a client to meet: well-behaved, encrypted, silent, malformed; and a proxy that tunnels. All on loopback. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';

export const TLS_FOLDER = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'tls');
export const AUTHORITY = join(TLS_FOLDER, 'authority.pem');

export interface Running extends AsyncDisposable {
  readonly port: number;
  /** Connections open now. */
  readonly open: () => number;
  /** Connections ever made. */
  readonly made: () => number;
}

export function startServer(listener: RequestListener): Promise<Running> {
  return start(createServer(listener));
}

export function startSecureServer(
  listener: RequestListener,
  certificate = 'server.pem',
): Promise<Running> {
  return start(
    createSecureServer(
      {
        cert: readFileSync(join(TLS_FOLDER, certificate)),
        key: readFileSync(join(TLS_FOLDER, 'server-key.pem')),
      },
      listener,
    ),
  );
}

/** Says this to whoever connects, whatever they say; keeps the line open unless told to end it. */
export function startRawServer(says: string | undefined, ends = false): Promise<Running> {
  return start(
    createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => {
        if (says !== undefined) socket.write(says, 'latin1');
        if (ends) socket.end();
      });
    }),
  );
}

export interface Proxy extends Running {
  /** What CONNECT asked for, with the credentials it came with. */
  readonly asked: { readonly target: string; readonly authorization: string | undefined }[];
}

/** Tunnels to one port of this machine, whatever name is asked for: names need no resolver then. */
export async function startProxy(
  targetPort: number,
  status = 200,
  secure?: 'secure',
): Promise<Proxy> {
  const asked: Proxy['asked'] = [];
  const refuse: RequestListener = (_, response) => response.writeHead(405).end();
  const server =
    secure === undefined
      ? createServer(refuse)
      : createSecureServer(
          {
            cert: readFileSync(join(TLS_FOLDER, 'server.pem')),
            key: readFileSync(join(TLS_FOLDER, 'server-key.pem')),
          },
          refuse,
        );
  server.on('connect', (request, socket: Duplex) => {
    asked.push({
      target: request.url ?? '',
      authorization: request.headers['proxy-authorization'],
    });
    socket.on('error', () => undefined);
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const onward = connect(targetPort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  const running = await start(server);
  return { ...running, asked };
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = await start(createTcpServer());
  await server[Symbol.asyncDispose]();
  return server.port;
}

async function start(server: Server): Promise<Running> {
  const sockets = new Set<Duplex>();
  let made = 0;
  server.on('connection', (socket) => {
    made += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: portOf(server.address()),
    open: () => sockets.size,
    made: () => made,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

function portOf(address: string | AddressInfo | null): number {
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
