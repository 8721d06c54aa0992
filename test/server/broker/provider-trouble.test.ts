/** A provider that throws, hangs, is late or talks nonsense: callers are told in time, and nothing is left behind. */
import { expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { ensure, ensureBy, type Reply } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld } from './support/world.js';

const PROVISION_SECONDS = 1;

describeOnBoth('a provider in trouble', (engine) => {
  it.concurrent(
    proves('costs a 503 within the deadline, and the next ensure starts afresh', 'BR-05'),
    async () => {
      let trouble: Trouble | undefined;
      const late: (() => void)[] = [];
      await using world = await openWorld({
        storeUrl: await engine.storeUrl(),
        replicas: engine.mostReplicas,
        config: { provisionSeconds: PROVISION_SECONDS },
        plan: {
          before: async (verb) => {
            if (verb !== 'create') return;
            if (trouble === 'throws') throw new Error('no room');
            if (trouble === 'hangs') await new Promise(() => undefined);
            if (trouble === 'is late') await new Promise<void>((resolve) => late.push(resolve));
          },
          after: async (verb, id) => {
            if (verb === 'create' && trouble === 'dies at once' && id !== undefined)
              await world.provider.destroy(id, new AbortController().signal);
          },
        },
      });
      for (const kind of TROUBLES) {
        trouble = kind;
        world.provider.plan.endpoints =
          kind === 'gives a bad URL'
            ? { httpUrl: 'gopher:nowhere', wsUrl: 'ws://u:p@x/' }
            : undefined;
        const asking = FACES.map(async (face) => {
          const thread = `thr_${kind.replaceAll(' ', '-')}-${face}`;
          const begin = performance.now();
          const refused = await ensureBy(face, world.url(1), thread, {
            headers: { Prefer: 'wait=20' },
          });
          expect(performance.now() - begin, kind).toBeLessThan(PROVISION_SECONDS * 1000 + 2_000);
          const code = face === 'full' ? 'BACKEND_UNAVAILABLE' : 'PROVIDER_UNAVAILABLE';
          expect(refused, `${kind} ${face}`).toMatchObject({
            status: 503,
            json: { error: { code, retryable: true } },
          });
        });
        await Promise.all(asking);
      }
      // The late ones come into being now, when nobody wants them any more.
      trouble = undefined;
      for (const come of late) come();
      await world.settled();
      expect(await world.provider.all()).toEqual([]);

      const made: Reply[] = [];
      for (const kind of TROUBLES)
        made.push(await ensure(world.url(2), `thr_${kind.replaceAll(' ', '-')}-mvp`));
      expect(made.map(({ status }) => status)).toEqual(TROUBLES.map(() => 200));
      await world.settled();
      expect((await world.provider.all()).length).toBe(TROUBLES.length);

      // Looking for what is not there asks the provider nothing.
      const asked = world.provider.calls.filter((call) => call !== 'list').length;
      const missing = await ensure(world.url(), 'thr_missing', { body: { mode: 'get' } });
      expect(missing).toMatchObject({
        status: 404,
        json: { error: { code: 'SESSION_NOT_FOUND' } },
      });
      const attach = await ensure(world.url(), 'thr_missing', { body: { mode: 'attach_only' } });
      expect(attach).toMatchObject({ status: 404, json: { error: { code: 'BINDING_NOT_FOUND' } } });
      expect(world.provider.calls.filter((call) => call !== 'list').length).toBe(asked);
    },
  );

  it.concurrent('those who waited for a start that failed are told so, and do not all try again', async () => {
    let fail: () => void = () => undefined;
    const failed = new Promise<void>((resolve) => {
      fail = resolve;
    });
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      replicas: engine.mostReplicas,
      plan: {
        before: async (verb) => {
          if (verb !== 'create') return;
          await failed;
          throw new Error('no room');
        },
      },
    });
    const first = ensure(world.url(0), 'thr_w');
    while (!world.provider.calls.some((call) => call.startsWith('create'))) await turn();
    const waiting = Array.from({ length: 12 }, (_, at) =>
      ensure(world.url(at), 'thr_w', { headers: { Prefer: 'wait=20' } }),
    );
    const impatient = await ensure(world.url(1), 'thr_w');
    expect(impatient).toMatchObject({ status: 423, json: { error: { code: 'SANDBOX_STARTING' } } });
    expect(Number(impatient.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    fail();
    const replies = await Promise.all([first, ...waiting]);
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 503));
    expect(world.provider.calls.filter((call) => call.startsWith('create')).length).toBeLessThan(4);
    await world.settled();
  });
});

const FACES = ['mvp', 'full', 'thread'] as const;
const TROUBLES = ['throws', 'hangs', 'is late', 'gives a bad URL', 'dies at once'] as const;
type Trouble = (typeof TROUBLES)[number];

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
