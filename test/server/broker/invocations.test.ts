/** Exactly one row for every call, whatever becomes of it and of whoever works on it. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { newSeed, seededRandom } from '../../support/random.js';
import { bundleProgram } from '../store/support/program.js';
import { ask, type Reply, untilStarted } from './support/client.js';
import { describeOnPostgres } from './support/engines.js';
import { openScriptedExec } from './support/scripted-exec.js';
import { openWorld } from './support/world.js';

const IS_SOAK = process.env['AILSD_SOAK'] === '1';
const CALLS = IS_SOAK ? 1_000 : 120;
const KILLS = IS_SOAK ? 200 : 5;
const CALLS_A_KILL = 5;

const program = await bundleProgram(
  join(import.meta.dirname, 'support', 'code-replica-program.ts'),
);

afterAll(() => program[Symbol.asyncDispose]());

const ADMIN = { sub: 'svc_admin', scopes: ['admin:sandbox'] as const };

/** How the sandbox is told to end it, and what the row must say. */
const ENDS = { ok: 'ok', error: 'error', timeout: 'timeout', oom: 'oom', die: 'error' } as const;
const KINDS = ['ok', 'error', 'timeout', 'oom', 'die'] as const;

describeOnPostgres('calls of every ending', (engine) => {
  it(proves('leave one row each, also when their replica is killed', 'QU-03'), {
    timeout: IS_SOAK ? 1_800_000 : 120_000,
  }, async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    await using exec = await openScriptedExec();
    await using world = await openWorld({
      storeUrl: await engine.storeUrl(),
      plan: { endpoints: exec.endpoints },
    });
    const { db } = world;
    for (const [path, body] of [
      ['/admin/tenants/capped', { sandbox_enabled: true }],
      ['/admin/quotas', { tenant: 'capped', tenant_daily: 0 }],
      ['/admin/quotas', { tenant: 'default', tenant_daily: 1e6, agent_hourly: 1e6 }],
    ] as const)
      expect((await ask(world.url(), 'PATCH', path, { as: ADMIN, body })).status).toBe(200);

    const expected = new Map<string, string>();
    const known = new Set<string>();
    const call = (url: string, code: string, tenant = 'default') =>
      untilStarted(() =>
        ask(url, 'POST', '/v1/code/execute', {
          as: { sub: 'usr_alice', tenant },
          body: { thread_id: 'thr_calls', turn_id: 'one', language: 'bash', code },
        }),
      );
    const rowsOf = () => db.query('SELECT * FROM sandbox_invocations');

    // Every ending that leaves the broker alive.
    const answered = async (code: string, status: string, tenant?: string) => {
      expected.set(hashOf(code), status);
      const { json }: Reply = await call(world.url(), code, tenant);
      expect(json.exit_status, `${code}, seed ${seed}: ${JSON.stringify(json)}`).toBe(status);
    };
    for (let at = 0; at < CALLS; at += 10) {
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => {
          const serial = at + index;
          if (serial % 12 === 10) return answered(`ok ${serial}`, 'cap_exceeded', 'capped');
          if (serial % 12 === 11) return answered(`ok ${serial}`, 'provisioning', 'unknown');
          const kind = KINDS[Math.floor(random() * KINDS.length)] ?? 'ok';
          return answered(`${kind} ${serial}`, ENDS[kind]);
        }),
      );
    }
    // The caller leaves while it runs.
    const gone = 'hang for ever';
    expected.set(hashOf(gone), 'error');
    const leaving = new AbortController();
    exec.onHang = () => leaving.abort();
    await fetch(`${world.url()}/v1/code/execute`, {
      method: 'POST',
      signal: leaving.signal,
      headers: {
        authorization: `Bearer ${btoa('{"sub":"usr_alice"}')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        thread_id: 'thr_calls',
        turn_id: 'one',
        language: 'bash',
        code: gone,
      }),
    }).catch(() => undefined);

    // Replicas that are killed at any moment.
    for (let kill = 0; kill < KILLS; kill++) {
      const { storeUrl, cloudFolder } = world;
      const { endpoints } = exec;
      const victim = program.start(JSON.stringify({ storeUrl, cloudFolder, endpoints }));
      await victim.printed(1);
      const url = victim.lines[0] ?? '';
      const calls = Array.from({ length: CALLS_A_KILL }, async (_, index) => {
        const code = `ok killed ${kill} ${index}`;
        known.add(hashOf(code));
        const reply = await call(url, code).catch(() => undefined);
        if (reply?.json?.exit_status === 'ok') expected.set(hashOf(code), 'ok');
      });
      const timer = setTimeout(() => victim.process.kill('SIGKILL'), random() * 400);
      await Promise.all(calls);
      clearTimeout(timer);
      victim.process.kill('SIGKILL');
      await victim.ended;
    }

    // What was cut is recorded by whoever lives on.
    const deadline = performance.now() + 60_000;
    for (;;) {
      const open = await db.query('SELECT id FROM code_calls');
      if (open.length === 0) break;
      if (performance.now() > deadline) throw new Error(`${open.length} calls are left over`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const rows = await rowsOf();
    const byHash = new Map<string, number>();
    for (const { executed_code_hash: hash, exit_status: status, ...row } of rows) {
      const key = String(hash);
      byHash.set(key, (byHash.get(key) ?? 0) + 1);
      const wanted = expected.get(key);
      if (wanted !== undefined) expect(status, `seed ${seed}`).toBe(wanted);
      else expect([known.has(key), status === 'error' || status === 'ok']).toEqual([true, true]);
      if (status === 'ok') expect(Number(row['stdout_bytes'])).toBeGreaterThan(0);
    }
    expect([...byHash.values()].every((count) => count === 1)).toBe(true);
    for (const hash of expected.keys()) expect(byHash.get(hash), `seed ${seed}`).toBe(1);
    // Whatever reached the sandbox has its row.
    for (const code of exec.codes) expect(byHash.get(hashOf(code)), code).toBe(1);
    const turns = await db.query('SELECT open_calls FROM code_turns WHERE open_calls <> 0');
    expect(turns).toEqual([]);
  });
});

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}
