/** A shell server in a few lines that knows the frames and none of our server's code: its output, its refusals and its silences are the test's to say. */
import { createServer, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { concatBytes } from '../../src/base/bytes.js';
import { decodeFrame, encodeFrame, SUBPROTOCOLS } from '../../src/protocol/frame-codec.js';
import {
  type ShellClientFrame,
  type ShellServerFrame,
  shellClientFrames,
} from '../../src/protocol/shell-frames.js';
import { Inbox } from '../../src/stream/inbox.js';

export interface ScriptedShell extends AsyncDisposable {
  readonly port: number;
  /** The base URL of a session. */
  readonly wsUrl: string;
  /** Upgrades that were asked for. */
  readonly attempts: number;
  /** Every frame that came, in order. */
  readonly frames: readonly ShellClientFrame[];
  /** Bearer tokens of the upgrades, in order. */
  readonly tokens: readonly string[];
  /** All input, each byte once. */
  input(): Uint8Array;
  output(bytes: Uint8Array | string): void;
  exit(exitCode: number): void;
  /** To everybody who is connected. */
  send(frame: ShellServerFrame): void;
  close(code: number, reason: string): void;
}

export interface Script {
  /** Answers an upgrade itself and returns true; `attempt` counts from 1. */
  readonly refuse?: (socket: Duplex, request: IncomingMessage, attempt: number) => boolean;
  /** Called instead of what `start` would do; true when it has dealt with it. */
  readonly start?: (ws: WebSocket, attempt: number) => boolean;
  /** Of the output so much is kept; older is replaced by a screen. */
  readonly ringBytes?: number;
  readonly screen?: string;
  /** Told of input as it is applied, e.g. to echo it. */
  readonly typed?: (bytes: Uint8Array, shell: ScriptedShell) => void;
  /** Pings are not answered. */
  readonly isMute?: boolean;
}

export async function scriptedShell(script: Script = {}): Promise<ScriptedShell> {
  const frames: ShellClientFrame[] = [];
  const tokens: string[] = [];
  const inboxes = new Map<string, Inbox>();
  const applied: Uint8Array[] = [];
  const viewers = new Set<{ readonly ws: WebSocket; sent: number }>();
  let log: Uint8Array = new Uint8Array();
  let attempts = 0;
  let exitCode: number | undefined;

  const tell = (ws: WebSocket, frame: ShellServerFrame): void =>
    ws.send(encodeFrame(frame, 'binary'));
  const pump = (viewer: { readonly ws: WebSocket; sent: number }): void => {
    while (viewer.sent < log.length) {
      const data = log.subarray(viewer.sent, viewer.sent + 16_384);
      tell(viewer.ws, { type: 'stdout', offset: viewer.sent, data });
      viewer.sent += data.length;
    }
    if (exitCode === undefined) return;
    tell(viewer.ws, {
      type: 'exit',
      origin: 'remote',
      exit_code: exitCode,
      timed_out: false,
      oom: false,
      offset: log.length,
    });
    viewer.ws.close(1000);
  };

  const http = createServer((_request, response) => response.writeHead(404).end());
  const wss = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOLS.binary });
  http.on('upgrade', (request, socket, head) => {
    attempts += 1;
    const attempt = attempts;
    tokens.push((request.headers.authorization ?? '').replace(/^Bearer /, ''));
    socket.on('error', () => undefined);
    if (script.refuse?.(socket, request, attempt) === true) return;
    wss.handleUpgrade(request, socket, head, (ws) => serve(ws, attempt));
  });

  const serve = (ws: WebSocket, attempt: number): void => {
    const viewer = { ws, sent: 0 };
    let client = '';
    ws.on('error', () => undefined);
    ws.on('close', () => viewers.delete(viewer));
    ws.on('message', (data: Buffer, isBinary: boolean) => {
      const decoded = decodeFrame(shellClientFrames, isBinary ? data : data.toString());
      if (!decoded.ok) throw decoded.error;
      const { frame } = decoded;
      frames.push(frame);
      if (frame.type === 'ping' && script.isMute !== true) tell(ws, { type: 'pong' });
      if (frame.type === 'stdin') {
        const taken = inboxes.get(client)?.accept(frame.offset ?? 0, frame.data);
        if (taken?.kind !== 'fresh') throw new Error('a gap in the input');
        applied.push(taken.bytes);
        tell(ws, { type: 'ack', offset: inboxes.get(client)?.next ?? 0 });
        script.typed?.(taken.bytes, shell);
      }
      if (frame.type !== 'start' || script.start?.(ws, attempt) === true) return;
      client = frame.client_id ?? '';
      const inbox = inboxes.get(client) ?? new Inbox(frame.input_offset ?? 0);
      inboxes.set(client, inbox);
      const first = Math.max(0, log.length - (script.ringBytes ?? Number.POSITIVE_INFINITY));
      const state =
        frame.offset !== undefined && frame.offset >= first
          ? 'resumed'
          : log.length === 0
            ? 'fresh'
            : 'snapshot';
      viewer.sent = state === 'resumed' ? (frame.offset ?? 0) : log.length;
      const size = { cols: frame.cols ?? 80, rows: frame.rows ?? 24 };
      tell(ws, {
        type: 'ready',
        shell_id: 'sh_scripted',
        state,
        role: frame.observe === true ? 'observer' : 'writer',
        offset: viewer.sent,
        input_offset: inbox.next,
        ...size,
      });
      if (state === 'snapshot') {
        const screen = script.screen ?? '';
        tell(ws, { type: 'snapshot', offset: log.length, ...size, screen });
      }
      viewers.add(viewer);
      pump(viewer);
    });
  };

  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const address = http.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const shell: ScriptedShell = {
    port,
    wsUrl: `ws://127.0.0.1:${port}`,
    get attempts() {
      return attempts;
    },
    frames,
    tokens,
    input: () => concatBytes(applied),
    output: (bytes) => {
      log = concatBytes([log, typeof bytes === 'string' ? Buffer.from(bytes) : bytes]);
      for (const viewer of viewers) pump(viewer);
    },
    exit: (code) => {
      exitCode = code;
      for (const viewer of viewers) pump(viewer);
    },
    send: (frame) => {
      for (const { ws } of viewers) tell(ws, frame);
    },
    close: (code, reason) => {
      for (const { ws } of wss.clients.size > 0 ? [...wss.clients].map((ws) => ({ ws })) : viewers)
        ws.close(code, reason);
    },
    [Symbol.asyncDispose]: async () => {
      for (const ws of wss.clients) ws.terminate();
      http.closeAllConnections();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
  return shell;
}

/** An HTTP answer in place of an upgrade. */
export function answerUpgrade(socket: Duplex, status: number, body = '', headers = ''): true {
  socket.end(
    `HTTP/1.1 ${status} X\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`,
  );
  return true;
}
