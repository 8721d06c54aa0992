/** `/relay/{id}/…`: a sandbox's own routes through the broker, for the sandbox's own tokens, which the relay checks itself. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { SUBPROTOCOLS } from '../../../src/protocol/frame-codec.js';
import { eventually } from '../../support/eventually.js';
import { ask } from '../broker/support/client.js';
import { type FramesServer, framesServer } from './support/frames-server.js';
import { answerWith, type HostileSandbox, hostileSandbox } from './support/hostile-sandbox.js';
import { rawRequest, statusOf } from './support/raw.js';
import { type Registered, type RelayWorld, relayWorld } from './support/relay-world.js';

let world: RelayWorld;
let files: HostileSandbox;
let frames: FramesServer;

beforeAll(async () => {
  world = await relayWorld({ validatesTokens: false });
  files = await hostileSandbox();
  frames = await framesServer();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await files[Symbol.asyncDispose]();
  await frames[Symbol.asyncDispose]();
});

function get(path: string, token: string | undefined, ...more: readonly string[]): Promise<string> {
  const bearer = token === undefined ? [] : [`Authorization: Bearer ${token}`];
  return rawRequest(world.port, [`GET ${path} HTTP/1.1`, 'Host: x', ...bearer, ...more]);
}

function narrowed({ sessionId, token }: Registered, scopes: readonly string[]): Promise<string> {
  const path = `/v1/sandbox/sessions/${sessionId}/downscope`;
  return ask(world.url, 'POST', path, { body: { current_token: token, scopes } }).then(
    ({ json }) => json.token,
  );
}

function open(url: string, token?: string, protocols: string[] = []): WebSocket {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const socket = new WebSocket(url, protocols, { headers });
  socket.on('error', () => undefined);
  return socket;
}

function opened(socket: WebSocket): Promise<unknown> {
  return new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
}

function refusal(socket: WebSocket): Promise<number | undefined> {
  return new Promise((resolve) =>
    socket.once('unexpected-response', (_, response) => resolve(response.statusCode)),
  );
}

function closing(socket: WebSocket): Promise<readonly [number, string]> {
  return new Promise((resolve) =>
    socket.once('close', (code, reason) => resolve([code, String(reason)])),
  );
}

describe('a sandbox that checks no tokens', () => {
  it('is handed out under the address of the broker, and gets the request without any token', async () => {
    files.answer = (socket) => answerWith(socket, '200 OK', 'ETag: "1"', 'content');
    const made = await world.sandboxAt(`http://127.0.0.1:${files.port}/s/9`);
    expect(made.baseUrls.http).toBe(`${world.url}/relay/${made.id}`);
    expect(made.baseUrls.ws).toBe(`${world.url.replace('http', 'ws')}/relay/${made.id}`);
    const base = `/relay/${made.id}`;
    const answer = await get(
      `${base}/files/a%20folder/..%2Fx?unknown=1`,
      made.token,
      'If-Match: "1"',
    );
    expect(statusOf(answer)).toBe(400);
    const good = await get(`${base}/files/a%20folder/x`, made.token, 'If-Match: "1"');
    expect([statusOf(good), good.includes('content')]).toEqual([200, true]);
    expect(files.heard).toContain('GET /s/9/files/a%20folder/x HTTP/1.1');
    expect(files.heard).toContain('if-match: "1"');
    expect(files.heard.toLowerCase()).not.toContain('authorization');
    expect(files.heard).not.toContain(made.token);
  });

  it('takes its own tokens alone, with the capability that the route asks for', async () => {
    files.answer = (socket) => answerWith(socket, '200 OK', 'X: y', '{}');
    const made = await world.sandboxAt(`http://127.0.0.1:${files.port}`);
    const other = await world.sandboxAt(`http://127.0.0.1:${files.port}`);
    const path = `/relay/${made.id}/files/x`;
    for (const token of [undefined, other.token, 'nonsense', `${made.token}x`])
      expect(statusOf(await get(path, token))).toBe(401);
    const reading = await narrowed(made, ['fs:ro']);
    expect(statusOf(await get(path, reading))).toBe(200);
    const lines = [`PUT ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${reading}`];
    const denied = await rawRequest(world.port, [...lines, 'Content-Length: 0']);
    expect(statusOf(denied)).toBe(403);
    expect(denied).toContain('"capability":"fs:rw"');
    const shell = `ws://127.0.0.1:${world.port}/relay/${made.id}/v1/shell/ws`;
    // Frames pass unread, so that watching alone is not enough where nobody looks at them.
    expect(await refusal(open(shell, await narrowed(made, ['shell:ro'])))).toBe(403);
    await ask(world.url, 'POST', `/v1/sandbox/sessions/${made.sessionId}/rotate-key`, { body: {} });
    expect(statusOf(await get(path, made.token))).toBe(401);
  });

  it('speaks frames through the relay, by header or by first frame, in the agreed subprotocol', async () => {
    const made = await world.sandboxAt(`http://127.0.0.1:${frames.port}/s/3`);
    const url = `${made.baseUrls.ws}/v1/shell/ws`;
    const byHeader = open(url, made.token, [SUBPROTOCOLS.binary, SUBPROTOCOLS.json]);
    await opened(byHeader);
    expect(byHeader.protocol).toBe(SUBPROTOCOLS.binary);
    byHeader.send(Buffer.from([0, 255]));
    await eventually(() => frames.messages.length === 1);
    expect(frames.messages[0]).toEqual(Buffer.from([0, 255]));
    byHeader.terminate();
    await eventually(() => frames.open === 0);

    const byFrame = open(url);
    const heard: string[] = [];
    byFrame.on('message', (data) => heard.push(String(data)));
    await opened(byFrame);
    expect(frames.open).toBe(0);
    byFrame.send(JSON.stringify({ type: 'auth', token: made.token }));
    byFrame.send('{"type":"start"}');
    await eventually(() => frames.messages.length === 2);
    expect(frames.messages[1]).toBe('{"type":"start"}');
    expect(JSON.parse(heard[0] ?? '{}')).toMatchObject({ type: 'auth_ok' });
    for (const socket of frames.sockets) socket.send('{"type":"ready"}');
    await eventually(() => heard.length === 2);
    byFrame.terminate();
    await eventually(() => frames.open === 0);

    const stranger = open(url);
    await opened(stranger);
    stranger.send('{"type":"start"}');
    expect(await closing(stranger)).toEqual([1008, 'Missing token']);
    const liar = open(url);
    await opened(liar);
    liar.send(JSON.stringify({ type: 'auth', token: 'nonsense' }));
    expect(await closing(liar)).toEqual([1008, 'Invalid token']);
    expect(frames.open).toBe(0);
    expect(frames.heard).not.toContain(made.token);
  });

  it('a token that is taken back ends its connections within two seconds', async () => {
    const made = await world.sandboxAt(`http://127.0.0.1:${frames.port}`);
    const socket = open(`${made.baseUrls.ws}/v1/shell/ws`, made.token);
    await opened(socket);
    const closed = closing(socket);
    const payload = made.token.split('.')[1] ?? '';
    const { jti } = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const path = `/v1/sandbox/sessions/${made.sessionId}/revoke`;
    expect((await ask(world.url, 'POST', path, { body: { jti } })).status).toBe(204);
    const begin = performance.now();
    expect(await closed).toEqual([1008, 'Invalid token']);
    expect(performance.now() - begin).toBeLessThan(2_000);
    await eventually(() => frames.open === 0);
  });
});
