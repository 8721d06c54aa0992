/** What a sandbox and a client can do to the relay that stands between them: be slow, endless, gone, or not HTTP at all. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.js';
import { ask } from '../broker/support/client.js';
import { framesServer } from './support/frames-server.js';
import {
  answerWith,
  type HostileSandbox,
  hostileSandbox,
  pour,
} from './support/hostile-sandbox.js';
import { silentReader } from './support/raw.js';
import {
  ALICE,
  type Registered,
  type RelayWorld,
  relayWorld,
  tokenOf,
} from './support/relay-world.js';

let world: RelayWorld;
let canary: HostileSandbox;
let sandbox: HostileSandbox;
let registered: Registered;

beforeAll(async () => {
  world = await relayWorld({ limits: { connectMs: 1_000, answerMs: 1_500, stallMs: 2_000 } });
  canary = await hostileSandbox();
  sandbox = await hostileSandbox();
  registered = await world.sandboxAt(`http://127.0.0.1:${sandbox.port}`);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await canary[Symbol.asyncDispose]();
  await sandbox[Symbol.asyncDispose]();
});

beforeEach(() => eventually(() => sandbox.open.size === 0));

const BEARER = `Authorization: Bearer ${tokenOf(ALICE)}`;
const MiB = 1024 * 1024;
const FREED_MS = 5_000;

function list() {
  return ask(world.url, 'GET', `/v1/sandboxes/${registered.id}/commands`);
}

function readLogs(): readonly string[] {
  const path = `/v1/sandboxes/${registered.id}/commands/cmd_1/logs?follow=1`;
  return [`GET ${path} HTTP/1.1`, 'Host: x', BEARER];
}

const JSONL = 'HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\n\r\n';
const LINE = `${JSON.stringify({ at: '2026-01-01T00:00:00Z', stream: 'stdout', data: 'x'.repeat(65_000) })}\n`;

/** Of this process, relay and all: garbage is collected first where that can be asked for. */
function residentBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss;
}

async function freed(...what: (() => boolean)[]): Promise<void> {
  const begin = performance.now();
  await eventually(() => what.every((isFreed) => isFreed()));
  expect(performance.now() - begin).toBeLessThan(FREED_MS);
}

describe('what a sandbox answers', () => {
  it('a redirect is neither followed nor passed on', async () => {
    for (const status of ['301 Moved', '302 Found', '307 Temporary Redirect', '308 Permanent']) {
      sandbox.answer = (socket) =>
        answerWith(socket, status, `Location: http://127.0.0.1:${canary.port}/`, '');
      const reply = await list();
      expect([status, reply.status, reply.json.error.code]).toEqual([
        status,
        503,
        'BACKEND_UNAVAILABLE',
      ]);
      expect(reply.headers.location).toBeUndefined();
    }
    expect(canary.connections).toBe(0);
  });

  it('cookies, hop-by-hop and unknown headers stay behind, and ours stand', async () => {
    const headers = [
      'Content-Type: application/json',
      'Set-Cookie: session=stolen; Path=/',
      'Proxy-Authenticate: Basic',
      'Trailer: X-End',
      'Keep-Alive: timeout=99',
      'Strict-Transport-Security: max-age=0',
      'Content-Security-Policy: script-src *',
      'Access-Control-Allow-Origin: *',
      'X-Request-Id: forged',
      'Server: sandbox',
      'ETag: "kept"',
    ].join('\r\n');
    sandbox.answer = (socket) => answerWith(socket, '200 OK', headers, '{"items":[]}');
    const reply = await list();
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.headers).sort()).toEqual([
      'cache-control',
      'connection',
      'content-length',
      'content-security-policy',
      'content-type',
      'cross-origin-resource-policy',
      'date',
      'etag',
      'keep-alive',
      'referrer-policy',
      'x-content-type-options',
      'x-frame-options',
      'x-request-id',
    ]);
    expect(reply.headers['keep-alive']).not.toContain('99');
    expect(reply.headers['x-request-id']).not.toBe('forged');
    expect(reply.headers['content-security-policy']).toContain("default-src 'none'");
  });

  it('whatever is no answer of ours is 503, and tells nothing of what was said', async () => {
    const envelope = (code: string, more: object = {}) =>
      JSON.stringify({ error: { code, message: 'm', retryable: false, request_id: 'r', ...more } });
    const json = 'Content-Type: application/json';
    const broken: Record<string, (socket: Socket) => void> = {
      'closes at once': (socket) => socket.destroy(),
      'is not HTTP': (socket) => socket.end('SSH-2.0-OpenSSH_9.7\r\n\r\n'),
      'says nothing': () => undefined,
      fails: (socket) => answerWith(socket, '500 Oops', json, envelope('INTERNAL')),
      'asks for a login': (socket) =>
        answerWith(socket, '401 No', json, envelope('UNAUTHENTICATED')),
      'speaks for the broker': (socket) =>
        answerWith(socket, '404 No', json, envelope('UNAUTHENTICATED')),
      'errs in HTML': (socket) => answerWith(socket, '404 No', 'Content-Type: text/html', '<h1>'),
      'errs by an unknown code': (socket) => answerWith(socket, '404 No', json, envelope('WEIRD')),
      'switches protocols': (socket) =>
        socket.end('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    };
    for (const [how, answer] of Object.entries(broken)) {
      sandbox.answer = answer;
      const begin = performance.now();
      const reply = await list();
      expect([how, reply.status, reply.json.error.code]).toEqual([how, 503, 'BACKEND_UNAVAILABLE']);
      expect(reply.json.error.retryable).toBe(true);
      expect(JSON.stringify(reply.json)).not.toContain('OpenSSH');
      expect(performance.now() - begin).toBeLessThan(4_000);
    }
    sandbox.answer = (socket) =>
      answerWith(
        socket,
        '404 No',
        json,
        envelope('NOT_FOUND', {
          field: 'command_id',
          scope: 'x"\r\nSet-Cookie: a',
          allow: ['x\n'],
        }),
      );
    const reply = await list();
    expect([reply.status, reply.json.error.code, reply.json.error.field]).toEqual([
      404,
      'NOT_FOUND',
      'command_id',
    ]);
    expect(reply.json.error.request_id).toBe(reply.headers['x-request-id']);
    expect(reply.json.error).not.toHaveProperty('scope');
  });

  it('headers without an end are cut off, in bounded memory', async () => {
    const before = residentBytes();
    let poured = { bytes: 0 };
    sandbox.answer = (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      poured = pour(socket, `X-Filler: ${'y'.repeat(64 * 1024)}\r\n`);
    };
    const reply = await list();
    expect([reply.status, reply.json.error.code]).toEqual([503, 'BACKEND_UNAVAILABLE']);
    await freed(() => sandbox.open.size === 0);
    expect(poured.bytes).toBeLessThan(64 * MiB);
    expect(residentBytes() - before).toBeLessThan(64 * MiB);
  });
});

describe('an answer without an end', () => {
  it('a client that does not read slows the sandbox down; when it goes, both ends are freed', async () => {
    const before = residentBytes();
    let poured = { bytes: 0 };
    sandbox.answer = (socket) => {
      socket.write(JSONL);
      poured = pour(socket, LINE);
    };
    const client = silentReader(world.port, readLogs());
    await eventually(() => poured.bytes > MiB);
    let last = -1;
    await eventually(async () => {
      const stands = poured.bytes === last;
      last = poured.bytes;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return stands;
    });
    // What the two sockets' own buffers take, and no more.
    expect(last).toBeLessThan(32 * MiB);
    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    client.destroy();
    await freed(() => sandbox.open.size === 0);
  });

  it('a client that never reads again is let go', async () => {
    sandbox.answer = (socket) => {
      socket.write(JSONL);
      pour(socket, LINE);
    };
    const client = silentReader(world.port, readLogs());
    await eventually(() => sandbox.open.size === 1);
    await freed(() => sandbox.open.size === 0);
    client.destroy();
  });

  it('a client that reads gets it as it comes, and when the sandbox goes the line is cut', async () => {
    let socket: Socket | undefined;
    sandbox.answer = (opened) => {
      socket = opened;
      opened.write(`${JSONL}first\n`);
    };
    const client = connect(world.port, '127.0.0.1');
    let text = '';
    client.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    client.on('error', () => undefined);
    client.write([...readLogs(), '', ''].join('\r\n'));
    await eventually(() => text.includes('first'));
    socket?.write('second\n');
    await eventually(() => text.includes('second'));
    const closed = new Promise((resolve) => client.once('close', resolve));
    socket?.resetAndDestroy();
    await closed;
    expect(text).not.toContain('\r\n0\r\n\r\n');
  });

  it('an upload into a sandbox that does not read is held back, and ends when the client goes', async () => {
    sandbox.answer = (socket) => socket.pause();
    const { id, token } = await world.sandboxAt(`http://127.0.0.1:${sandbox.port}`);
    const before = residentBytes();
    const client = connect(world.port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write(
      [
        `PUT /relay/${id}/files/big HTTP/1.1`,
        'Host: x',
        `Authorization: Bearer ${token}`,
        `Content-Length: ${4 * 1024 * MiB}`,
        '',
        '',
      ].join('\r\n'),
    );
    await eventually(() => sandbox.open.size === 1);
    const poured = pour(client, Buffer.alloc(64 * 1024));
    let last = -1;
    await eventually(async () => {
      const stands = poured.bytes === last;
      last = poured.bytes;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return stands;
    });
    expect(last).toBeLessThan(32 * MiB);
    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    client.destroy();
    for (const socket of sandbox.open) socket.resume();
    await freed(() => sandbox.open.size === 0);
  });
});

describe('a WebSocket through the relay', () => {
  async function attached(port: number) {
    const { id } = await world.sandboxAt(`http://127.0.0.1:${port}`);
    const url = `${world.url.replace('http', 'ws')}/v1/sandboxes/${id}/sessions/new`;
    const client = new WebSocket(url, { headers: { Authorization: BEARER.slice(15) } });
    client.on('error', () => undefined);
    await new Promise((resolve, reject) => client.once('open', resolve).once('error', reject));
    return client;
  }

  it('a reader that stops slows the sandbox down, and is let go after a while', async () => {
    await using frames = await framesServer();
    const before = residentBytes();
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    frames.onOpen = (socket) => {
      const more = (): void => {
        if (socket.readyState !== WebSocket.OPEN) return;
        sent += chunk.length;
        socket.send(chunk, () => setImmediate(more));
      };
      for (let at = 0; at < 4; at++) more();
    };
    const client = await attached(frames.port);
    let received = 0;
    client.on('message', (data: Buffer) => {
      received += data.length;
    });
    await eventually(() => received > 4 * MiB);
    client.pause();
    await eventually(() => frames.open === 0);
    expect(sent - received).toBeLessThan(48 * MiB);
    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    client.terminate();
  });

  it('when one end goes the other is freed, with the code that was given', async () => {
    await using frames = await framesServer();
    const gone = await attached(frames.port);
    await eventually(() => frames.open === 1);
    gone.terminate();
    await freed(() => frames.open === 0);

    for (const [code, reason, expected] of [
      [1008, 'Token expired', [1008, 'Token expired']],
      [1000, '', [1000, '']],
      [undefined, '', [1013, 'Try again later']],
    ] as const) {
      const client = await attached(frames.port);
      await eventually(() => frames.open === 1);
      const closed = new Promise((resolve) =>
        client.once('close', (got, words) => resolve([got, String(words)])),
      );
      for (const socket of frames.sockets) {
        if (code === undefined) socket.terminate();
        else socket.close(code, reason);
      }
      expect(await closed).toEqual(expected);
      await freed(() => frames.open === 0);
    }
  });

  it('a message too long ends the connection, and nothing else', async () => {
    await using frames = await framesServer();
    const client = await attached(frames.port);
    const closed = new Promise((resolve) => client.once('close', (code) => resolve(code)));
    client.send(Buffer.alloc(2 * MiB));
    expect(await closed).toBe(1009);
    await freed(() => frames.open === 0);
    expect((await ask(world.url, 'GET', '/v1/sandboxes')).status).toBe(200);
  });

  it('a sandbox that refuses the upgrade, or answers it with something else, is 503', async () => {
    for (const answer of [
      'HTTP/1.1 302 Found\r\nLocation: ws://x/\r\n\r\n',
      'HTTP/1.1 200 OK\r\n\r\n',
      '',
    ]) {
      sandbox.answer = (socket) => socket.end(answer);
      const url = `${world.url.replace('http', 'ws')}/v1/sandboxes/${registered.id}/sessions/new`;
      const client = new WebSocket(url, { headers: { Authorization: BEARER.slice(15) } });
      const status = await new Promise((resolve) => {
        client.on('unexpected-response', (_, response) => resolve(response.statusCode));
        client.on('error', () => undefined);
      });
      expect(status).toBe(503);
      client.terminate();
    }
  });
});
