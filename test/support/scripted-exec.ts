/** An exec server in a few lines that knows the frames and none of our server's code: what it answers is the test's to say. */
import { createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import {
  type ExecClientFrame,
  type ExecServerFrame,
  execClientFrames,
} from '../../src/protocol/exec-frames.js';
import { decodeFrame, encodeFrame, SUBPROTOCOLS } from '../../src/protocol/frame-codec.js';

export interface ExecPeer {
  /** Counted from 1. */
  readonly attempt: number;
  send(frame: ExecServerFrame): void;
  drop(): void;
}

export interface ScriptedExec extends AsyncDisposable {
  readonly wsUrl: string;
  /** Every frame that came, in order. */
  readonly frames: readonly ExecClientFrame[];
}

export type ExecScript = (frame: ExecClientFrame, peer: ExecPeer) => void;

export async function scriptedExec(script: ExecScript): Promise<ScriptedExec> {
  const frames: ExecClientFrame[] = [];
  let attempts = 0;
  const http = createServer((_request, response) => response.writeHead(404).end());
  const wss = new WebSocketServer({
    server: http,
    handleProtocols: () => SUBPROTOCOLS.binary,
  });
  wss.on('connection', (ws: WebSocket) => {
    attempts += 1;
    const peer: ExecPeer = {
      attempt: attempts,
      send: (frame) => ws.send(encodeFrame(frame, 'binary')),
      drop: () => ws.terminate(),
    };
    ws.on('error', () => undefined);
    ws.on('message', (data: Buffer, isBinary: boolean) => {
      const decoded = decodeFrame(execClientFrames, isBinary ? data : data.toString());
      if (!decoded.ok) throw decoded.error;
      frames.push(decoded.frame);
      script(decoded.frame, peer);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const address = http.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    wsUrl: `ws://127.0.0.1:${port}`,
    frames,
    [Symbol.asyncDispose]: async () => {
      for (const ws of wss.clients) ws.terminate();
      http.closeAllConnections();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
}

export function readyFrame(
  id: string,
  offsets: { readonly stdout?: number; readonly stderr?: number; readonly input?: number } = {},
): ExecServerFrame {
  const { stdout = 0, stderr = 0, input = 0 } = offsets;
  return {
    type: 'ready',
    command_id: id,
    state: 'fresh',
    stdout_offset: stdout,
    stderr_offset: stderr,
    input_offset: input,
  };
}

export function exitFrame(exitCode: number, stdout = 0, stderr = 0): ExecServerFrame {
  return {
    type: 'exit',
    origin: 'remote',
    exit_code: exitCode,
    timed_out: false,
    oom: false,
    stdout_offset: stdout,
    stderr_offset: stderr,
    stdout_truncated: false,
    stderr_truncated: false,
  };
}
