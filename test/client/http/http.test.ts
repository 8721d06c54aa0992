import { describe, expect, it, onTestFinished } from 'vitest';
import { ManualClock, systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createHttp, HTTP_LIMITS, type HttpOptions } from '../../../src/client/http/http.js';
import { AilsdError, type ErrorCode } from '../../../src/protocol/errors.js';
import { eventually } from '../../support/eventually.js';
import {
  AUTHORITY,
  closedPort,
  startRawServer,
  startSecureServer,
  startServer,
} from './support/servers.js';

describe('an answer', () => {
  it('comes back whole, whatever its status, and a redirect is not followed', async () => {
    const asked: string[] = [];
    await using server = await startServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers['user-agent']}`);
      response.writeHead(302, { location: '/elsewhere', 'x-two': ['a', 'b'] }).end('moved');
    });
    const http = open({ baseUrl: `http://127.0.0.1:${server.port}/base/` });
    const { status, headers, body } = await http.request({
      method: 'PUT',
      url: '/x?y=1',
      body: 'z',
    });
    expect(status).toBe(302);
    expect(headers).toMatchObject({ location: '/elsewhere', 'x-two': 'a, b' });
    expect(Buffer.from(body).toString()).toBe('moved');
    expect(asked).toEqual(['PUT /base/x?y=1 ailsd-test']);
  });

  it('carries JSON both ways over one kept connection', async () => {
    await using server = await startServer((request, response) => {
      let heard = '';
      request.on('data', (chunk) => {
        heard += chunk;
      });
      request.on('end', () => response.end(JSON.stringify({ heard: JSON.parse(heard) })));
    });
    const http = open({ baseUrl: `http://127.0.0.1:${server.port}` });
    for (const word of ['one', 'two', 'drei ✓']) {
      const answer = await http.json({ method: 'POST', url: '/', json: { word } });
      expect(answer.value).toEqual({ heard: { word } });
    }
    expect(server.made()).toBe(1);
    http[Symbol.dispose]();
    await eventually(() => server.open() === 0);
  });

  it('that is an error is thrown by its code, with its details and the time to wait', async () => {
    const envelope = { code: 'RATE_LIMITED', message: 'slow\u001b[31m', retryable: true };
    await using server = await startServer((_, response) => {
      response.writeHead(429, { 'retry-after': '7' });
      response.end(JSON.stringify({ error: { ...envelope, request_id: 'req_1', field: 'x' } }));
    });
    const error = await failure(open().json({ url: `http://127.0.0.1:${server.port}/` }));
    expect(error).toMatchObject({ code: 'RATE_LIMITED', message: envelope.message });
    expect(error.details).toEqual({
      request_id: 'req_1',
      field: 'x',
      status: 429,
      retry_after_ms: 7000,
    });
  });

  it.each<[string, number, string, ErrorCode, object]>([
    [
      'a code that is not known',
      418,
      '{"error":{"code":"TEAPOT","message":"m"}}',
      'PROTOCOL_MISMATCH',
      { server_code: 'TEAPOT' },
    ],
    [
      'a code that every object has',
      400,
      '{"error":{"code":"toString"}}',
      'PROTOCOL_MISMATCH',
      { status: 400 },
    ],
    ['no envelope', 400, '{"error":"invalid_grant"}', 'PROTOCOL_MISMATCH', { status: 400 }],
    [
      'a page of a load balancer',
      502,
      '<html>Bad gateway</html>',
      'UNREACHABLE',
      { reason: 'gateway' },
    ],
    ['a redirect', 307, '', 'PROTOCOL_MISMATCH', { status: 307 }],
    ['a success that is not JSON', 200, '{"secret-token', 'PROTOCOL_MISMATCH', { status: 200 }],
    ['bytes that are not UTF-8', 200, '\xff\xfe', 'PROTOCOL_MISMATCH', { status: 200 }],
  ])(
    'that is %s is an error of ours that repeats nothing',
    async (_, status, body, code, details) => {
      await using server = await startServer((_request, response) => {
        response.writeHead(status).end(Buffer.from(body, 'latin1'));
      });
      const error = await failure(open().json({ url: `http://127.0.0.1:${server.port}/` }));
      expect(error).toMatchObject({ code, details });
      expect(`${error.message}${String(error.cause)}`).not.toContain('secret-token');
    },
  );

  it.each(['said before', 'not said before'])('that is too long, %s, is cut off', async (said) => {
    await using server = await startServer((_, response) => {
      if (said === 'said before') response.setHeader('content-length', 5_000_000);
      const chunk = Buffer.alloc(65_536);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const url = `http://127.0.0.1:${server.port}/`;
    const error = await failure(open().request({ url, maxBytes: 100_000 }));
    expect(error).toMatchObject({ code: 'PROTOCOL_MISMATCH', details: { max_bytes: 100_000 } });
    await eventually(() => server.open() === 0);
  });
});

describe('no answer', () => {
  it('from a port that nobody listens on says so', async () => {
    const error = await failure(open().request({ url: `http://127.0.0.1:${await closedPort()}/` }));
    expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'refused' } });
    expect(error.row.retryable).toBe(true);
  });

  it('from a name that does not exist says so', async () => {
    const error = await failure(open().request({ url: 'http://no-such-host.invalid/' }));
    expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'dns' } });
  });

  it.each([
    ['garbage', 'SSH-2.0-OpenSSH_9.2\r\n', false, 'PROTOCOL_MISMATCH', 'HPE_INVALID_CONSTANT'],
    [
      'headers without end',
      `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`,
      false,
      'PROTOCOL_MISMATCH',
      'HPE_HEADER_OVERFLOW',
    ],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
      false,
      'PROTOCOL_MISMATCH',
      'HPE_UNEXPECTED_CONTENT_LENGTH',
    ],
    ['nothing, and hangs up', undefined, true, 'UNREACHABLE', 'ECONNRESET'],
    [
      'half a body',
      'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc',
      true,
      'UNREACHABLE',
      'ECONNRESET',
    ],
  ] as const)('from a server that says %s is told apart', async (_, says, ends, code, cause) => {
    await using server = await startRawServer(says, ends);
    const error = await failure(open().request({ url: `http://127.0.0.1:${server.port}/` }));
    expect(error).toMatchObject({ code, details: { cause_code: cause } });
    await eventually(() => server.open() === 0);
  });

  it('within its limit ends the wait, in each phase, and the connection', async () => {
    const clock = new ManualClock();
    const phases = [
      ['headers', undefined, HTTP_LIMITS.headersMs],
      ['body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc', HTTP_LIMITS.bodyMs],
    ] as const;
    for (const [phase, says, limitMs] of phases) {
      await using server = await startRawServer(says);
      const waiting = failure(open({ clock }).request({ url: `http://127.0.0.1:${server.port}/` }));
      let error: AilsdError | undefined;
      waiting.then((one) => {
        error = one;
      });
      await eventually(() => server.made() === 1);
      await eventually(async () => {
        await clock.advance(limitMs / 2);
        return error !== undefined;
      });
      expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'timeout', phase } });
      await eventually(() => server.open() === 0);
      expect(clock.sleeping).toBe(0);
    }
  });

  it('to a TLS greeting ends the wait for the connection', async () => {
    const clock = new ManualClock();
    await using server = await startRawServer(undefined);
    const waiting = failure(open({ clock }).request({ url: `https://127.0.0.1:${server.port}/` }));
    await eventually(() => server.made() === 1);
    await clock.advance(HTTP_LIMITS.connectMs);
    expect(await waiting).toMatchObject({ details: { reason: 'timeout', phase: 'connect' } });
    await eventually(() => server.open() === 0);
  });

  it('is not waited for once the caller has called it off', async () => {
    await using server = await startRawServer(undefined);
    const caller = new AbortController();
    const asking = open().request({
      url: `http://127.0.0.1:${server.port}/`,
      signal: caller.signal,
    });
    asking.catch(() => undefined);
    await eventually(() => server.open() === 1);
    const reason = new Error('enough');
    caller.abort(reason);
    await expect(asking).rejects.toBe(reason);
    await eventually(() => server.open() === 0);
    await expect(
      open().request({ url: 'http://127.0.0.1:1/', signal: caller.signal }),
    ).rejects.toBe(reason);
  });

  it('can come to a request whose header or address could be taken for something else: it is not sent', async () => {
    const headers = { authorization: 'Bearer a\r\nx: y' };
    await using server = await startServer((_, response) => response.end());
    const bad = await failure(open().request({ url: `http://127.0.0.1:${server.port}/`, headers }));
    expect(bad.code).toBe('INVALID_REQUEST');
    expect(server.made()).toBe(0);
    for (const url of ['file:///etc/passwd', 'ws://localhost/', '/no-base', 'x']) {
      expect(await failure(open().request({ url }))).toMatchObject({ code: 'CONFIG_INVALID' });
    }
  });
});

describe('TLS', () => {
  it('of a private authority is trusted once AILSD_CA_FILE names it, and the error says so before', async () => {
    await using server = await startSecureServer((_, response) => response.end('hello'));
    const url = `https://localhost:${server.port}/`;
    const error = await failure(open().request({ url }));
    expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'tls' } });
    expect(error.hint).toContain('AILSD_CA_FILE');
    const { body } = await open({ caFile: AUTHORITY }).request({ url });
    expect(Buffer.from(body).toString()).toBe('hello');
  });

  it('with a certificate that ran out, or on a port without TLS, is refused', async () => {
    await using expired = await startSecureServer((_, response) => response.end(), 'expired.pem');
    await using plain = await startServer((_, response) => response.end());
    for (const { port } of [expired, plain]) {
      const http = open({ caFile: AUTHORITY });
      const error = await failure(http.request({ url: `https://localhost:${port}/` }));
      expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'tls' } });
      expect(error.hint).toContain('AILSD_CA_FILE');
    }
  });

  it.each(['/nonexistent', import.meta.filename, import.meta.dirname])(
    'is not even tried with an AILSD_CA_FILE of %s',
    async (caFile) => {
      const error = await failure(open({ caFile }).request({ url: 'https://localhost:1/' }));
      expect(error).toMatchObject({
        code: 'CONFIG_INVALID',
        details: { variable: 'AILSD_CA_FILE' },
      });
    },
  );
});

function open(options: Partial<HttpOptions> = {}) {
  const http = createHttp({
    userAgent: 'ailsd-test',
    clock: systemClock,
    logger: silentLogger,
    ...options,
  });
  onTestFinished(() => http[Symbol.dispose]());
  return http;
}

async function failure(work: Promise<unknown>): Promise<AilsdError> {
  const outcome: unknown = await work.then(
    () => 'it worked',
    (error: unknown) => error,
  );
  if (outcome instanceof AilsdError) return outcome;
  throw new Error('it should have failed by a code', { cause: outcome });
}
