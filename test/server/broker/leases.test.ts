/** How long a sandbox lives: by the database's clock, whatever the replicas' own say, and with one reaper at a time. */
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Audit } from '../../../src/server/store/audit.js';
import type { Db } from '../../../src/server/store/db.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { bundleProgram, type Run } from '../store/support/program.js';
import { ask, ensure } from './support/client.js';
import type { ReplicaArguments } from './support/crash-steps.js';
import { describeOnBoth, describeOnPostgres } from './support/engines.js';
import { openWorld } from './support/world.js';

const IS_SOAK = process.env['AILSD_SOAK'] === '1';
const HEARTBEATS = IS_SOAK ? 1_000 : 50;
const IDLE_SECONDS = IS_SOAK ? 5 : 3;
/** A dead reaper's hold on a sandbox lasts four seconds, and two sweeps must be more than that. */
const SWEEP_SECONDS = 3;
const FIVE_MINUTES_MS = 300_000;

const program = await bundleProgram(join(import.meta.dirname, 'support', 'replica-program.ts'));

afterAll(() => program[Symbol.asyncDispose]());

describeOnPostgres('leases', (engine) => {
  it(
    proves('a heartbeat that is answered is good for a whole idle timeout, whatever dies', 'BR-07'),
    async () => {
      // Its store and folder only; the replicas are processes.
      await using world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: 0 });
      const common: ReplicaArguments = {
        storeUrl: world.storeUrl,
        cloudFolder: world.cloudFolder,
        config: { idleTimeoutSeconds: IDLE_SECONDS, sweepSeconds: SWEEP_SECONDS },
        tellsReaping: true,
      };
      const start = async (more: Partial<ReplicaArguments>): Promise<Run> => {
        const run = program.start(JSON.stringify({ ...common, ...more }));
        await run.printed(1);
        return run;
      };
      // The first is the reaper, and dies of the first sandbox it puts to sleep.
      const first = await start({ crashAt: 'reaping' });
      await first.printed(2);
      const behind = await start({ clockOffsetMs: -FIVE_MINUTES_MS });
      const ahead = await start({ clockOffsetMs: FIVE_MINUTES_MS });
      const others = [behind.lines[0] ?? '', ahead.lines[0] ?? ''];
      try {
        const beats = await Promise.all(
          Array.from({ length: HEARTBEATS }, async (_, at) => {
            const url = others[at % 2] ?? '';
            // Not all in the same instant: what is measured is the lease, not this machine.
            await pause(at * 20);
            const made = await ensure(url, `thr_${at}`, { body: { actor: { type: 'human' } } });
            expect(made.status, JSON.stringify(made.json)).toBe(200);
            const { session_id: id, binding } = made.json;
            const jitterMs = Math.random() * 100 - 50;
            await pause(Date.parse(binding.lease_expires_at) + jitterMs - Date.now());
            const sentMs = Date.now();
            const beat = await ask(url, 'POST', `/v1/sandbox/sessions/${id}/heartbeat`);
            const { sandbox_id: sandboxId, lease_expires_at: leaseAt } = binding;
            return { sandboxId, leaseAt, sentMs, beat };
          }),
        );
        expect(new Set(beats.map(({ beat }) => beat.status).filter((s) => s !== 410))).toEqual(
          new Set([200]),
        );
        await eventually(async () => (await stateCount(world.db, 'suspended')) === HEARTBEATS);
        expect(await first.ended).toBe('SIGKILL');
        const idle = await idleTimes(world.db);
        let early = 0;
        let overdue = 0;
        for (const { sandboxId, leaseAt, beat } of beats) {
          const leaseMs = Date.parse(beat.status === 200 ? beat.json.lease_expires_at : leaseAt);
          const [idleAtMs, suspendedAtMs] = idle.get(sandboxId) ?? [0, Number.NaN];
          if (idleAtMs < leaseMs) early += 1;
          // Two sweeps, and a second for this machine.
          if (!(suspendedAtMs <= leaseMs + 2 * SWEEP_SECONDS * 1000 + 1_000)) overdue += 1;
        }
        expect({ early, overdue }).toEqual({ early: 0, overdue: 0 });
        for (const { beat, sentMs } of beats) {
          if (beat.status !== 200) continue;
          const aliveMs = Date.parse(beat.json.lease_expires_at) - sentMs;
          expect(aliveMs).toBeGreaterThanOrEqual(IDLE_SECONDS * 1000);
        }
        expect(overlaps([first, behind, ahead])).toBe(0);
      } finally {
        for (const run of [behind, ahead]) run.process.kill('SIGKILL');
        await Promise.all([behind.ended, ahead.ended]);
      }
    },
  );
});

describeOnBoth('the life of a sandbox', (engine) => {
  it.concurrent('one that nobody uses sleeps, keeps its files and is woken by the next ensure', async () => {
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      replicas: engine.mostReplicas,
      config: { idleTimeoutSeconds: 1, sweepSeconds: 0.5 },
    });
    const first = await ensure(world.url(), 'thr_s');
    await eventually(async () => (await stateCount(world.db, 'suspended')) === 1);
    expect((await world.provider.all())[0]?.state).toBe('stopped');

    // Who only looks wakes nothing; a heartbeat and a refresh come too late.
    const path = `/v1/sandbox/sessions/${first.json.session_id}`;
    expect((await ask(world.url(1), 'GET', path)).json.binding.state).toBe('suspended');
    const look = await ensure(world.url(1), 'thr_s', { body: { mode: 'get' } });
    expect(look.json.session_id).toBe(first.json.session_id);
    expect((await world.provider.all())[0]?.state).toBe('stopped');
    const beat = await ask(world.url(1), 'POST', `${path}/heartbeat`);
    expect(beat).toMatchObject({ status: 410, json: { error: { code: 'SESSION_EXPIRED' } } });
    const refresh = await ask(world.url(1), 'POST', `${path}/refresh`, { body: {} });
    expect(refresh).toMatchObject({ status: 410, json: { error: { code: 'SESSION_EXPIRED' } } });

    const woken = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        ensure(world.url(at), 'thr_s', { headers: { Prefer: 'wait=20' } }),
      ),
    );
    for (const { json } of woken) {
      expect(json.session_id).toBe(first.json.session_id);
      expect(json.sandbox.id).toBe(first.json.sandbox.id);
    }
    expect((await world.provider.all())[0]?.state).toBe('running');
    expect(world.provider.calls.filter((call) => call.startsWith('start ')).length).toBe(1);
  });

  it.concurrent('a heartbeat that comes while the reaper looks at the sandbox keeps it', async () => {
    let path: string | undefined;
    let kept: number | undefined;
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { idleTimeoutSeconds: 1, sweepSeconds: 0.5 },
      plan: {
        before: async (verb) => {
          if (verb !== 'inspect' || path === undefined || kept !== undefined) return;
          const beat = await ask(world.url(), 'POST', `${path}/heartbeat`);
          expect(beat.status).toBe(200);
          kept = Date.parse(beat.json.lease_expires_at);
        },
      },
    });
    const { json } = await ensure(world.url(), 'thr_beat');
    path = `/v1/sandbox/sessions/${json.session_id}`;
    await eventually(async () => (await stateCount(world.db, 'suspended')) === 1);
    const [idleAtMs = 0] = (await idleTimes(world.db)).get(json.sandbox.id) ?? [];
    expect(kept).toBeDefined();
    expect(idleAtMs).toBeGreaterThanOrEqual(kept ?? Number.POSITIVE_INFINITY);
  });

  it.concurrent('open shells and running commands keep it, and why says so', async () => {
    const busy = { openShells: 1, attachedViewers: 0, runningCommands: 2, lastActiveAtMs: 0 };
    let activity: typeof busy | undefined = busy;
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { idleTimeoutSeconds: 1, sweepSeconds: 0.5 },
      plan: { activity: () => activity },
    });
    const { json } = await ensure(world.url(), 'thr_busy', { body: { actor: { type: 'human' } } });
    const lease = Date.parse(json.binding.lease_expires_at);
    const path = `/v1/sandboxes/${json.sandbox.id}/why`;
    await eventually(async () => {
      const why = await ask(world.url(), 'GET', path);
      return Date.parse(why.json.last_active_at) > lease;
    });
    const why = await ask(world.url(), 'GET', path);
    expect(why.json).toMatchObject({ state: 'active', activity_known: true });
    expect(why.json.kept_by).toContainEqual({ by: 'shells', count: 1 });
    expect(why.json.kept_by).toContainEqual({ by: 'commands', count: 2 });
    expect(why.json.next).toMatchObject({ state: 'suspended', because: 'idle_timeout' });
    activity = { ...busy, openShells: 0, runningCommands: 0 };
    await eventually(async () => (await stateCount(world.db, 'suspended')) === 1);
    const asleep = await ask(world.url(), 'GET', path);
    expect(asleep.json).toMatchObject({ state: 'suspended', kept_by: [] });
    expect(asleep.json.next).toMatchObject({ state: 'terminated', because: 'hard_ttl' });
  });

  it.concurrent('however busy, it ends after its hard TTL, and its session is told to be over', async () => {
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { idleTimeoutSeconds: 60, hardTtlSeconds: 1, sweepSeconds: 0.5 },
    });
    const first = await ensure(world.url(), 'thr_hard', { body: { actor: { type: 'human' } } });
    const path = `/v1/sandbox/sessions/${first.json.session_id}`;
    const beat = await ask(world.url(), 'POST', `${path}/heartbeat`);
    const { lease_expires_at: lease } = beat.json;
    expect(Date.parse(lease)).toBeLessThan(Date.now() + 2_000);
    await eventually(async () => (await world.provider.all()).length === 0);
    for (const [method, rest] of [
      ['GET', ''],
      ['POST', '/heartbeat'],
      ['POST', '/refresh'],
    ] as const)
      expect(await ask(world.url(), method, `${path}${rest}`)).toMatchObject({
        status: 410,
        json: { error: { code: 'SESSION_EXPIRED' } },
      });
    const next = await ensure(world.url(), 'thr_hard');
    expect(next.json.session_id).not.toBe(first.json.session_id);
    expect(next.json.sandbox.id).not.toBe(first.json.sandbox.id);
  });

  it.concurrent('attaching never makes a lease shorter', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), jobs: false });
    const asked = { body: { actor: { type: 'human' } } };
    const first = await ensure(world.url(), 'thr_long', asked);
    const { sandbox_id: id } = first.json.binding;
    const longMs = Date.now() + 5_000_000;
    await world.db.run('UPDATE sandboxes SET lease_expires_at = ? WHERE id = ?', [longMs, id]);
    const attached = await ensure(world.url(), 'thr_long', asked);
    expect(Date.parse(attached.json.binding.lease_expires_at)).toBe(longMs);
    const beat = await ask(
      world.url(),
      'POST',
      `/v1/sandbox/sessions/${first.json.session_id}/heartbeat`,
    );
    expect(Date.parse(beat.json.lease_expires_at)).toBe(longMs);
    const shortMs = Date.now() + 1_000;
    await world.db.run('UPDATE sandboxes SET lease_expires_at = ? WHERE id = ?', [shortMs, id]);
    const lengthened = await ensure(world.url(), 'thr_long', asked);
    expect(Date.parse(lengthened.json.binding.lease_expires_at)).toBeGreaterThan(shortMs + 800_000);
  });

  it.concurrent('what a provider holds for this server and no session owns is destroyed; others are left', async () => {
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      config: { sweepSeconds: 0.5 },
    });
    const kept = await ensure(world.url(), 'thr_kept');
    const [own] = await world.provider.all();
    if (own === undefined) throw new Error('nothing was made');
    const { signal } = new AbortController();
    const spec = (id: string, labels: Readonly<Record<string, string>>) => ({
      id: id as typeof own.id,
      thread_id: kept.json.thread_id,
      environment: 'default-public' as const,
      env: {},
      limits: { memory_bytes: 0, pids: 0, disk_bytes: 0, shells: 1, commands: 1 },
      labels,
    });
    await world.provider.create(spec('sb_stray', own.labels), own.access, signal);
    const foreign = { 'ailsd.server': 'server_another' };
    await world.provider.create(spec('sb_foreign', foreign), own.access, signal);
    await eventually(
      async () => (await world.provider.look('sb_stray' as typeof own.id)) === undefined,
    );
    const left = (await world.provider.all()).map(({ id }) => String(id)).sort();
    expect(left).toEqual([String(own.id), 'sb_foreign'].sort());
  });
});

async function stateCount(db: Db, state: string): Promise<number> {
  return (await db.query('SELECT id FROM sandboxes WHERE state = ?', [state])).length;
}

/** When each was found idle, and when it slept, by the database's clock. */
async function idleTimes(db: Db): Promise<ReadonlyMap<string, readonly [number, number]>> {
  const times = new Map<string, [number, number]>();
  let after: number | undefined;
  do {
    const page = await new Audit(db).list({ event: 'sandbox.state' }, { limit: 1_000, after });
    for (const { sandboxId = '', atMs, details } of page.entries) {
      const known = times.get(sandboxId) ?? [0, Number.NaN];
      if (details?.['state'] === 'idle') known[0] = atMs;
      if (details?.['state'] === 'suspended') known[1] = atMs;
      times.set(sandboxId, known);
    }
    after = page.next;
  } while (after !== undefined);
  return times;
}

/** How often two of them looked over all sandboxes at the same time. */
function overlaps(runs: readonly Run[]): number {
  const spans = runs.flatMap(({ lines }) => {
    const begins = lines.flatMap((line) => /^begin (\d+)$/.exec(line)?.slice(1) ?? []).map(Number);
    const ends = lines.flatMap((line) => /^end (\d+)$/.exec(line)?.slice(1) ?? []).map(Number);
    return begins.map((begin, at) => [begin, ends[at] ?? begin] as const);
  });
  expect(spans.length).toBeGreaterThan(2);
  spans.sort(([a], [b]) => a - b);
  return spans.filter(([begin], at) => begin < (spans[at - 1]?.[1] ?? 0)).length;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(ms, 0)));
}
