/** What callers send that is no request: each gets 400 with the field's name, soon, and the server stays as it was. */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { ALICE, ask, ensure } from './support/client.js';
import { tokenOf } from './support/replica.js';
import { openWorld, type World } from './support/world.js';

let world: World;

beforeAll(async () => {
  world = await openWorld();
});

afterAll(() => world[Symbol.asyncDispose]());

const SESSIONS = '/v1/sandbox/sessions';

interface Sent {
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

async function post({ body, headers }: Sent) {
  const begin = performance.now();
  const reply = await fetch(`${world.url()}${SESSIONS}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${tokenOf(ALICE)}`, ...headers },
    body: typeof body === 'string' ? body : new Uint8Array(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any client would
  const json: any = await reply.json();
  return { status: reply.status, json, headers: reply.headers, ms: performance.now() - begin };
}

const good = { thread_id: 'thr_1', mode: 'get' };
const MiB = 1024 * 1024;

const BODIES: Readonly<
  Record<string, Sent & { readonly field?: string; readonly status?: number }>
> = {
  'not JSON': { body: 'thread_id=thr_1', field: 'body' },
  'half of it': { body: '{"thread_id":', field: 'body' },
  'not UTF-8': {
    body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    field: 'body',
  },
  null: { body: 'null', field: 'body' },
  'an array': { body: '[]', field: 'body' },
  'a number': { body: '1e400', field: 'body' },
  '1 MiB and one byte': { body: ' '.repeat(MiB + 1), status: 413 },
  'a gzip bomb': {
    body: gzipSync(Buffer.alloc(64 * MiB)),
    headers: { 'Content-Encoding': 'gzip' },
    field: 'content-encoding',
  },
  'depth 10,000': { body: `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, field: 'body' },
  'no mode': { body: '{"thread_id":"thr_1"}', field: 'mode' },
  'an unknown mode': { body: '{"thread_id":"thr_1","mode":"seize"}', field: 'mode' },
  'no thread': { body: '{"mode":"get"}', field: 'thread_id' },
  ...Object.fromEntries(
    ['', 'x'.repeat(129), 'thr 1', 'thr\0', 'thr_é', 'a/b', 17, null, ['thr_1']].map((thread) => [
      `thread ${JSON.stringify(thread).slice(0, 20)}`,
      { body: JSON.stringify({ ...good, thread_id: thread }), field: 'thread_id' },
    ]),
  ),
  'a negative ttl': { body: JSON.stringify({ ...good, ttl: -1 }), field: 'ttl' },
  'an endless ttl': { body: '{"thread_id":"thr_1","mode":"get","ttl":1e309}', field: 'ttl' },
  'a ttl in words': { body: JSON.stringify({ ...good, ttl: '900' }), field: 'ttl' },
  '10,000 capabilities': {
    body: JSON.stringify({ ...good, requested_capabilities: Array(10_000).fill('fs:ro') }),
    field: 'requested_capabilities',
  },
  'a prototype': { body: '{"__proto__":{"mode":"get"},"thread_id":"thr_1"}', field: 'mode' },
  'a prototype deeper': {
    body: '{"thread_id":"thr_1","mode":"get","scope":{"__proto__":{"type":"thread","id":"x"}}}',
    field: 'scope.type',
  },
};

describe('bad input', () => {
  it(proves(
    'is 400 by the name of its field, or 413, at once; what is only odd is taken',
    'BR-09',
  ), async () => {
    // Whatever is loaded at the first use has been.
    await post({ body: JSON.stringify(good) });
    const before = process.memoryUsage().rss;
    for (let round = 0; round < 3; round++) {
      for (const [name, { status = 400, field, ...sent }] of Object.entries(BODIES)) {
        let reply = await post(sent);
        // On a busy machine one of several is enough to show that the time is ours.
        for (let tries = 1; reply.ms >= 100 && tries < 5; tries++) reply = await post(sent);
        expect([name, reply.status]).toEqual([name, status]);
        const code = status === 413 ? 'PAYLOAD_TOO_LARGE' : 'INVALID_REQUEST';
        expect([name, reply.json.error.code]).toEqual([name, code]);
        if (field !== undefined) expect([name, reply.json.error.field]).toEqual([name, field]);
        expect(reply.ms, name).toBeLessThan(100);
      }
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(96 * MiB);
    expect(Object.prototype).not.toHaveProperty('mode');

    // Repeated keys: the last one, as JSON has it.
    const repeated = await post({ body: '{"thread_id":"..","mode":"seize","mode":"get"}' });
    expect(repeated.json.error.code).toBe('SESSION_NOT_FOUND');
    const unknown = await ensure(world.url(), 'thr_odd', {
      headers: { Prefer: 'wait=1e9' },
      body: { colour: 'red', nested: { a: [1] } },
    });
    expect(unknown.status).toBe(200);

    const long = await post({
      body: JSON.stringify(good),
      headers: { 'X-Request-Id': 'x'.repeat(10_240) },
    });
    expect(long.headers.get('x-request-id')).toMatch(/^req_\w{26}$/);
    const odd = await ask(world.url(), 'GET', '/v1/sandboxes', {
      headers: { 'X-Request-Id': 'a\tb' },
    });
    expect(odd.headers['x-request-id']).toMatch(/^req_\w{26}$/);
    expect(world.log.join('')).not.toContain('"level":"error"');
  }, 60_000);
});
