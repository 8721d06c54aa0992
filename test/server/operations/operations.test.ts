/** What an operator relies on: figures without names, readiness that tells of the end, limits that say when to come back. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ManualClock } from '../../../src/base/clock.js';
import { Buckets } from '../../../src/server/http/rate-limits.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { eventually } from '../../support/eventually.js';
import { FolderProvider } from '../../support/folder-provider.js';
import type { Answer } from '../../support/server.js';
import { type WholeServer, wholeServer } from '../../support/whole-server.js';
import { framesServer } from '../relay/support/frames-server.js';

const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(...options: Parameters<typeof wholeServer>): Promise<WholeServer> {
  const server = await wholeServer(...options);
  open.push(server);
  return server;
}

function get(
  server: WholeServer,
  path: string,
  sub = 'usr_alice',
  scope?: string,
): Promise<Response> {
  const token = server.token({ sub, ...(scope !== undefined && { scope }) });
  return fetch(`${server.url}${path}`, { headers: { Authorization: `Bearer ${token}` } });
}

async function jsonOf(reply: Response | undefined): Promise<Answer> {
  return JSON.parse((await reply?.text()) ?? '');
}

async function ensure(server: WholeServer, thread: string): Promise<Answer> {
  const reply = await fetch(`${server.url}/v1/sandbox/sessions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${server.token()}`, Prefer: 'wait=10' },
    body: JSON.stringify({ thread_id: thread, mode: 'ensure' }),
  });
  expect(reply.status).toBe(200);
  return jsonOf(reply);
}

describe('the figures', () => {
  it('count requests by route and status and sandboxes by state, and name nobody', async () => {
    const server = await start();
    const { sandbox, session_id } = await ensure(server, 'thr_secret_plan');
    await get(server, `/v1/sandboxes/${sandbox.id}`);
    await get(server, '/v1/sandboxes/sb_nothing');
    await get(server, '/some/where/else');
    let text = '';
    await eventually(async () => {
      const reply = await fetch(`${server.url}/metrics`);
      expect(reply.headers.get('content-type')).toContain('text/plain');
      text = await reply.text();
      return text.includes('route="other",status="404"');
    });
    expect(text).toContain('ailsd_http_requests_total{route="negotiateSession",status="200"} 1');
    expect(text).toContain('ailsd_http_requests_total{route="getSandbox",status="200"} 1');
    expect(text).toContain('ailsd_http_requests_total{route="getSandbox",status="404"} 1');
    expect(text).toContain('ailsd_http_request_seconds_bucket{le="0.1",route="getSandbox"}');
    expect(text).toContain('ailsd_sandboxes{state="active"} 1');
    expect(text).toContain('ailsd_open_sockets 0');
    for (const name of [sandbox.id, session_id, 'usr_alice', 'thr_secret', 'else', 'default'])
      expect(text).not.toContain(name);
  });

  it('tell how sweeps and deliveries of access went, and what the sweeps did', async () => {
    let isAway = false;
    const server = await start({
      file: { broker: { sweep_seconds: 1, hard_ttl_seconds: 60, idle_timeout_seconds: 60 } },
      provider: (folder) =>
        new FolderProvider(folder, {
          before: async (verb) => {
            if (isAway && verb === 'deliver') throw new Error('away');
          },
        }),
    });
    const figures = async () => (await fetch(`${server.url}/metrics`)).text();
    const { session_id, token } = await ensure(server, 'thr_figures');
    const revoke = async () => {
      const jti = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).jti;
      const reply = await fetch(`${server.url}/v1/sandbox/sessions/${session_id}/revoke`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${server.token()}` },
        body: JSON.stringify({ jti }),
      });
      expect(reply.status).toBeLessThan(300);
    };
    isAway = true;
    await revoke();
    await eventually(async () =>
      /ailsd_access_deliveries_total\{outcome="failed"\} [1-9]/.test(await figures()),
    );
    expect(await figures()).not.toContain('ailsd_access_deliveries_total{outcome="done"}');
    isAway = false;
    await eventually(async () =>
      (await figures()).includes('ailsd_access_deliveries_total{outcome="done"} 1'),
    );
    await using db = await openStore(server.store);
    await db.run('UPDATE sandboxes SET hard_expires_at = 1');
    await eventually(async () => (await figures()).includes('ailsd_swept_total{what="ended"} 1'));
    expect(await figures()).toMatch(/ailsd_sweeps_total\{outcome="done"\} [1-9]/);
  });

  it('the protocol is served as a document', async () => {
    const server = await start();
    const reply = await fetch(`${server.url}/openapi.json`);
    const document = await jsonOf(reply);
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'ailsd' } });
    expect(document['paths']).toHaveProperty('/v1/sandbox/sessions');
  });
});

describe('limits on how often somebody asks', () => {
  it('one caller is told when to come back, while others and the monitoring go on', async () => {
    const server = await start({ file: { broker: { requests_per_minute: 5 } } });
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => get(server, '/v1/sandboxes')),
    );
    const refused = replies.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(3);
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThanOrEqual(11);
    const { error } = await jsonOf(refused[0]);
    expect(error).toMatchObject({ code: 'RATE_LIMITED', retryable: true });
    expect((await get(server, '/v1/sandboxes', 'usr_bob')).status).toBe(200);
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await fetch(`${server.url}${path}`)).status).toBe(200);
  });

  it('one address is limited before anybody asks who it is', async () => {
    const server = await start({ file: { broker: { address_requests_per_minute: 3 } } });
    const statuses: number[] = [];
    for (let at = 0; at < 5; at++)
      statuses.push((await fetch(`${server.url}/v1/sandboxes`)).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    const socket = new WebSocket(
      `${server.url.replace('http', 'ws')}/v1/sandboxes/sb_1/sessions/s`,
    );
    const status = await new Promise((resolve) => {
      socket.on('unexpected-response', (_, response) => resolve(response.statusCode));
      socket.on('error', () => undefined);
    });
    expect(status).toBe(429);
  });

  it('buckets refill steadily, and no crowd of names makes them grow without bound', async () => {
    const clock = new ManualClock(0);
    const buckets = new Buckets(60, clock);
    for (let at = 0; at < 60; at++) buckets.take('a');
    expect(() => buckets.take('a')).toThrow('too many requests');
    await clock.advance(1_000);
    buckets.take('a');
    expect(() => buckets.take('a')).toThrow('too many requests');
    for (let at = 0; at < 120_000; at++) buckets.take(`name ${at}`);
    expect(buckets.size).toBeLessThanOrEqual(50_000);
    await clock.advance(60_000);
    buckets.take('b');
    expect(buckets.size).toBe(1);
  });
});

describe('the end', () => {
  it('readiness says so first; what is in flight is finished; sockets are told to go elsewhere', async () => {
    await using frames = await framesServer();
    const server = await start({ file: { drain_seconds: 1 } });
    server.provider.plan.endpoints = {
      httpUrl: `http://127.0.0.1:${frames.port}`,
      wsUrl: `ws://127.0.0.1:${frames.port}`,
    };
    const { sandbox } = await ensure(server, 'thr_1');
    const url = `${server.url.replace('http', 'ws')}/v1/sandboxes/${sandbox.id}/sessions/new`;
    const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${server.token()}` } });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve([code, String(reason)])),
    );
    // A log that is followed has no end of its own.
    const follow = await get(server, `/v1/sandboxes/${sandbox.id}/logs?follow=1`);
    const reader = follow.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('sandbox.state');
    const slow = connect(server.port, '127.0.0.1');
    let answer = '';
    slow.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk;
    });
    slow.write(
      `POST /v1/sandbox/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token()}\r\nContent-Length: 37\r\n\r\n{"thread_id":"thr_1",`,
    );
    await eventually(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    const begin = performance.now();
    const stopped = server.stop();
    await eventually(async () => (await fetch(`${server.url}/readyz`)).status === 503);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect((await get(server, '/v1/sandboxes')).status).toBe(200);
    expect(await closed).toEqual([1001, 'Server going away']);
    while ((await reader?.read())?.done === false);
    slow.write('"mode":"ensure"}');
    await stopped;
    await eventually(() => answer !== '');
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(answer).toMatch(/connection: close/i);
    expect(performance.now() - begin).toBeLessThan(6_000);
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
    await eventually(() => frames.open === 0);
    expect(server.log.join('')).not.toContain('"level":"error"');
  });
});
