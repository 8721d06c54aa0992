/** The door: what it lets in, what it refuses before any work, what it says and what it keeps to itself. */
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createDeferred } from '../../../src/base/deferred.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { BODY_MAX_BYTES } from '../../../src/protocol/shapes/envelope.js';
import type { RouteCode } from '../../../src/server/http/call.js';
import { health, readiness } from '../../../src/server/http/health.js';
import { eventually } from '../../support/eventually.js';
import { serving } from './serving.js';

const echo: RouteCode = async (call) => ({ body: { got: (await call.json()) ?? null } });

/** Routes that ask for a token are tried with one who is always let in. */
const verify = async () => ({
  sub: 'usr_1',
  kind: 'user' as const,
  tenant: 'acme',
  clientId: 'ailsd-cli',
  scopes: ['read:sandbox' as const],
  expiresAt: Date.UTC(2030, 0, 1),
  jti: 'tok_1',
});
const bearer = ['Authorization', 'Bearer abc'] as const;

describe('ids and errors', () => {
  it('a plain X-Request-Id is kept, and any other is replaced', async () => {
    await using server = await serving({ routes: { getHealth: health } });
    const idOf = async (...headers: [string, string][]): Promise<unknown> =>
      (await server.send('/healthz', { headers })).headers['x-request-id'];
    expect(await idOf(['X-Request-Id', 'build-17:4_a.b'])).toBe('build-17:4_a.b');
    expect(await idOf(['X-Request-Id', 'a'.repeat(128)])).toBe('a'.repeat(128));
    const bad = ['a'.repeat(129), 'x'.repeat(10_000), 'two words', 'é', '-first', 'a,b', ''];
    for (const given of bad)
      expect(await idOf(['X-Request-Id', given])).toMatch(/^req_[0-9a-z]{26}$/);
    expect(await idOf(['X-Request-Id', 'a'], ['X-Request-Id', 'b'])).toMatch(/^req_/);
    expect(await idOf()).toMatch(/^req_/);
  });

  it('an error of the table is written as the envelope, details beside and never over code and id', async () => {
    const routes = {
      getHealth: () => {
        throw new AilsdError('RATE_LIMITED', 'slow down', {
          details: { retry_after_ms: 1_200, code: 'FORGED', request_id: 'forged', limit: 5 },
          internal: 'bucket 17',
        });
      },
    };
    await using server = await serving({ routes });
    const reply = await server.send('/healthz', { headers: [['X-Request-Id', 'mine']] });
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBe('2');
    expect(reply.json).toEqual({
      error: {
        retry_after_ms: 1_200,
        limit: 5,
        code: 'RATE_LIMITED',
        message: 'slow down',
        retryable: true,
        request_id: 'mine',
      },
    });
  });

  it('what nobody foresaw is INTERNAL to the caller and whole in the log', async () => {
    const routes = {
      getHealth: () => {
        throw new TypeError('SELECT * FROM users: password=hunter2');
      },
      getReadiness: () => Promise.reject('a bare text'),
    };
    await using server = await serving({ routes });
    for (const path of ['/healthz', '/readyz']) {
      const reply = await server.send(path);
      expect(reply.status).toBe(500);
      expect(reply.json.error).toMatchObject({ code: 'INTERNAL', retryable: true });
      expect(reply.text).not.toMatch(/hunter2|bare text|SELECT|stack|at .*:\d+/);
    }
    expect(server.log()).toContain('SELECT * FROM users');
    expect(server.lines.map((line) => line['level'])).toEqual(['error', 'error']);
  });

  it('an unknown path is 404, a wrong method 405 with what is allowed, a broken escape 400', async () => {
    await using server = await serving({ routes: { getHealth: health } });
    expect(await server.send('/nowhere')).toMatchObject({ status: 404 });
    const wrong = await server.send('/healthz', { method: 'POST' });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.allow).toBe('GET');
    expect(wrong.json.error.code).toBe('METHOD_NOT_ALLOWED');
    expect(await server.send('/v1/sandboxes/%zz')).toMatchObject({ status: 400 });
  });

  it('a thread called .. reaches its route, since paths are matched as they were sent', async () => {
    const getThreadSandbox: RouteCode = ({ parameters }) => ({ body: parameters });
    await using server = await serving({ routes: { getThreadSandbox }, verify });
    for (const [sent, thread] of [
      ['%2E%2E', '..'],
      ['..', '..'],
      ['a%3Ab', 'a:b'],
      ['-rf', '-rf'],
    ]) {
      const reply = await server.send(`/threads/${sent}/sandbox?x=/../..`, { headers: [bearer] });
      expect(reply.json, sent).toEqual({ thread_id: thread });
    }
  });
});

describe('limits before work', () => {
  it('a body of 1 MiB is read, one byte more is 413, declared or not', async () => {
    await using server = await serving({ routes: { negotiateSession: echo }, verify });
    const send = (bytes: number, chunked: boolean) =>
      server.send('/v1/sandbox/sessions', {
        method: 'POST',
        headers: [bearer],
        body: `"${'x'.repeat(bytes - 2)}"`,
        chunked,
      });
    for (const chunked of [false, true]) {
      expect((await send(BODY_MAX_BYTES, chunked)).status).toBe(200);
      const refused = await send(BODY_MAX_BYTES + 1, chunked);
      expect(refused.status).toBe(413);
      expect(refused.json.error.code).toBe('PAYLOAD_TOO_LARGE');
    }
  });

  it('who asks first whether to send a body too large is told before sending it', async () => {
    await using server = await serving({ routes: { negotiateSession: echo }, verify });
    const head = (bytes: number) =>
      `POST /v1/sandbox/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nExpect: 100-continue\r\n` +
      `Connection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
    const refused = await server.raw(head(BODY_MAX_BYTES + 1));
    expect(refused).toMatch(/^HTTP\/1\.1 413 /);
    const taken = await server.raw([head(2), '{}']);
    expect(taken).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  it('a packed body is refused unread, and what is not JSON is 400', async () => {
    await using server = await serving({ routes: { negotiateSession: echo }, verify });
    const post = (body: string | Buffer, ...headers: [string, string][]) =>
      server.send('/v1/sandbox/sessions', { method: 'POST', headers: [bearer, ...headers], body });
    const packed = await post(Buffer.alloc(1024), ['Content-Encoding', 'gzip']);
    expect(packed.status).toBe(400);
    expect(packed.json.error).toMatchObject({ code: 'INVALID_REQUEST', field: 'content-encoding' });
    for (const body of ['{', 'null x', Buffer.from([0xff, 0xfe]), '{"a":1}}']) {
      const reply = await post(body);
      expect(reply.status).toBe(400);
      expect(reply.json.error).toMatchObject({ code: 'INVALID_REQUEST', field: 'body' });
    }
    const deep = (depth: number) => post(`${'[{"]":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`);
    expect(await deep(10_000)).toMatchObject({ status: 400 });
    expect(await deep(66)).toMatchObject({ status: 400 });
    expect(await deep(64)).toMatchObject({ status: 200 });
    expect(await post(JSON.stringify({ text: '[{\\"'.repeat(100) }))).toMatchObject({
      status: 200,
    });
    expect(await post('{"__proto__":{"admin":true}}')).toMatchObject({ status: 200 });
  });

  it('too many header lines, a header too large, and what is not HTTP are refused in the envelope', async () => {
    await using server = await serving({ routes: { getHealth: health } });
    const many = Array.from({ length: 101 }, (_, index) => [`X-${index}`, 'v'] as const);
    expect(await server.send('/healthz', { headers: many })).toMatchObject({ status: 400 });
    const large = await server.raw(
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(90 * 1024)}\r\n\r\n`,
    );
    expect(large).toMatch(/^HTTP\/1\.1 431 .*"code":"PAYLOAD_TOO_LARGE"/s);
    const noise = await server.raw('\x16\x03\x01\x02\x00 hello\r\n\r\n');
    expect(noise).toMatch(/^HTTP\/1\.1 400 .*"code":"INVALID_REQUEST".*"request_id":"req_/s);
    const smuggled = await server.raw(
      'POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    expect(smuggled).toMatch(/^HTTP\/1\.1 400 /);
    for (const host of ['a b', 'evil\\@x', '']) {
      const reply = await server.raw(
        `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(reply, host).toMatch(/^HTTP\/1\.1 400 .*INVALID_REQUEST/s);
    }
    expect((await server.send('/healthz')).status).toBe(200);
  });

  it('a caller that never finishes its headers or its body is cut, and an idle one after a while', async () => {
    const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200, keepAliveTimeoutMs: 100 };
    await using server = await serving({ routes: { negotiateSession: echo }, verify, limits });
    expect(await server.raw('GET / HTTP/1.1\r\nHost: x\r\nX-Slow')).toMatch(/^HTTP\/1\.1 408 /);
    const slowBody = await server.raw(
      'POST /v1/sandbox/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nContent-Length: 9\r\n\r\n{',
    );
    expect(slowBody).not.toMatch(/ 200 /);
    const idle = await server.raw('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(idle).toMatch(/^HTTP\/1\.1 404 /);
  });

  it('an address that holds too many connections gets 503 until it lets some go', async () => {
    const limits = { connectionsPerAddress: 3 };
    await using server = await serving({ routes: { getHealth: health }, limits });
    const held = Array.from({ length: 3 }, () => connect(server.port, '127.0.0.1'));
    await Promise.all(held.map((socket) => new Promise((done) => socket.once('connect', done))));
    const ask = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const turned = await server.raw(ask).catch((error: Error) => error.message);
    expect(turned).toMatch(/^HTTP\/1\.1 503 .*Retry-After: 1|ECONNRESET|EPIPE/s);
    for (const socket of held) socket.destroy();
    await eventually(async () => {
      const text = await server.raw(ask).catch(() => '');
      return text.startsWith('HTTP/1.1 200');
    });
  });
});

describe('what it says and keeps to itself', () => {
  it('every answer forbids sniffing, framing, caching and referring', async () => {
    await using server = await serving({ routes: { getHealth: health } });
    for (const path of ['/healthz', '/nowhere']) {
      expect((await server.send(path)).headers).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      });
    }
    expect((await server.send('/healthz')).headers).not.toHaveProperty('x-powered-by');
  });

  it('one line a request at its end, with ids and duration, without query, token or unknown path', async () => {
    await using server = await serving({
      routes: { getHealth: health, listSandboxes: echo },
      verify,
    });
    const secret = 'eyJhbGciOiJSUzI1NiJ9.c2VjcmV0.c2ln';
    const header = ['Authorization', `Bearer ${secret}`] as const;
    await server.send(`/v1/sandboxes?token=${secret}`, { headers: [header] });
    await server.send(`/healthz?token=${secret}`);
    await server.send(`/${secret}/${secret}?code=${secret}`);
    await server.send('/PATHTOKCANARY');
    await server.send('/v1/sandboxes', { headers: [['Authorization', `Basic ${secret}`]] });
    await eventually(() => server.lines.length === 5);
    expect(server.log()).not.toContain(secret);
    expect(server.log()).not.toContain(Buffer.from(secret).toString('base64url'));
    expect(server.log()).not.toContain('token=');
    expect(server.log()).not.toContain('PATHTOKCANARY');
    expect(server.lines.map(({ route, status, method }) => ({ route, status, method }))).toEqual([
      { route: 'listSandboxes', status: 200, method: 'GET' },
      { route: 'getHealth', status: 200, method: 'GET' },
      { route: '…', status: 404, method: 'GET' },
      { route: '…', status: 404, method: 'GET' },
      { route: 'listSandboxes', status: 401, method: 'GET' },
    ]);
    expect(server.lines[0]).toMatchObject({
      message: 'request',
      sub: 'usr_1',
      tenant: 'acme',
      client_id: 'ailsd-cli',
      jti: 'tok_1',
      address: '127.0.0.1',
      request_id: expect.stringMatching(/^req_/),
      duration_ms: expect.any(Number),
    });
  });

  it('a caller that leaves is noticed by the work it asked for', async () => {
    const gone = createDeferred<string>();
    const begun = createDeferred();
    const getHealth: RouteCode = ({ exchange }) => {
      const { signal } = exchange;
      begun.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          gone.resolve(String(signal.reason));
          reject(signal.reason);
        });
      });
    };
    await using server = await serving({ routes: { getHealth } });
    const socket = connect(server.port, '127.0.0.1');
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await begun.promise;
    socket.destroy();
    expect(await gone.promise).toContain('gone');
    await eventually(() => server.lines.length === 1);
    expect(server.lines[0]).toMatchObject({ status: null });
  });

  it('health says that it is up, readiness whether the store answers, and neither says why', async () => {
    let state: 'up' | 'down' | 'silent' = 'up';
    const check = async (): Promise<void> => {
      if (state === 'down') throw new Error('connect ECONNREFUSED db.internal:5432');
      if (state === 'silent') await new Promise(() => {});
    };
    await using server = await serving({
      routes: { getHealth: health, getReadiness: readiness(check) },
    });
    expect((await server.send('/readyz')).json).toEqual({ status: 'ok' });
    for (const one of ['down', 'silent'] as const) {
      state = one;
      const begin = performance.now();
      const reply = await server.send('/readyz');
      expect(performance.now() - begin).toBeLessThan(2_000);
      expect(reply).toMatchObject({ status: 503, text: '{"status":"unavailable"}' });
      expect((await server.send('/healthz')).json).toEqual({ status: 'ok' });
    }
  });
});

describe('behind a proxy', () => {
  const where: RouteCode = ({ exchange }) => ({
    body: { ...exchange.origin, xff: exchange.request.headers['x-forwarded-for'] ?? null },
  });
  const forged = [
    ['X-Forwarded-For', '198.51.100.7, 203.0.113.9'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Real-IP', '198.51.100.7'],
    ['Forwarded', 'for=198.51.100.7'],
  ] as const;

  it('forwarded headers of an untrusted peer change nothing and are gone', async () => {
    await using server = await serving({ routes: { getHealth: where } });
    const { json } = await server.send('/healthz', { headers: forged });
    expect(json).toEqual({ address: '127.0.0.1', scheme: 'http', xff: null });
  });

  it('a trusted proxy is believed about the last hop that no trusted proxy has', async () => {
    const trustedProxies = ['127.0.0.0/8', '203.0.113.9', '2001:db8::/32'];
    await using server = await serving({ routes: { getHealth: where }, trustedProxies });
    const ask = async (chain: string) =>
      (await server.send('/healthz', { headers: [['X-Forwarded-For', chain], forged[1]] })).json;
    const from = (address: string) => ({ address, scheme: 'https', xff: address });
    expect(await ask('198.51.100.7, 203.0.113.9')).toEqual(from('198.51.100.7'));
    expect(await ask('1.1.1.1, 198.51.100.7')).toEqual(from('198.51.100.7'));
    expect(await ask('198.51.100.7, 2001:db8::5')).toEqual(from('198.51.100.7'));
    expect(await ask('::ffff:198.51.100.8')).toEqual(from('198.51.100.8'));
    for (const chain of ['', 'unknown', '198.51.100.7, what', '203.0.113.9', '1.2.3.4,'.repeat(40)])
      expect(await ask(chain), chain).toEqual(from('127.0.0.1'));
  });
});

describe('the end', () => {
  it('a request in flight is answered, new ones find no listener, and idle connections close', async () => {
    const release = createDeferred();
    const begun = createDeferred();
    const getHealth: RouteCode = async () => {
      begun.resolve();
      await release.promise;
      return { body: { status: 'ok' } };
    };
    // Longer than a test may take: whatever waited for it would fail.
    const server = await serving({ routes: { getHealth }, limits: { shutdownTimeoutMs: 60_000 } });
    const idle = connect(server.port, '127.0.0.1');
    await new Promise((done) => idle.once('connect', done));
    const idleClosed = new Promise((done) => idle.once('close', done));
    idle.resume();
    const inFlight = server.send('/healthz');
    await begun.promise;
    const closed = server.server[Symbol.asyncDispose]();
    await expect(server.raw('GET / HTTP/1.1\r\n\r\n')).rejects.toThrow('ECONNREFUSED');
    release.resolve();
    expect(await inFlight).toMatchObject({ status: 200, headers: { connection: 'close' } });
    await closed;
    await idleClosed;
    await server[Symbol.asyncDispose]();
  });

  it('a request that never ends is cut when its time is over', async () => {
    const begun = createDeferred();
    const getHealth: RouteCode = () => {
      begun.resolve();
      return new Promise(() => {});
    };
    const server = await serving({ routes: { getHealth }, limits: { shutdownTimeoutMs: 50 } });
    const inFlight = server.send('/healthz').catch((error: Error) => error.message);
    await begun.promise;
    await server.server[Symbol.asyncDispose]();
    expect(await inFlight).toMatch(/socket hang up|ECONNRESET/);
    await server[Symbol.asyncDispose]();
  });
});
