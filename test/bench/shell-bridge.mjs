// The floor for a shell over a WebSocket: `ws` and the PTY package with nothing between them. No auth, no offsets, no bounds.
import { spawn } from '@lydell/node-pty';
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
server.on('listening', () => {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
});
server.on('connection', (socket, request) => {
  const [file = '/bin/cat', ...args] = new URL(request.url, 'http://x').searchParams.getAll('c');
  const pty = spawn(file, args, { encoding: null, cols: 80, rows: 24 });
  socket.on('message', (data) => pty.write(data));
  socket.on('close', () => pty.kill('SIGKILL'));
  pty.onData((data) => socket.send(data));
  pty.onExit(() => socket.close());
});
