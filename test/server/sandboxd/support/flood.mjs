// Floods a daemon from a process of its own: silent WebSockets, renewed when they are turned away or closed, and requests whose headers
// never end. `node flood.mjs URL COUNT`; a line on stdin ends it, and its last word is how many were turned away with 503.
import { connect } from 'node:net';
import WebSocket from 'ws';

const [, , url, count] = process.argv;
const { port } = new URL(url);
let refused = 0;

function half() {
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.on('close', () => setTimeout(half, 1_000));
  socket.write('GET /s/x HTTP/1.1\r\nHost: x\r\nX-Half');
}

function silent() {
  const socket = new WebSocket(url);
  socket.on('error', () => undefined);
  socket.on('unexpected-response', (_request, response) => {
    if (response.statusCode === 503 && response.headers['retry-after'] === '1') refused += 1;
    response.destroy();
    socket.terminate();
  });
  socket.on('close', () => setTimeout(silent, 1_000));
}

for (let at = 0; at < Number(count); at++) {
  // Spread over a second: a crowd, not one gulp.
  setTimeout(silent, (at * 1_000) / Number(count));
  setTimeout(half, (at * 1_000) / Number(count));
}
process.stdin.once('data', () => {
  process.stdout.write(`${refused}\n`, () => process.exit());
});
