/** The server program as a whole: real processes, a real store, tokens from its own issuer at its own routes. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { runOperation, SERVER_PROGRAM, startServer, type TestServer } from '../support/server.js';

async function tokenOf(server: TestServer, client = server.admin): Promise<string> {
  const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
  const reply = await fetch(`${server.url}/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${basic}` },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      scope: 'read:sandbox admin:sandbox',
    }),
  });
  const answer = Object(await reply.json());
  if (typeof answer.access_token !== 'string') throw new Error(JSON.stringify(answer));
  return answer.access_token;
}

async function whoami(
  server: TestServer,
  token: string,
): Promise<{ status: number; body: object }> {
  const reply = await fetch(`${server.url}/v1/whoami`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  return { status: reply.status, body: Object(await reply.json()) };
}

describe('the server program', () => {
  it('lets in a token of its own issuer, over a rotation of the keys and a restart', async () => {
    await using server = await startServer();
    const before = await tokenOf(server);
    expect(await whoami(server, before)).toMatchObject({
      status: 200,
      body: { sub: server.admin.clientId, principal: 'service', tenant: 'default' },
    });
    const { kid } = await server.operate('keys-rotate');
    await eventually(async () => kidOf(await tokenOf(server)) === kid);
    const after = await tokenOf(server);
    for (const token of [before, after]) expect((await whoami(server, token)).status).toBe(200);
    const jwks = Object(await (await fetch(`${server.url}/jwks`)).json());
    const kids = jwks.keys.map((key: { kid: string }) => key.kid);
    expect(new Set(kids)).toEqual(new Set([kidOf(before), kid]));
    expect(jwks.keys.flatMap((key: object) => Object.keys(key))).not.toContain('d');

    await server.stop();
    await server.start();
    for (const token of [before, after]) expect((await whoami(server, token)).status).toBe(200);
  });

  it('a second server on the same store accepts the first one’s tokens only under the same name', async () => {
    await using server = await startServer();
    await using other = await startServer({ store: `sqlite:${server.dir}/store.db` });
    expect((await whoami(other, await tokenOf(server))).status).toBe(401);
  });

  it('writes no secret anywhere: not the log at debug, not the store, not its arguments', async () => {
    const password = 'a-password-that-must-not-leak';
    const users = [{ name: 'ada', password }];
    await using server = await startServer({ users, env: { AILSD_SERVER_LOG_LEVEL: 'debug' } });
    const token = await tokenOf(server);
    await whoami(server, token);
    await whoami(server, `${token.slice(0, -4)}AAAA`);
    await fetch(`${server.url}/v1/whoami?access_token=${token}&password=${password}`);
    await fetch(`${server.url}/${token}`);
    await fetch(`${server.url}/token?client_secret=${server.admin.clientSecret}`, {
      method: 'POST',
    });
    const basic = Buffer.from(`ada:${password}`).toString('base64');
    await fetch(`${server.url}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams({ grant_type: 'password', username: 'ada', password }),
    });
    const commandLine = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8');
    const environment = readFileSync(`/proc/${server.pid}/environ`, 'utf8');
    await server.stop();
    const stored = ['store.db', 'store.db-wal']
      .map((name) => {
        try {
          return readFileSync(`${server.dir}/${name}`, 'latin1');
        } catch {
          return '';
        }
      })
      .join('');
    const places = { log: server.log(), stored, commandLine, environment };
    const signature = token.split('.')[2] ?? '';
    for (const secret of [password, server.admin.clientSecret, token, signature]) {
      for (const form of spellings(secret)) {
        for (const [place, text] of Object.entries(places))
          expect(text.includes(form), `${place} holds ${form.slice(0, 8)}…`).toBe(false);
      }
    }
    expect(server.log()).toMatch(/"jti":"tok_/);
  });

  it('ends cleanly on SIGTERM and SIGINT, and when whoever started it is gone', async () => {
    await using server = await startServer();
    await server.stop('SIGINT');
    await server.start();
    await server.stop('SIGTERM');
    await server.start();
    expect(server.log().match(/"reason":"SIG(INT|TERM)"/g)).toHaveLength(2);

    // A parent that is killed can say nothing: the end of the pipe does.
    const parent = spawn(process.execPath, ['-e', PARENT, SERVER_PROGRAM, server.dir], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const line = await new Promise<string>((resolve) => {
      parent.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    });
    const { pid }: { pid: number } = JSON.parse(line);
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await eventually(() => !isAlive(pid));
  });

  it('answers a request that is in flight when it is told to end', async () => {
    await using server = await startServer();
    const token = await tokenOf(server);
    const replies = Array.from({ length: 20 }, () => whoami(server, token).catch(() => undefined));
    await Promise.race(replies);
    await server.stop();
    const statuses = (await Promise.all(replies)).map((reply) => reply?.status);
    // Each was answered whole, or never taken: nothing between.
    for (const status of statuses) expect([200, undefined]).toContain(status);
    expect(statuses).toContain(200);
    await server.start();
  });

  it('does not start on a configuration that is wrong, and names the field', async () => {
    await expect(startServer({ config: { log_level: 'loud' } })).rejects.toThrow(
      /"field":"log_level","code":"CONFIG_INVALID"/,
    );
    await using server = await startServer();
    const { dir, port } = server;
    const start = (listen: string) => runOperation('start', { dir, listen });
    await expect(start('0.0.0.0:0')).rejects.toThrow(/ended with 2: .*"field":"url"/);
    await expect(start(`127.0.0.1:${port}`)).rejects.toThrow(/ended with 2: .*EADDRINUSE/);
  });

  it('an operation that is misspelled, untold or told nonsense ends with 2 and the envelope', async () => {
    for (const [operation, input] of [
      ['user-ad', {}],
      ['user-add', {}],
      ['user-add', { dir: '/nowhere', name: 'a b', password: 'long enough' }],
      ['user-add', { dir: '/nowhere', name: 'ada', password: 'long enough', scopes: ['root'] }],
      ['client-add', { dir: '/nowhere', name: 'x', grants: ['everything'], scopes: [] }],
      ['init', { dir: '/nowhere', colour: 'red' }],
    ] as const)
      await expect(runOperation(operation, input)).rejects.toThrow(
        /ended with 2: .*"code":"USAGE"/,
      );
  });
});

const PARENT = `
const { spawn } = require('node:child_process');
const [program, dir] = process.argv.slice(1);
const child = spawn(process.execPath, [program, 'start'], { stdio: ['pipe', 'inherit', 'ignore'] });
child.stdin.write(JSON.stringify({ dir, listen: '127.0.0.1:0' }) + '\\n');
setInterval(() => {}, 1000);
`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has ended; only its parent has not looked yet.
    return !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

function kidOf(token: string): string {
  return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
}

function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [
    secret,
    encodeURIComponent(secret),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
  ];
}
