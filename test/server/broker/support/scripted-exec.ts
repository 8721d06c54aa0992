/** A sandbox's exec socket that runs nothing: what a command reads as its input says how it ends. */
import { once } from 'node:events';
import { type WebSocket, WebSocketServer } from 'ws';

export interface ScriptedExec extends AsyncDisposable {
  readonly endpoints: { readonly httpUrl: string; readonly wsUrl: string };
  /** Every input of a command that was given whole, but for readiness checks. */
  readonly codes: string[];
  /** Called when a command that never ends by itself has begun. */
  onHang: () => void;
}

const PROBE = /^printf %s (\S+)\nprintf %s (\S+)\n$/;

export async function openScriptedExec(): Promise<ScriptedExec> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const codes: string[] = [];
  const dead = new Set<string>();
  const exec: ScriptedExec = {
    endpoints: { httpUrl: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` },
    codes,
    onHang: () => undefined,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on('connection', (socket) => {
    let id = '';
    let input = Buffer.alloc(0);
    const say = (frame: object) => socket.send(JSON.stringify(frame));
    say({ type: 'auth_ok' });
    socket.on('error', () => undefined);
    socket.on('message', (data, isBinary) => {
      if (isBinary) {
        // Of the binary frame only the text at its end is of interest.
        input = Buffer.concat([input, bodyOf(data)]);
        return;
      }
      const frame = JSON.parse(String(data));
      if (frame.type === 'start') {
        id = frame.command_id;
        if (dead.has(id))
          say({ type: 'error', code: 'NOT_FOUND', message: 'no such command', retryable: false });
        else
          say({
            type: 'ready',
            command_id: id,
            state: 'fresh',
            stdout_offset: 0,
            stderr_offset: 0,
            input_offset: 0,
          });
      }
      if (frame.type === 'signal') end(say, '', { signal: 'SIGKILL' });
      if (frame.type !== 'eof') return;
      const code = input.toString();
      const probe = PROBE.exec(code);
      if (probe !== null) {
        end(say, `${probe[1]}${probe[2]}`, { exit_code: 0 });
        return;
      }
      codes.push(code);
      act(exec, socket, say, code, () => dead.add(id));
    });
  });
  return exec;
}

type Say = (frame: object) => void;

function act(exec: ScriptedExec, socket: WebSocket, say: Say, code: string, die: () => void): void {
  const [kind = ''] = code.split(' ');
  const slowly = (work: () => void): void => {
    setTimeout(work, 30);
  };
  switch (kind) {
    case 'ok':
      slowly(() => end(say, `did ${code}`, { exit_code: 0 }));
      return;
    case 'error':
      slowly(() => end(say, `did ${code}`, { exit_code: 3 }));
      return;
    case 'timeout':
      slowly(() => end(say, '', { origin: 'ailsd', timed_out: true, signal: 'SIGKILL' }));
      return;
    case 'oom':
      slowly(() => end(say, '', { oom: true, signal: 'SIGKILL' }));
      return;
    case 'die':
      die();
      socket.terminate();
      return;
    default:
      exec.onHang();
  }
}

function end(say: Say, output: string, how: object): void {
  if (output !== '') say({ type: 'stdout', offset: 0, data: output });
  say({
    type: 'exit',
    origin: 'remote',
    timed_out: false,
    oom: false,
    stdout_offset: output.length,
    stderr_offset: 0,
    stdout_truncated: false,
    stderr_truncated: false,
    ...how,
  });
}

function bodyOf(data: unknown): Buffer {
  const bytes = Buffer.isBuffer(data) ? data : Buffer.alloc(0);
  return bytes.subarray(BINARY_HEAD_BYTES);
}

/** A type and an offset: see `frame-binary.ts`. */
const BINARY_HEAD_BYTES = 9;
