import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Asker } from '../../../src/client/sessions/asker.js';
import { negotiate } from '../../../src/client/sessions/negotiate.js';
import { negotiateRemembered, onSession } from '../../../src/client/sessions/remembered.js';
import { parseThreadId } from '../../../src/protocol/ids.js';
import { temporaryFolder } from '../../support/cli.js';
import { envelope, startFakeBroker } from '../../support/fake-broker.js';
import { sessionWorld } from './support/world.js';

const thread = parseThreadId('thr_demo');

describe('negotiating', () => {
  it('asks in both shapes at once, and waits by Prefer for a sandbox that is starting', async () => {
    await using broker = await startFakeBroker({ startMs: 300 });
    using world = sessionWorld({ url: broker.url });
    const request = { thread, mode: 'ensure', capabilities: ['fs:ro'], ttlSeconds: 300 } as const;
    const { negotiated } = await negotiate(world, new Asker(world), request);
    expect(negotiated).toMatchObject({ threadId: 'thr_demo', capabilities: ['fs:ro'] });
    const [only, ...more] = broker.of('negotiateSession');
    expect(more).toEqual([]);
    expect(only?.json).toEqual({
      thread_id: 'thr_demo',
      scope: { type: 'thread', id: 'thr_demo' },
      mode: 'ensure',
      requested_capabilities: ['fs:ro'],
      ttl: 300,
    });
    expect(only?.headers['prefer']).toBe('wait=25');
  });

  it('one that is still starting is asked for again, with the key of the intent, as Retry-After says', async () => {
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url });
    let left = 3;
    broker.script = () =>
      left-- > 0 ? { ...starting(), headers: { 'retry-after': '0' } } : undefined;
    const told: number[] = [];
    const starts = (elapsedMs: number): unknown => told.push(elapsedMs);
    await negotiate(world, new Asker(world), { thread, mode: 'ensure' }, { starting: starts });
    expect(told).toHaveLength(3);
    const keys = broker.of('negotiateSession').map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    await negotiate(world, new Asker(world), { thread, mode: 'ensure' });
    expect(broker.of('negotiateSession').at(-1)?.headers['idempotency-key']).not.toBe(keys[0]);
  });

  it('nobody waits longer than they want: at once 423, later TIMEOUT', async () => {
    await using broker = await startFakeBroker({ startMs: 60_000 });
    using world = sessionWorld({ url: broker.url });
    const ask = (startTimeoutMs: number) =>
      negotiate(world, new Asker(world), { thread, mode: 'ensure' }, { startTimeoutMs });
    await expect(ask(0)).rejects.toMatchObject({ code: 'SANDBOX_STARTING' });
    expect(broker.requests[0]?.headers['prefer']).toBe(undefined);
    await expect(ask(400)).rejects.toMatchObject({
      code: 'TIMEOUT',
      hint: expect.stringContaining('--timeout'),
    });
  });

  it('a connection that is cut is no second sandbox: asked again with the same key', async () => {
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url });
    let left = 2;
    broker.script = () => (left-- > 0 ? 'cut' : undefined);
    await negotiate(world, new Asker(world), { thread, mode: 'ensure' });
    const keys = broker.of('negotiateSession').map(({ headers }) => headers['idempotency-key']);
    expect([keys.length, new Set(keys).size, broker.made]).toEqual([3, 1, 1]);
    broker.script = () => 'cut';
    await expect(negotiate(world, new Asker(world), { thread, mode: 'get' })).rejects.toMatchObject(
      {
        code: 'UNREACHABLE',
      },
    );
  });

  it('an abort ends the waiting at once', async () => {
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url });
    const controller = new AbortController();
    broker.script = () => 'silence';
    const asked = negotiate(
      world,
      new Asker(world),
      { thread, mode: 'ensure' },
      { signal: controller.signal },
    );
    controller.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  });

  it('what the server refuses is thrown as it says', async () => {
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url });
    const codes = ['CAPABILITY_DENIED', 'BINDING_CONFLICT', 'RATE_LIMITED', 'BACKEND_UNAVAILABLE'];
    for (const code of codes) {
      broker.script = () => envelope(code as 'RATE_LIMITED');
      const asked = negotiate(world, new Asker(world), { thread, mode: 'ensure' });
      await expect(asked).rejects.toMatchObject({ code });
    }
    expect(broker.requests).toHaveLength(codes.length);
  });

  it('a token that the server refuses is asked for once more where there is a way, and else named', async () => {
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url });
    broker.script = () => envelope('UNAUTHENTICATED');
    await expect(negotiate(world, new Asker(world), { thread, mode: 'get' })).rejects.toMatchObject(
      {
        code: 'UNAUTHENTICATED',
        message: expect.stringContaining('AILSD_TOKEN'),
      },
    );
    expect(broker.requests).toHaveLength(1);
  });
});

describe('negotiating with a memory', () => {
  it('the next process names the sandbox it had; no token is ever in the folder', async () => {
    using folder = temporaryFolder();
    await using broker = await startFakeBroker();
    const ensure = async () => {
      using world = sessionWorld({ url: broker.url, cacheFolder: folder.path });
      return negotiateRemembered(world, new Asker(world), { thread, mode: 'ensure' });
    };
    const first = await ensure();
    await ensure();
    const [before, after] = broker.of('negotiateSession');
    expect(before?.json.sandbox_hint).toBe(undefined);
    expect(after?.json.sandbox_hint).toBe(first.negotiated.sandboxId);
    const kept = everythingIn(folder.path);
    expect(kept).toContain(first.negotiated.sandboxId);
    for (const token of [...broker.tokens, 'opaque-access']) expect(kept).not.toContain(token);
  });

  it('a memory that has become wrong is dropped, and the answer is as if there had been none', async () => {
    using folder = temporaryFolder();
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url, cacheFolder: folder.path });
    const asker = new Asker(world);
    await negotiateRemembered(world, asker, { thread, mode: 'ensure' });
    broker.script = ({ json }) =>
      json?.sandbox_hint === undefined ? undefined : envelope('BINDING_CONFLICT');
    const { negotiated } = await negotiateRemembered(world, asker, { thread, mode: 'ensure' });
    expect(negotiated.threadId).toBe(thread);
    const named = { thread, mode: 'ensure', sandboxHint: 'sb_other' } as const;
    await expect(negotiateRemembered(world, asker, named)).rejects.toMatchObject({
      code: 'BINDING_CONFLICT',
    });
  });

  it('a session that is gone is forgotten', async () => {
    using folder = temporaryFolder();
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url, cacheFolder: folder.path });
    const asker = new Asker(world);
    await negotiateRemembered(world, asker, { thread, mode: 'ensure' });
    broker.script = () => envelope('BINDING_NOT_FOUND');
    await expect(negotiateRemembered(world, asker, { thread, mode: 'get' })).rejects.toMatchObject({
      code: 'BINDING_NOT_FOUND',
    });
    expect(everythingIn(folder.path)).toBe('');
  });

  it("what is done to a thread's session goes to the one there is, also after another was remembered", async () => {
    using folder = temporaryFolder();
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url, cacheFolder: folder.path });
    const asker = new Asker(world);
    const first = await negotiateRemembered(world, asker, { thread, mode: 'ensure' });
    const release = (id: string) =>
      asker.json({ method: 'DELETE', url: `/v1/sandbox/sessions/${id}` });
    await release(first.negotiated.sessionId);
    using other = sessionWorld({ url: broker.url });
    const second = await negotiateRemembered(other, new Asker(other), { thread, mode: 'ensure' });
    const seen: string[] = [];
    await onSession(world, asker, thread, async (id) => {
      seen.push(id);
      return asker.json({ url: `/v1/sandbox/sessions/${id}` });
    });
    expect(seen).toEqual([first.negotiated.sessionId, second.negotiated.sessionId]);
    await release(second.negotiated.sessionId);
    const gone = onSession(world, asker, thread, (id) =>
      asker.json({ url: `/v1/sandbox/sessions/${id}` }),
    );
    await expect(gone).rejects.toMatchObject({ code: 'BINDING_NOT_FOUND' });
    expect(everythingIn(folder.path)).toBe('');
  });
});

function starting() {
  return envelope('SANDBOX_STARTING') as { status: number; json: unknown };
}

function everythingIn(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
}
