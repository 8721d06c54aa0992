/** One WebSocket to a sandbox: who we are is in the upgrade's header, nothing waits (no Nagle, no deflate), everything is bounded. */
import type { Agent, IncomingMessage } from 'node:http';
import WebSocket from 'ws';
import type { Secret } from '../../base/secret.js';
import { SUBPROTOCOLS, type Wire } from '../../protocol/frame-codec.js';
import { MESSAGE_MAX_BYTES } from '../../protocol/frames.js';
import type { SocketEnd } from './socket-end.js';

export interface SocketOptions {
  /** `ws:` or `wss:`. */
  readonly url: string;
  readonly token: Secret;
  /** Knows the way: proxy and certificates. */
  readonly agent: Agent | undefined;
  readonly userAgent: string;
  /** How long connecting and the upgrade may take. */
  readonly connectMs?: number | undefined;
}

export interface SocketListener {
  opened(): void;
  message(message: string | Uint8Array): void;
  /** Once, last, whether it ever opened or not. */
  ended(end: SocketEnd): void;
}

export interface Socket {
  /** How this side sends bytes: agreed when it opened. */
  readonly wire: Wire;
  /** What was sent and has not left the process. */
  readonly bufferedBytes: number;
  send(message: string | Uint8Array): void;
  /** Stops reading; TCP then slows the other side. */
  pause(): void;
  resume(): void;
  /** Says goodbye; where nobody answers it ends all the same. */
  close(): void;
  /** Ends it without a word, as a dead line does; `ended` says that it was cut. */
  drop(): void;
}

const SOCKET_CONNECT_MS = 10_000;
/** What a refusal may say: an error envelope is far smaller. */
const REFUSAL_MAX_BYTES = 16 * 1024;
const REFUSAL_MS = 2_000;
const CLOSE_MS = 1_000;

export function openSocket(options: SocketOptions, listener: SocketListener): Socket {
  return new WsSocket(options, listener);
}

class WsSocket implements Socket {
  readonly #ws: WebSocket;
  readonly #listener: SocketListener;
  #failure: unknown;
  #hasEnded = false;

  constructor(
    { url, token, agent, userAgent, connectMs = SOCKET_CONNECT_MS }: SocketOptions,
    listener: SocketListener,
  ) {
    this.#listener = listener;
    this.#ws = new WebSocket(url, [SUBPROTOCOLS.binary, SUBPROTOCOLS.json], {
      headers: { authorization: `Bearer ${token.reveal()}`, 'user-agent': userAgent },
      // A keystroke is smaller than what deflate adds to it, and a bomb needs unpacking to go off.
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: connectMs,
      maxPayload: MESSAGE_MAX_BYTES,
      ...(agent === undefined ? {} : { agent }),
    });
    this.#ws.on('open', () => this.#opened());
    this.#ws.on('message', (data, isBinary) => this.#message(data, isBinary));
    this.#ws.on('error', (error) => {
      this.#failure ??= error;
    });
    this.#ws.on('close', (code, reason) => this.#closed(code, reason.toString()));
    this.#ws.on('unexpected-response', (_request, response) => this.#refused(response));
  }

  get wire(): Wire {
    return this.#ws.protocol === SUBPROTOCOLS.binary ? 'binary' : 'json';
  }

  get bufferedBytes(): number {
    return this.#ws.bufferedAmount;
  }

  send(message: string | Uint8Array): void {
    if (this.#ws.readyState !== WebSocket.OPEN) return;
    this.#ws.send(message, ignoreError);
  }

  pause(): void {
    this.#ws.pause();
  }

  resume(): void {
    this.#ws.resume();
  }

  close(): void {
    this.#ws.close(1000);
    const timer = setTimeout(() => this.drop(), CLOSE_MS);
    timer.unref();
  }

  drop(): void {
    this.#ws.terminate();
    this.#end({ kind: 'cut', error: this.#failure });
  }

  #opened(): void {
    this.#listener.opened();
  }

  #message(data: WebSocket.RawData, isBinary: boolean): void {
    if (this.#hasEnded) return;
    // Of the three forms a message may have, only this one is made by default.
    if (!Buffer.isBuffer(data)) return;
    this.#listener.message(isBinary ? data : data.toString());
  }

  #closed(code: number, reason: string): void {
    // 1006 is never sent: it says that there was no goodbye. An error of ours (a message too long) is told by its own code.
    if (code === NO_GOODBYE) this.#end({ kind: 'cut', error: this.#failure });
    else this.#end({ kind: 'closed', code, reason });
  }

  /** The other side speaks HTTP and said no, perhaps why. */
  #refused(response: IncomingMessage): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (): void => {
      clearTimeout(timer);
      response.destroy();
      this.#end({
        kind: 'refused',
        status: response.statusCode ?? 0,
        headers: firstValues(response),
        body: Buffer.concat(chunks),
      });
      this.#ws.terminate();
    };
    const timer = setTimeout(end, REFUSAL_MS);
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > REFUSAL_MAX_BYTES) end();
      else chunks.push(chunk);
    });
    response.on('end', end);
    response.on('error', end);
  }

  #end(end: SocketEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#listener.ended(end);
  }
}

const NO_GOODBYE = 1006;

/** What could not be written is told by the end of the connection, which follows. */
function ignoreError(): void {}

function firstValues({ headers }: IncomingMessage): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') values[name] = value;
  }
  return values;
}
