import { request as httpsRequest } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ManualClock, systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createHttp, HTTP_LIMITS, type HttpOptions } from '../../../src/client/http/http.js';
import { proxyFor, proxySettings } from '../../../src/client/http/proxy.js';
import { eventually } from '../../support/eventually.js';
import {
  AUTHORITY,
  closedPort,
  startProxy,
  startRawServer,
  startSecureServer,
  startServer,
} from './support/servers.js';

describe('through a proxy', () => {
  it('a request is tunnelled: the proxy learns the name and its own password, the server is who it says', async () => {
    await using server = await startSecureServer((request, response) => {
      response.end(`${request.headers.host} ${request.headers['proxy-authorization']}`);
    });
    await using proxy = await startProxy(server.port);
    const http = open({ https: `http://us%20er:pass@127.0.0.1:${proxy.port}` });
    for (let round = 0; round < 2; round += 1) {
      const { body } = await http.request({ url: 'https://server.test/x' });
      expect(Buffer.from(body).toString()).toBe('server.test undefined');
    }
    const authorization = `Basic ${Buffer.from('us er:pass').toString('base64')}`;
    expect(proxy.asked).toEqual([{ target: 'server.test:443', authorization }]);
    http[Symbol.dispose]();
    await eventually(() => proxy.open() === 0);
  });

  it('a certificate for another name is refused: the proxy cannot answer for the server', async () => {
    await using server = await startSecureServer((_, response) => response.end());
    await using proxy = await startProxy(server.port);
    const http = open({ https: `127.0.0.1:${proxy.port}` });
    await expect(http.request({ url: 'https://other.test/' })).rejects.toMatchObject({
      code: 'UNREACHABLE',
      details: { reason: 'tls' },
    });
    await eventually(() => server.open() === 0);
  });

  it('that speaks TLS itself, and to a server without, it works too', async () => {
    await using server = await startServer((request, response) =>
      response.end(request.headers.host),
    );
    await using proxy = await startProxy(server.port, 200, 'secure');
    const http = open({ http: `https://localhost:${proxy.port}` });
    const { body } = await http.request({ url: 'http://server.test:8080/' });
    expect(Buffer.from(body).toString()).toBe('server.test:8080');
    expect(proxy.asked[0]?.target).toBe('server.test:8080');
  });

  it('a WebSocket goes the same way with the agent that is handed out', async () => {
    await using server = await startSecureServer(() => undefined);
    await using proxy = await startProxy(server.port);
    const http = open({ https: `http://127.0.0.1:${proxy.port}` });
    const agent = await http.agentFor('wss://server.test/shell');
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    const asking = httpsRequest({ host: 'server.test', path: '/shell', agent, headers });
    asking.on('error', () => undefined);
    asking.end();
    await eventually(() => server.open() === 1);
    expect(proxy.asked[0]?.target).toBe('server.test:443');
    asking.destroy();
  });

  it.each([407, 502])('an answer of %i is the proxy’s, not the server’s', async (status) => {
    await using proxy = await startProxy(1, status);
    const http = open({ https: `http://user:hidden@127.0.0.1:${proxy.port}` });
    const error: unknown = await http
      .request({ url: 'https://server.test/' })
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'UNREACHABLE', details: { reason: 'proxy', status } });
    expect(JSON.stringify(error) + String(error)).not.toContain('hidden');
    await eventually(() => proxy.open() === 0);
  });

  it('one that is away, or never answers, ends like any other silence, and its connection ends with ours', async () => {
    const gone = open({ https: `http://127.0.0.1:${await closedPort()}` });
    await expect(gone.request({ url: 'https://server.test/' })).rejects.toMatchObject({
      details: { reason: 'refused' },
    });
    await using silent = await startRawServer(undefined);
    const clock = new ManualClock();
    const http = open({ https: `http://127.0.0.1:${silent.port}` }, { clock });
    const asking = http.request({ url: 'https://server.test/' });
    asking.catch(() => undefined);
    await eventually(() => silent.open() === 1);
    await clock.advance(HTTP_LIMITS.connectMs);
    await expect(asking).rejects.toMatchObject({
      details: { reason: 'timeout', phase: 'connect' },
    });
    const begin = performance.now();
    http[Symbol.dispose]();
    await eventually(() => silent.open() === 0);
    // At once, and not when the proxy's silence has been long enough.
    expect(performance.now() - begin).toBeLessThan(5_000);
  });
});

describe('which proxy', () => {
  it.each([
    ['https://api.example.com/', {}, 'http://p:1/'],
    ['http://api.example.com/', {}, 'http://q:2/'],
    ['https://api.example.com/', { NO_PROXY: '*' }, undefined],
    ['https://api.example.com/', { NO_PROXY: 'other, example.com' }, undefined],
    ['https://api.example.com/', { NO_PROXY: '.example.com' }, undefined],
    ['https://api.example.com/', { NO_PROXY: '*.example.com' }, undefined],
    ['https://badexample.com/', { NO_PROXY: 'example.com' }, 'http://p:1/'],
    ['https://api.example.com:8443/', { NO_PROXY: 'example.com:443' }, 'http://p:1/'],
    ['https://api.example.com/', { NO_PROXY: 'example.com:443' }, undefined],
    ['https://10.1.2.3/', { NO_PROXY: '10.0.0.0/8' }, undefined],
    ['https://11.1.2.3/', { NO_PROXY: '10.0.0.0/8, 11.0.0.0/99' }, 'http://p:1/'],
    ['https://[fd00::1]/', { NO_PROXY: 'fd00::/8' }, undefined],
    ['https://[fd00::1]/', { NO_PROXY: 'fd00::1' }, undefined],
    ['https://[fd00::1]:80/', { NO_PROXY: '[fd00::1]:443' }, 'http://p:1/'],
    ['https://localhost/', {}, undefined],
    ['https://127.0.0.1:9/', {}, undefined],
    ['https://[::1]/', {}, undefined],
    ['https://api.example.com/', { https_proxy: 'small:3' }, 'http://small:3/'],
    ['https://api.example.com/', { no_proxy: 'api.example.com' }, undefined],
  ])('%s with %o is reached by %s', async (url, more, expected) => {
    const variables = new Map(
      Object.entries({ HTTPS_PROXY: 'http://p:1', HTTP_PROXY: 'q:2', ...more }),
    );
    const settings = proxySettings((name) => variables.get(name));
    expect((await proxyFor(new URL(url), settings))?.href).toBe(expected);
  });

  it.each(['socks5://user:hidden@p:1', 'http://', 'http://u:%zz@p'])(
    'one that is written %s is refused without repeating it',
    async (https) => {
      const choosing = proxyFor(new URL('https://server.test/'), { https });
      const error: unknown = await choosing.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'CONFIG_INVALID', details: { variable: 'HTTPS_PROXY' } });
      expect(String(error)).not.toContain('hidden');
    },
  );
});

function open(proxy: HttpOptions['proxy'], options: Partial<HttpOptions> = {}) {
  const http = createHttp({
    userAgent: 'ailsd-test',
    clock: systemClock,
    logger: silentLogger,
    caFile: AUTHORITY,
    proxy,
    ...options,
  });
  onTestFinished(() => http[Symbol.dispose]());
  return http;
}
