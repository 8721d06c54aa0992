/** However many ask for a thread's sandbox at once, wherever and by whatever face: there is one. */
import { expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { ensureBy, untilStarted } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld } from './support/world.js';

const IS_SOAK = process.env['AILSD_SOAK'] === '1';
const ROUNDS = IS_SOAK ? 50 : 2;
const CALLERS = 200;
const FACES = ['mvp', 'full', 'thread'] as const;

describeOnBoth('one sandbox per thread', (engine) => {
  it(
    proves(
      `${CALLERS} callers who ensure the same thread get one session and one sandbox`,
      'BR-01',
    ),
    async () => {
      await using world = await openWorld({
        storeUrl: await engine.storeUrl(),
        replicas: engine.mostReplicas,
        plan: {
          before: async (verb) => {
            if (verb !== 'create') return;
            const ms = 200 + Math.random() * (IS_SOAK ? 1_800 : 600);
            await new Promise((resolve) => setTimeout(resolve, ms));
          },
        },
      });
      for (let round = 0; round < ROUNDS; round++) {
        const thread = `thr_round-${round}`;
        const replies = await Promise.all(
          Array.from({ length: CALLERS }, (_, caller) => {
            const face = FACES[caller % FACES.length] ?? 'mvp';
            // Half of them wait, half of them come again.
            const headers = caller % 2 === 0 ? { Prefer: 'wait=30' } : {};
            return untilStarted(() => ensureBy(face, world.url(caller), thread, { headers }));
          }),
        );
        expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
        expect(new Set(replies.map(({ sessionId }) => sessionId)).size).toBe(1);
        expect(new Set(replies.map(({ sandboxId }) => sandboxId)).size).toBe(1);
      }
      await world.settled();
      const made = world.provider.calls.filter((call) => call.startsWith('create '));
      expect(made.length).toBe(ROUNDS);
      expect((await world.provider.all()).length).toBe(ROUNDS);
    },
  );
});
