import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createFetch } from '../../../src/client/http/fetch-adapter.js';
import { createHttp } from '../../../src/client/http/http.js';
import { startServer } from './support/servers.js';

it('a library that takes a fetch gets our HTTP: forms, statuses, empty answers, no redirects', async () => {
  await using server = await startServer((request, response) => {
    let heard = '';
    request.on('data', (chunk) => {
      heard += chunk;
    });
    request.on('end', () => {
      const status = Number(request.url?.slice(1));
      response.writeHead(status, {
        location: '/200',
        'x-type': request.headers['content-type'] ?? '',
      });
      response.end(status === 204 ? undefined : heard);
    });
  });
  using http = createHttp({ userAgent: 'test', clock: systemClock, logger: silentLogger });
  const fetch = createFetch(http);
  const at = (path: string): string => `http://127.0.0.1:${server.port}/${path}`;
  const form = await fetch(at('400'), {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'x y' }),
  });
  expect(form.status).toBe(400);
  expect(await form.text()).toBe('grant_type=x+y');
  expect(form.headers.get('x-type')).toBe('application/x-www-form-urlencoded;charset=UTF-8');
  expect((await fetch(at('302'))).status).toBe(302);
  expect((await fetch(at('204'))).body).toBeNull();
  await expect(fetch(at('700'))).rejects.toMatchObject({ code: 'PROTOCOL_MISMATCH' });
  await expect(fetch(at('200'), { body: new Map() })).rejects.toMatchObject({ code: 'INTERNAL' });
  await expect(fetch(at('200'), { signal: AbortSignal.abort('off') })).rejects.toBe('off');
});

it('openid-client discovers an issuer through it', async () => {
  const { customFetch, discovery, allowInsecureRequests } = await import('openid-client');
  await using server = await startServer((request, response) => {
    const issuer = `http://${request.headers.host}`;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ issuer, token_endpoint: `${issuer}/token` }));
  });
  using http = createHttp({ userAgent: 'test', clock: systemClock, logger: silentLogger });
  const issuer = new URL(`http://127.0.0.1:${server.port}`);
  const found = await discovery(issuer, 'ailsd-cli', undefined, undefined, {
    [customFetch]: createFetch(http),
    execute: [allowInsecureRequests],
  });
  expect(found.serverMetadata().token_endpoint).toBe(`${issuer.href}token`);
});
