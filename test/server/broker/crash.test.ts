/** A replica killed at any step of an ensure: the caller gets its sandbox elsewhere, and nothing is left over. */
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { bundleProgram } from '../store/support/program.js';
import { ensure, type Reply } from './support/client.js';
import { CRASH_STEPS, type ReplicaArguments } from './support/crash-steps.js';
import { describeOnPostgres } from './support/engines.js';
import { openWorld } from './support/world.js';

const TIMES = process.env['AILSD_SOAK'] === '1' ? 10 : 1;
const ANSWER_WITHIN_MS = 15_000;

const program = await bundleProgram(join(import.meta.dirname, 'support', 'replica-program.ts'));

afterAll(() => program[Symbol.asyncDispose]());

describeOnPostgres('a replica killed while it starts a sandbox', (engine) => {
  it.concurrent(
    proves('is no loss: the caller comes again elsewhere and gets one session', 'BR-03'),
    async () => {
      await using world = await openWorld({ storeUrl: await engine.storeUrl() });
      const place = { storeUrl: world.storeUrl, cloudFolder: world.cloudFolder, jobs: false };
      for (let time = 0; time < TIMES; time++) {
        const outcomes = await Promise.all(
          CRASH_STEPS.map(async ({ name }) => {
            const given: ReplicaArguments = { ...place, crashAt: name };
            const victim = program.start(JSON.stringify(given));
            await victim.printed(1);
            const thread = `thr_${name.replaceAll(' ', '-')}-${time}`;
            const asked = { headers: { 'Idempotency-Key': thread, Prefer: 'wait=60' } };
            const cut = await ensure(victim.lines[0] ?? '', thread, asked).catch(() => undefined);
            const ended = await victim.ended;
            const begin = performance.now();
            const reply = await untilAnswered(() => ensure(world.url(), thread, asked));
            const tookMs = Math.round(performance.now() - begin);
            return { name, cut: cut?.status, ended, status: reply.status, tookMs, reply };
          }),
        );
        for (const { name, cut, ended, status, tookMs, reply } of outcomes) {
          expect({ name, cut, ended, status }).toEqual({
            name,
            cut: undefined,
            ended: 'SIGKILL',
            status: 200,
          });
          expect(tookMs, name).toBeLessThan(ANSWER_WITHIN_MS);
          const again = await ensure(world.url(), reply.json.thread_id);
          expect(again.json.session_id, name).toBe(reply.json.session_id);
          expect(again.json.sandbox.id, name).toBe(reply.json.sandbox.id);
        }
      }
      await world.settled(60_000);
      expect((await world.provider.all()).length).toBe(CRASH_STEPS.length * TIMES);
    },
  );

  it.concurrent('a start nobody asks for again is finished or ended by the reaper', async () => {
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { provisionSeconds: 6 },
    });
    const place = { storeUrl: world.storeUrl, cloudFolder: world.cloudFolder, jobs: false };
    await Promise.all(
      ['session committed', 'create answered', 'key delivered'].map(async (crashAt) => {
        const victim = program.start(JSON.stringify({ ...place, crashAt }));
        await victim.printed(1);
        const thread = `thr_${crashAt.replaceAll(' ', '-')}`;
        await ensure(victim.lines[0] ?? '', thread).catch(() => undefined);
        await victim.ended;
      }),
    );
    await world.settled(60_000);
  });
});

/** 423 and 503 are both words to come again by. */
async function untilAnswered(call: () => Promise<Reply>): Promise<Reply> {
  const deadline = performance.now() + ANSWER_WITHIN_MS;
  for (;;) {
    const reply = await call();
    const isToBeRepeated = reply.status === 423 || reply.status === 503;
    if (!isToBeRepeated || performance.now() > deadline) return reply;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
