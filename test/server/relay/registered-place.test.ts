/** The relay connects to the place that was registered for a sandbox, whatever the request, the name server or the sandbox says. */
import type { LookupFunction } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { ask, ensure } from '../broker/support/client.js';
import { framesServer } from './support/frames-server.js';
import { answerWith, type HostileSandbox, hostileSandbox } from './support/hostile-sandbox.js';
import { HANDSHAKE, rawRequest, statusOf } from './support/raw.js';
import { ALICE, type RelayWorld, relayWorld, tokenOf } from './support/relay-world.js';

/** Every name leads to this machine, as it would after its owner changed it. */
const inward: LookupFunction = (_name, _options, done) => done(null, '127.0.0.1', 4);

let world: RelayWorld;
let canary: HostileSandbox;
let sandbox: HostileSandbox;

beforeAll(async () => {
  world = await relayWorld({ resolve: inward, limits: { connectMs: 1_000 } });
  canary = await hostileSandbox();
  sandbox = await hostileSandbox();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await canary[Symbol.asyncDispose]();
  await sandbox[Symbol.asyncDispose]();
});

const BEARER = `Authorization: Bearer ${tokenOf(ALICE)}`;

describe('where the relay connects to', () => {
  it('ids that look like places are no sandboxes, on any relayed path', async () => {
    const { id } = await world.sandboxAt(`http://127.0.0.1:${sandbox.port}`);
    const at = `127.0.0.1:${canary.port}`;
    const spellings = [
      `${id}@${at}`,
      `${id}%40${at}`,
      `${id}#@${at}`,
      `${id}%23${at}`,
      at,
      `${id}:${canary.port}`,
      `${id}%2f..%2f..%2f${at}`,
      `${id}%2F%2E%2E`,
      `//${at}`,
      `%2f%2f${at}`,
      `..`,
      `%2e%2e`,
      `http:%2f%2f${at}`,
      `${id}%00`,
      `${id}%0d%0aHost:%20${at}`,
      `[::1]:${canary.port}`,
      `${id}\\@${at}`,
    ];
    const before = sandbox.connections;
    for (const one of spellings) {
      for (const path of [
        `/v1/sandboxes/${one}/commands`,
        `/v1/sandboxes/${one}/logs`,
        `/v1/sandboxes/${one}`,
        `/relay/${one}/v1/files/download`,
        `/relay/${one}/files/x`,
      ]) {
        const answer = await rawRequest(world.port, [`GET ${path} HTTP/1.1`, 'Host: x', BEARER]);
        expect([400, 404], `${path}: ${answer.slice(0, 200)}`).toContain(statusOf(answer));
      }
      for (const path of [`/v1/sandboxes/${one}/sessions/s1`, `/relay/${one}/v1/shell/ws`]) {
        const lines = [`GET ${path} HTTP/1.1`, 'Host: x', BEARER, ...HANDSHAKE];
        const answer = await rawRequest(world.port, lines);
        expect([400, 404], `${path}: ${answer.slice(0, 200)}`).toContain(statusOf(answer));
        expect(answer).toContain('"code":');
      }
    }
    expect(canary.connections).toBe(0);
    expect(sandbox.connections).toBe(before);
  });

  it('absolute request lines and forged hosts lead nowhere else', async () => {
    const { id } = await world.sandboxAt(`http://127.0.0.1:${sandbox.port}/s/1`);
    const at = `127.0.0.1:${canary.port}`;
    const absolute = await rawRequest(world.port, [
      `GET http://${at}/v1/sandboxes/${id}/commands HTTP/1.1`,
      `Host: ${at}`,
      BEARER,
    ]);
    expect([400, 404]).toContain(statusOf(absolute));
    const forged = await rawRequest(world.port, [
      `GET /v1/sandboxes/${id}/commands?host=${at} HTTP/1.1`,
      `Host: ${at}`,
      `X-Forwarded-Host: ${at}`,
      `X-Forwarded-For: ${at}`,
      `Forwarded: host=${at}`,
      `X-Original-Url: http://${at}/`,
      `X-Rewrite-Url: http://${at}/`,
      BEARER,
    ]);
    expect(statusOf(forged)).toBe(200);
    expect(sandbox.heard).toContain(`GET /s/1/v1/commands HTTP/1.1`);
    expect(sandbox.heard).not.toContain(at);
    const hinted = await ensure(world.url, 'thr_hinted', { body: { sandbox_hint: at } });
    expect([200, 400, 404, 409, 423]).toContain(hinted.status);
    expect(canary.connections).toBe(0);
  });

  it('a name that has come to lead inward, and an address no sandbox has, are not connected to', async () => {
    for (const base of [
      `http://sandbox-7.example:${canary.port}`,
      `http://metadata.example:${canary.port}/latest`,
      'http://169.254.169.254',
      `http://0.0.0.0:${canary.port}`,
      `http://[fe80::1]:${canary.port}`,
      `http://[::]:${canary.port}`,
      `http://[::ffff:169.254.169.254]:${canary.port}`,
    ]) {
      const { id, token } = await world.sandboxAt(base);
      const reply = await ask(world.url, 'GET', `/v1/sandboxes/${id}/commands`);
      expect([base, reply.status, reply.json.error.code]).toEqual([
        base,
        503,
        'BACKEND_UNAVAILABLE',
      ]);
      expect(reply.json.error.retryable).toBe(true);
      const path = `/v1/sandboxes/${id}/sessions/new`;
      const upgrade = await rawRequest(world.port, [
        `GET ${path} HTTP/1.1`,
        'Host: x',
        BEARER,
        ...HANDSHAKE,
      ]);
      expect([base, statusOf(upgrade)]).toEqual([base, 503]);
      const through = await rawRequest(world.port, [
        `GET /relay/${id}/files/x HTTP/1.1`,
        'Host: x',
        `Authorization: Bearer ${token}`,
      ]);
      expect([base, statusOf(through)]).toEqual([base, 503]);
    }
    expect(canary.connections).toBe(0);
  });

  it("the caller's access token, cookies and own headers are never sent to a sandbox", async () => {
    const { id } = await world.sandboxAt(`http://127.0.0.1:${sandbox.port}`);
    sandbox.answer = (socket) =>
      answerWith(socket, '200 OK', 'Content-Type: application/json', '{"items":[]}');
    const secret = tokenOf(ALICE);
    for (const [method, path] of [
      ['POST', `/v1/sandboxes/${id}/commands`],
      ['GET', `/v1/sandboxes/${id}/commands?cursor=1`],
      ['GET', `/v1/sandboxes/${id}/commands/cmd_1`],
      ['GET', `/v1/sandboxes/${id}/commands/cmd_1/logs?tail=5`],
      ['DELETE', `/v1/sandboxes/${id}/commands/cmd_1`],
    ] as const) {
      const reply = await ask(world.url, method, path, {
        headers: { Cookie: `session=${secret}`, 'X-Api-Key': secret, Via: '1.1 canary' },
        ...(method === 'POST' && { body: { argv: ['true'] } }),
      });
      expect([method, path, reply.status]).toEqual([method, path, 200]);
    }
    expect(sandbox.heard).toContain('POST /v1/exec HTTP/1.1');
    expect(sandbox.heard).toContain('GET /v1/commands/cmd_1/logs?tail=5 HTTP/1.1');
    expect(sandbox.heard.toLowerCase()).toContain('authorization: bearer ey');
    expect(sandbox.heard).not.toContain(secret);
    expect(sandbox.heard.toLowerCase()).not.toContain('cookie');
    expect(sandbox.heard.toLowerCase()).not.toContain('canary');
  });

  it('a fresh access token on a live connection reaches the sandbox as a token of its own', async () => {
    await using frames = await framesServer();
    const { id } = await world.sandboxAt(`http://127.0.0.1:${frames.port}/s/7`);
    const secret = tokenOf(ALICE);
    const client = new WebSocket(
      `${world.url.replace('http', 'ws')}/v1/sandboxes/${id}/sessions/sh_1`,
      {
        headers: { Authorization: `Bearer ${secret}` },
      },
    );
    await new Promise((resolve, reject) => client.once('open', resolve).once('error', reject));
    client.send(JSON.stringify({ type: 'start', cols: 80, rows: 24 }));
    client.send(Buffer.from([1, 2, 3, 255]));
    for (const spelling of [
      `{"type":"auth","token":"${secret}"}`,
      `{"token":"${secret}","typ\\u0065":"\\u0061uth"}`,
    ])
      client.send(spelling);
    client.send('{"type":"ping","id":1}');
    await eventually(() => frames.messages.length === 5);
    const [start, bytes, first, second, ping] = frames.messages;
    expect(JSON.parse(String(start))).toEqual({
      type: 'start',
      cols: 80,
      rows: 24,
      shell_id: 'sh_1',
    });
    expect(bytes).toEqual(Buffer.from([1, 2, 3, 255]));
    for (const auth of [first, second]) {
      const { type, token } = JSON.parse(String(auth));
      expect(type).toBe('auth');
      expect(token).toMatch(/^ey/);
    }
    expect(String(ping)).toBe('{"type":"ping","id":1}');
    expect(frames.paths).toEqual(['/s/7/v1/shell/ws']);
    expect(frames.heard).not.toContain(secret);
    const closed = new Promise((resolve) =>
      client.once('close', (code, reason) => resolve([code, String(reason)])),
    );
    client.send(JSON.stringify({ type: 'auth', token: tokenOf({ sub: 'usr_bob' }) }));
    expect(await closed).toEqual([1008, 'Invalid token']);
    await eventually(() => frames.open === 0);
  });

  it(proves('in all of that the canary was never connected to', 'RL-01'), () => {
    expect(canary.connections).toBe(0);
  });
});
