/** Letting go of a session, whatever else is done with it at the same time. */
import { expect, it } from 'vitest';
import { ask, ensure, ensureBy, type Reply, untilStarted } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld } from './support/world.js';

const ROUNDS = process.env['AILSD_SOAK'] === '1' ? 500 : 40;
const FACES = ['mvp', 'full', 'thread'] as const;

describeOnBoth('a release', (engine) => {
  it.concurrent('races with ensure, refresh and heartbeat, and each caller is told the truth', async () => {
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      replicas: engine.mostReplicas,
      plan: { delayMs: [0, 20] },
    });
    await Promise.all(Array.from({ length: 4 }, (_, lane) => run(lane)));
    await world.settled();

    async function run(lane: number): Promise<void> {
      for (let round = lane; round < ROUNDS; round += 4) {
        const thread = `thr_race-${round % 7}-${lane}`;
        const face = FACES[round % 3] ?? 'mvp';
        const first = await untilStarted(() => ensureBy(face, world.url(round), thread));
        expect(first.status).toBe(200);
        const path = `/v1/sandbox/sessions/${first.sessionId}`;
        const refresh = () => ask(world.url(round + 1), 'POST', `${path}/refresh`, { body: {} });
        const release = () =>
          face === 'thread'
            ? ask(world.url(round), 'DELETE', `/threads/${thread}/sandbox`)
            : ask(world.url(round), 'DELETE', path);
        const [released, during, refreshed, beat] = await Promise.all([
          release(),
          ensureBy('mvp', world.url(round + 1), thread),
          refresh(),
          ask(world.url(round + 2), 'POST', `${path}/heartbeat`),
        ]);
        // The thread may have got a new session in between, which is then the one that was let go.
        expect([204, 404]).toContain(released.status);
        expect([200, 423, 503]).toContain(during.status);
        expectOneOf(refreshed, 'SESSION_NOT_FOUND');
        expectOneOf(beat, 'BINDING_NOT_FOUND');
        if (released.status !== 204 || face === 'thread') continue;

        expect(await release()).toMatchObject({
          status: 404,
          json: { error: { code: 'SESSION_NOT_FOUND' } },
        });
        expect(await refresh()).toMatchObject({
          status: 404,
          json: { error: { code: 'SESSION_NOT_FOUND' } },
        });
        const after = await untilStarted(() => ensureBy('mvp', world.url(round + 2), thread));
        expect(after.status).toBe(200);
        expect(after.sandboxId).not.toBe(first.sandboxId);
        expect(await world.provider.look(after.sandboxId as never)).toMatchObject({
          state: 'running',
        });
        expect(await world.provider.look(first.sandboxId as never)).toBeUndefined();
      }
    }
  });

  it.concurrent('of a sandbox that is starting leaves nothing, and who waited for it gets another', async () => {
    let go: () => void = () => undefined;
    const made = new Promise<void>((resolve) => {
      go = resolve;
    });
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      replicas: engine.mostReplicas,
      plan: {
        before: async (verb) => {
          if (verb === 'create') await made;
        },
      },
    });
    const first = ensure(world.url(0), 'thr_start');
    while (!world.provider.calls.some((call) => call.startsWith('create'))) await turn();
    const waiting = ensure(world.url(1), 'thr_start', { headers: { Prefer: 'wait=20' } });
    const [session] = await world.db.query('SELECT id FROM sessions');
    const path = `/v1/sandbox/sessions/${session?.['id']}`;
    expect((await ask(world.url(2), 'DELETE', path)).status).toBe(204);
    go();
    const replies = await Promise.all([first, waiting]);
    for (const reply of replies) {
      expect([200, 423]).toContain(reply.status);
      if (reply.status === 200) expect(reply.json.session_id).not.toBe(session?.['id']);
    }
    await world.settled();
    const next = await untilStarted(() => ensure(world.url(2), 'thr_start'));
    expect(next.json.session_id).not.toBe(session?.['id']);
    expect((await world.provider.all()).length).toBe(1);
  });

  it.concurrent('is heard although the provider can not be reached, and the sandbox goes as soon as it can', async () => {
    let isAway = false;
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { sweepSeconds: 0.5 },
      plan: {
        before: async () => {
          if (isAway) throw new Error('away');
        },
      },
    });
    const first = await ensure(world.url(), 'thr_away');
    isAway = true;
    const path = `/v1/sandbox/sessions/${first.json.session_id}`;
    expect((await ask(world.url(), 'DELETE', path)).status).toBe(204);
    expect((await world.provider.all()).length).toBe(1);
    isAway = false;
    await world.settled();
    expect(await world.provider.all()).toEqual([]);
  });
});

function expectOneOf(reply: Reply, code: string): void {
  if (reply.status === 200) return;
  expect(reply).toMatchObject({ status: 404, json: { error: { code } } });
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
