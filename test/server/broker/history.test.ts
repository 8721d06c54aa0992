/** Random operations by several clients on several replicas that are killed all the time: nothing impossible is ever seen. */
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Audit } from '../../../src/server/store/audit.js';
import type { Db } from '../../../src/server/store/db.js';
import { bundleProgram, type Run } from '../store/support/program.js';
import { ask, ensure, type Reply, untilStarted } from './support/client.js';
import type { ReplicaArguments } from './support/crash-steps.js';
import { describeOnPostgres } from './support/engines.js';
import { anomalies, type Observed, seededRandom } from './support/history.js';
import { openWorld } from './support/world.js';

const IS_SOAK = process.env['AILSD_SOAK'] === '1';
const OPERATIONS = IS_SOAK ? 10_000 : 300;
const CLIENTS = 8;
const REPLICAS = 3;
const KILL_EVERY_MS = IS_SOAK ? 2_000 : 1_000;
const THREADS = 12;
const SESSIONS = '/v1/sandbox/sessions';

const program = await bundleProgram(join(import.meta.dirname, 'support', 'replica-program.ts'));

afterAll(() => program[Symbol.asyncDispose]());

describeOnPostgres('a history under kill -9', (engine) => {
  it(`${OPERATIONS} operations by ${CLIENTS} clients show no anomaly, and leave no orphan`, async () => {
    const seed = Number(process.env['AILSD_SEED'] ?? Date.now() % 1_000_000);
    const random = seededRandom(seed);
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: 0 });
    const given: ReplicaArguments = {
      storeUrl: world.storeUrl,
      cloudFolder: world.cloudFolder,
      config: { sweepSeconds: 2 },
      delayMs: [0, 30],
    };
    const runs: Run[] = [];
    const startIn = async (slot: number): Promise<void> => {
      const run = program.start(JSON.stringify(given));
      runs[slot] = run;
      await run.printed(1);
    };
    await Promise.all(Array.from({ length: REPLICAS }, (_, slot) => startIn(slot)));
    const history: Observed[] = [];
    const current = new Map<string, string>();
    let left = OPERATIONS;
    let kills = 0;
    const isOver = () => left <= 0;
    try {
      await Promise.all([killer(), ...Array.from({ length: CLIENTS }, client)]);
      const told = `seed ${seed}, ${kills} kills`;
      expect(kills, told).toBeGreaterThan(0);
      expect(anomalies(history), told).toEqual([]);
      expect(history.filter(({ status }) => status === 200).length).toBeGreaterThan(OPERATIONS / 2);

      // Every thread works, and what was acknowledged and never let go is still what it holds.
      for (let at = 0; at < THREADS; at++) {
        const thread = `thr_${at}`;
        const last = history
          .filter((one) => one.thread === thread && one.op === 'ensure' && one.status === 200)
          .sort((a, b) => a.beginMs - b.beginMs)
          .at(-1);
        const now = await untilStarted(() => ensure(urlOf(at), thread));
        expect(now.status, told).toBe(200);
        const isReleased = history.some(
          ({ op, session }) => op === 'release' && session === last?.session,
        );
        if (last !== undefined && !isReleased)
          expect(now.json.session_id, `${told} ${thread}`).toBe(last.session);
      }
      await world.settled(60_000);
      expect(await auditFaults(world.db, history), told).toEqual([]);
    } finally {
      for (const run of runs) run.process.kill('SIGKILL');
      await Promise.all(runs.map(({ ended }) => ended));
    }

    function urlOf(slot: number): string {
      return runs[slot % REPLICAS]?.lines[0] ?? 'http://127.0.0.1:9';
    }

    async function killer(): Promise<void> {
      while (!isOver()) {
        await new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS));
        if (isOver()) return;
        const slot = Math.floor(random() * REPLICAS);
        runs[slot]?.process.kill('SIGKILL');
        kills += 1;
        await runs[slot]?.ended;
        await startIn(slot);
      }
    }

    async function client(): Promise<void> {
      while (left-- > 0) {
        const thread = `thr_${Math.floor(random() * THREADS)}`;
        const session = current.get(thread);
        const draw = random();
        if (session === undefined || draw < 0.45) await negotiate(thread, 'ensure');
        else if (draw < 0.6) await negotiate(thread, 'get');
        else if (draw < 0.75) await onSession('heartbeat', thread, session);
        else if (draw < 0.88) await onSession('refresh', thread, session);
        else await onSession('release', thread, session);
      }
    }

    async function negotiate(thread: string, op: 'ensure' | 'get'): Promise<void> {
      const key = `key-${Math.floor(random() * 2 ** 40)}`;
      const headers = {
        Prefer: 'wait=5',
        ...(op === 'ensure' && random() < 0.5 && { 'Idempotency-Key': key }),
      };
      await observe({ thread, op }, (url) => ensure(url, thread, { headers, body: { mode: op } }));
    }

    async function onSession(
      op: 'heartbeat' | 'refresh' | 'release',
      thread: string,
      session: string,
    ): Promise<void> {
      const path = `${SESSIONS}/${session}`;
      await observe({ thread, op, session }, (url) =>
        op === 'release'
          ? ask(url, 'DELETE', path)
          : ask(url, 'POST', `${path}/${op}`, { body: {} }),
      );
    }

    /** Comes again elsewhere, as clients do, until there is an answer; each try is on record. */
    async function observe(
      about: Pick<Observed, 'thread' | 'op' | 'session'>,
      call: (url: string) => Promise<Reply>,
    ): Promise<void> {
      for (let tries = 0; tries < 20; tries++) {
        const beginMs = performance.now();
        const reply = await call(urlOf(Math.floor(random() * REPLICAS))).catch(() => undefined);
        const { status = 0, json } = reply ?? {};
        const observed = {
          ...about,
          beginMs,
          endMs: performance.now(),
          status,
          session: about.session ?? json?.session_id,
          sandbox: json?.sandbox?.id,
        };
        history.push(observed);
        if (status === 200 && json?.session_id) current.set(about.thread, json.session_id);
        if (status === 204) current.delete(about.thread);
        if (status === 404 && current.get(about.thread) === about.session)
          current.delete(about.thread);
        if (status !== 0 && status !== 423 && status !== 503) return;
        await new Promise((resolve) => setTimeout(resolve, 50 + random() * 100));
      }
    }
  });
});

/** Of each session that anybody saw there is one record of its making, and one of its release at most. */
async function auditFaults(db: Db, history: readonly Observed[]): Promise<readonly string[]> {
  const counts = new Map<string, number>();
  let after: number | undefined;
  do {
    const page = await new Audit(db).list({}, { limit: 1_000, after });
    for (const { event, sessionId } of page.entries) {
      const key = `${event} ${sessionId}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    after = page.next;
  } while (after !== undefined);
  const faults: string[] = [];
  const seen = new Set(history.flatMap(({ session }) => session ?? []));
  for (const session of seen) {
    if (counts.get(`session.created ${session}`) !== 1) faults.push(`${session}: created`);
    const released = history.some((one) => one.session === session && one.status === 204);
    const records = counts.get(`session.released ${session}`) ?? 0;
    if (records > 1 || (released && records !== 1)) faults.push(`${session}: released ${records}`);
  }
  return faults;
}
