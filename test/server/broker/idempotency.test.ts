/** What an `Idempotency-Key` promises: the same answer for the same request, wherever it is asked again. */
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import type { SandboxId } from '../../../src/protocol/ids.js';
import { verifySandboxToken } from '../../../src/server/tokens/sandbox-token.js';
import { proves } from '../../requirements.js';
import { ALICE, ask, ensure, type Reply, untilStarted } from './support/client.js';
import { describeOnBoth, describeOnPostgres } from './support/engines.js';
import { tokenOf } from './support/replica.js';
import { openWorld, type World } from './support/world.js';

const CALLERS = 50;

describeOnBoth('an Idempotency-Key', (engine) => {
  it.concurrent(
    proves('means one request to its caller on its route for a day, and keeps no token', 'BR-02'),
    async () => {
      await using world = await openWorld({
        storeUrl: await engine.storeUrl(),
        replicas: engine.mostReplicas,
        plan: { delayMs: [20, 100] },
      });
      const keyed = (key: string, thread: string, turn: number, body: object = {}) =>
        untilStarted(() =>
          ensure(world.url(turn), thread, { headers: { 'Idempotency-Key': key }, body }),
        );

      // 50 at once, over all replicas.
      const replies = await Promise.all(
        Array.from({ length: CALLERS }, (_, turn) => keyed('key-1', 'thr_keyed', turn)),
      );
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
      expect(new Set(replies.map(({ json }) => json.session_id)).size).toBe(1);
      expect(new Set(replies.map(({ json }) => json.sandbox.id)).size).toBe(1);
      expect(new Set(replies.map(({ json }) => json.token)).size).toBe(CALLERS);
      for (const reply of replies) await expectValidToken(world, reply);
      const session = replies[0]?.json.session_id;

      // The order of the fields is no difference; their values are.
      const conflict = await keyed('key-1', 'thr_keyed', 1, { ttl: 120 });
      expect(conflict).toMatchObject({
        status: 409,
        json: { error: { code: 'SESSION_CONFLICT' } },
      });
      const full = await keyed('key-1', 'thr_keyed', 2, { actor: { type: 'human' } });
      expect(full).toMatchObject({ status: 409, json: { error: { code: 'BINDING_CONFLICT' } } });

      // Another principal's, and another route's, is another key.
      const bob = { sub: 'usr_bob' };
      const other = await untilStarted(() =>
        ensure(world.url(1), 'thr_bob', { as: bob, headers: { 'Idempotency-Key': 'key-1' } }),
      );
      expect(other.status).toBe(200);
      expect(other.json.session_id).not.toBe(session);
      const route = await untilStarted(() =>
        ask(world.url(2), 'POST', '/threads/thr_other/sandbox', {
          headers: { 'Idempotency-Key': 'key-1' },
          body: {},
        }),
      );
      expect(route.status).toBe(200);
      expect(route.json.session_id).not.toBe(session);

      for (const bad of ['', 'x'.repeat(256), 'a b', 'a\tb']) {
        const refused = await keyed(bad, 'thr_keyed', 0);
        expect(refused, JSON.stringify(bad)).toMatchObject({
          status: 400,
          json: { error: { code: 'INVALID_REQUEST', field: 'Idempotency-Key' } },
        });
      }
      // What no HTTP client would send.
      expect(await sentRaw(world.url(), 'a\u0001b')).toMatch(
        /^HTTP\/1\.1 400 .*"INVALID_REQUEST"/s,
      );
      expect((await keyed('y'.repeat(255), 'thr_keyed', 0)).status).toBe(200);

      // What was released is not made anew by repeating the request that made it.
      const release = await ask(world.url(1), 'DELETE', `/v1/sandbox/sessions/${session}`);
      expect(release.status).toBe(204);
      expect(await keyed('key-1', 'thr_keyed', 2)).toMatchObject({
        status: 404,
        json: { error: { code: 'SESSION_NOT_FOUND' } },
      });

      // After a day the key is new again.
      await world.db.run('UPDATE idempotency SET expires_at = 1 WHERE idempotency_key = ?', [
        'key-1',
      ]);
      const fresh = await keyed('key-1', 'thr_keyed', 0);
      expect(fresh.status).toBe(200);
      expect(fresh.json.session_id).not.toBe(session);

      const kept = JSON.stringify(await world.db.query('SELECT * FROM idempotency'));
      expect(kept).not.toContain('eyJ');
      for (const { json } of [...replies, fresh]) expect(kept).not.toContain(json.token);
    },
  );

  it.concurrent('a create_only that is repeated with its key finds what it made', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const create = (key: string) =>
      ensure(world.url(), 'thr_new', {
        body: { mode: 'create_only' },
        headers: { 'Idempotency-Key': key },
      });
    const first = await create('one');
    expect(first.status).toBe(200);
    expect((await create('one')).json.session_id).toBe(first.json.session_id);
    expect(await create('two')).toMatchObject({
      status: 409,
      json: { error: { code: 'BINDING_CONFLICT' } },
    });
  });

  it.concurrent('a start that failed is begun afresh under the same key', async () => {
    let fails = 1;
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      plan: {
        before: async (verb) => {
          if (verb === 'create' && fails-- > 0) throw new Error('no room');
        },
      },
    });
    const headers = { 'Idempotency-Key': 'again' };
    expect((await ensure(world.url(), 'thr_again', { headers })).status).toBe(503);
    expect((await ensure(world.url(), 'thr_again', { headers })).status).toBe(200);
    await world.settled();
  });
});

describeOnPostgres('a replica that answered and was closed', (engine) => {
  it.concurrent('is no loss to the key: another one gives the same answer', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: 2 });
    const headers = { 'Idempotency-Key': 'k' };
    const first = await ensure(world.url(0), 'thr_k', { headers });
    await world.replicas[0]?.[Symbol.asyncDispose]();
    const second = await ensure(world.url(1), 'thr_k', { headers });
    expect(second.json.session_id).toBe(first.json.session_id);
    await expectValidToken(world, second);
  });
});

function sentRaw(url: string, key: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname);
    socket.setEncoding('latin1').on('error', reject);
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
    const head = `POST /v1/sandbox/sessions HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n`;
    const token = tokenOf(ALICE);
    const body = '{"thread_id":"thr_keyed","mode":"ensure"}';
    socket.write(
      `${head}Authorization: Bearer ${token}\r\nIdempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      'latin1',
    );
  });
}

/** By what the sandbox itself was given. */
async function expectValidToken(world: World, { json }: Reply): Promise<void> {
  const id: SandboxId = json.sandbox.id;
  const sandbox = await world.provider.look(id);
  const keys = (sandbox?.access.keys ?? []).map(
    (key) => new Uint8Array(Buffer.from(key, 'base64url')),
  );
  const verdict = verifySandboxToken(new Secret(json.token), keys, {
    sandboxId: id,
    nowMs: Date.now(),
  });
  expect(verdict.kind).toBe('valid');
}
