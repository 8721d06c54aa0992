// The barest terminal over a WebSocket that Node can be: no auth, no offsets, no acks, no screen. `server` prints its port; `client PORT` is run in a PTY.
import { constants, openSync } from 'node:fs';
import { spawn } from '@lydell/node-pty';
import WebSocket, { WebSocketServer } from 'ws';

const [role, port, ...argv] = process.argv.slice(2);
if (role === 'server') {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  server.on('connection', (ws) => {
    const [file = 'cat', ...args] = argv;
    const pty = spawn(file, args, { cols: 80, rows: 24, encoding: null });
    openSync(Reflect.get(pty, '_pty'), constants.O_RDWR | constants.O_NOCTTY);
    pty.onData((data) => {
      ws.send(data);
      if (ws.bufferedAmount < 1024 * 1024) return;
      pty.pause();
      const wait = setInterval(() => {
        if (ws.bufferedAmount > 256 * 1024) return;
        clearInterval(wait);
        pty.resume();
      }, 1);
    });
    pty.onExit(() => ws.close());
    ws.on('message', (data) => pty.write(data.toString('latin1')));
    ws.on('close', () => pty.kill('SIGKILL'));
  });
  server.on('listening', () => process.stdout.write(`${server.address().port}\n`));
} else {
  const ws = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
  process.stdin.setRawMode(true);
  ws.on('open', () => process.stdin.on('data', (data) => ws.send(data)));
  ws.on('message', (data) => process.stdout.write(data));
  ws.on('close', () => process.exit(0));
}
