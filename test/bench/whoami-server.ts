/** A server that answers whoami and `session get`, alike, in a process of its own: measuring waits for its children without a loop. */
import { spawn } from 'node:child_process';

const PROGRAM = `
const answer = JSON.stringify({
  sub: 'usr_bench', name: 'bench', principal: 'user', tenant: 'default', client_id: 'ailsd-cli',
  scopes: ['read:sandbox'], expires_at: '2099-01-01T00:00:00.000Z',
  session_id: 'ssn_bench', thread_id: 'thr_bench', token: 'x'.repeat(400),
  sandbox: {
    id: 'sb_bench', provider: 'local', http_base_url: 'http://127.0.0.1:1', ws_base_url: 'ws://127.0.0.1:1',
  },
});
const headers = { 'content-type': 'application/json' };
const server = require('node:http').createServer((_, response) => response.writeHead(200, headers).end(answer));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();
`;

export async function whoamiServer(): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim())),
  );
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}
