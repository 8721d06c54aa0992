/** A real HTTP server of ours on loopback with the routes a test gives it, its log kept in memory, and a raw client. */
import { webcrypto } from 'node:crypto';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { systemClock } from '../../../src/base/clock.js';
import { createLogger } from '../../../src/base/logger.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { type AppParts, createApp } from '../../../src/server/http/app.js';
import type { HttpLimits } from '../../../src/server/http/limits.js';
import { type HttpServer, openHttpServer } from '../../../src/server/http/server.js';

export interface ServingOptions extends Partial<AppParts> {
  readonly limits?: Partial<HttpLimits>;
  readonly trustedProxies?: readonly string[];
}

export interface Serving extends AsyncDisposable {
  readonly server: HttpServer;
  readonly port: number;
  /** Every line of the log, parsed. */
  readonly lines: readonly LogLine[];
  readonly log: () => string;
  send(path: string, options?: SendOptions): Promise<Reply>;
  /** Bytes in, everything that comes back until the server closes. */
  raw(bytes: string | readonly string[]): Promise<string>;
}

type LogLine = Readonly<Record<string, unknown>>;

export interface SendOptions {
  readonly method?: string;
  /** Pairs, so that one name can be sent twice. */
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
  readonly chunked?: boolean;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any client would
  readonly json: any;
}

export async function serving(options: ServingOptions = {}): Promise<Serving> {
  let text = '';
  const logger = createLogger({
    write: (line) => {
      text += line;
    },
    clock: systemClock,
    level: 'debug',
  });
  const server = await openHttpServer({
    host: '127.0.0.1',
    port: 0,
    trustedProxies: options.trustedProxies ?? [],
    clock: systemClock,
    logger,
    random: (bytes) => webcrypto.getRandomValues(bytes),
    limits: options.limits,
  });
  server.serve(createApp({ routes: options.routes ?? {}, verify: options.verify ?? nobody }), {
    isHttps: false,
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const { port } = server;
  return {
    server,
    port,
    get lines() {
      return text.split('\n').flatMap((line): LogLine[] => (line === '' ? [] : [JSON.parse(line)]));
    },
    log: () => text,
    send: (path, sending = {}) => send(port, agent, path, sending),
    raw: (bytes) => raw(port, typeof bytes === 'string' ? [bytes] : bytes),
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function nobody(): Promise<never> {
  throw new AilsdError('UNAUTHENTICATED', 'nobody is known here');
}

function send(port: number, agent: Agent, path: string, options: SendOptions): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = [], body, chunked = false } = options;
    const pairs = [['Host', `127.0.0.1:${port}`], ...headers];
    if (body !== undefined && !chunked)
      pairs.push(['Content-Length', String(Buffer.byteLength(body))]);
    if (chunked) pairs.push(['Transfer-Encoding', 'chunked']);
    const outgoing = request(
      { host: '127.0.0.1', port, path, method, agent, headers: pairs.flat() },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = incoming.headers['content-type'] === 'application/json';
          const json = isJson && text !== '' ? JSON.parse(text) : undefined;
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function raw(port: number, parts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    for (const part of parts) socket.write(part, 'latin1');
  });
}
