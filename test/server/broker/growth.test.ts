/** What a call costs does not grow with what is in the store: every statement goes by an index. */
import { expect, it } from 'vitest';
import type { Db } from '../../../src/server/store/db.js';
import { FolderProvider } from '../../support/folder-provider.js';
import { ask, ensure } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { planOf, RecordingDb } from './support/plans.js';
import { openReplica } from './support/replica.js';
import { openWorld } from './support/world.js';

const IS_SOAK = process.env['AILSD_SOAK'] === '1';
const MANY = 100_000;
const SESSIONS = '/v1/sandbox/sessions';

describeOnBoth('a store that grows', (engine) => {
  it('is asked by index alone: no statement of a session’s life reads a whole table', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), jobs: false });
    await seed(world.db, 0, 20_000);
    const db = new RecordingDb(world.db);
    const provider = new FolderProvider(world.cloudFolder);
    await using replica = await openReplica({ db, provider, config: { sweepSeconds: 0.1 } });
    const headers = { 'Idempotency-Key': 'k', Prefer: 'wait=5' };
    const made = await ensure(replica.url, 'thr_g', { headers });
    const path = `${SESSIONS}/${made.json.session_id}`;
    await ensure(replica.url, 'thr_g', { body: { sandbox_hint: 'sb_1' } });
    await ask(replica.url, 'POST', `${path}/heartbeat`);
    await ask(replica.url, 'POST', `${path}/refresh`, { body: {} });
    await ask(replica.url, 'GET', `${SESSIONS}?limit=50`);
    await ask(replica.url, 'GET', `/v1/sandboxes/${made.json.sandbox.id}/why`);
    await ask(replica.url, 'DELETE', path);
    // A sweep asks for orphans at its end.
    while (!provider.calls.includes('list')) await new Promise((go) => setTimeout(go, 10));
    const plans: string[] = [];
    for (const [sql, binds] of db.statements) {
      const plan = await planOf(world, sql, binds);
      if (WHOLE_TABLE.test(plan)) plans.push(`${sql.replace(/\s+/g, ' ')}\n  ${plan}`);
    }
    expect(db.statements.size).toBeGreaterThan(25);
    expect(plans).toEqual([]);
  });

  it.runIf(IS_SOAK)('ensure and list pages take the same time with 600 and 100,000', async () => {
    await using small = await openWorld({ storeUrl: await engine.storeUrl(), jobs: false });
    await using large = await openWorld({ storeUrl: await engine.storeUrl(), jobs: false });
    // The caller's own fill a page in both.
    await seed(small.db, 0, 600);
    await seed(large.db, 0, MANY);
    const urls = [small.url(), large.url()];
    for (const url of urls) expect((await ensure(url, 'thr_m')).status).toBe(200);
    const [fewMs, manyMs] = await medians(urls, 1_000, (url) => ensure(url, 'thr_m'));
    const list = `${SESSIONS}?limit=50`;
    const [fewListMs, manyListMs] = await medians(urls, 500, (url) => ask(url, 'GET', list));
    const told = JSON.stringify({ engine: engine.name, fewMs, manyMs, fewListMs, manyListMs });
    process.stderr.write(`${told}\n`);
    expect((manyMs ?? 0) / (fewMs ?? 0), told).toBeLessThan(1.2);
    expect((manyListMs ?? 0) / (fewListMs ?? 0), told).toBeLessThan(1.2);
  });
});

/** By turns, so that whatever else this machine does slows each of them as much. */
async function medians(
  urls: readonly string[],
  times: number,
  call: (url: string) => Promise<unknown>,
): Promise<readonly number[]> {
  const took = urls.map((): number[] => []);
  for (let at = 0; at < times; at++) {
    for (const [which, url] of urls.entries()) {
      const begin = performance.now();
      await call(url);
      took[which]?.push(performance.now() - begin);
    }
  }
  return took.map((one) => one.sort((a, b) => a - b)[Math.floor(times / 2)] ?? Number.NaN);
}

const SEQUENTIAL = 'sessions|sandboxes|issued_tokens|idempotency|audit|grants';
/** SQLite says SCAN and no index; PostgreSQL says Seq Scan. */
const WHOLE_TABLE = new RegExp(
  `SCAN (?:${SEQUENTIAL}|b)\\b(?! USING)|(?:Seq Scan on (?:${SEQUENTIAL})\\b|Index Scan using \\w+ on (?:sandboxes|idempotency)\\b[^|]*\\|\\s+Filter)`,
);

/** Sessions of everybody's, the asking caller's among them; some asleep, some ended long ago. */
async function seed(db: Db, from: number, to: number): Promise<void> {
  const numbers = `(WITH RECURSIVE n(i) AS (SELECT CAST(${from + 1} AS BIGINT)
    UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i FROM n) AS numbers`;
  const nowMs = await db.now();
  const owner = "CASE WHEN i % 10 = 3 THEN 'usr_alice' ELSE 'usr_' || (i % 1000) END";
  const ended = `CASE WHEN i % 5 = 0 THEN ${nowMs} END`;
  await db.run(`INSERT INTO sandboxes (id, tenant, owner, client_id, provider, environment, state, http_url, ws_url,
      idle_timeout_ms, key_generation, access_generation, access_delivered, created_at, last_active_at,
      lease_expires_at, hard_expires_at, ended_at, destroyed_at)
    SELECT 'sb_' || i, 'default', ${owner}, 'c', 'folder', 'default-public',
      CASE WHEN i % 5 = 0 THEN 'terminated' WHEN i % 5 = 1 THEN 'suspended' ELSE 'active' END,
      'http://127.0.0.1:9/s/' || i, 'ws://127.0.0.1:9/s/' || i, 900000, 1, 1, 1, ${nowMs}, ${nowMs},
      CASE WHEN i % 5 = 1 THEN ${nowMs} - 1000 ELSE ${nowMs} + 8000000 END, ${nowMs} + 9000000,
      ${ended}, ${ended} FROM ${numbers}`);
  await db.run(`INSERT INTO sessions (id, tenant, thread_id, scope_type, owner, sandbox_id, created_at, ended_at, end_reason)
    SELECT 'ssn_' || i, 'default', 'thr_' || i, 'thread', ${owner}, 'sb_' || i, ${nowMs}, ${ended},
      CASE WHEN i % 5 = 0 THEN 'released' END FROM ${numbers}`);
  await db.run(`INSERT INTO issued_tokens (jti, tenant, sandbox_id, session_id, subject, client_id, scope, key_generation,
      issued_at, expires_at)
    SELECT 'tok_' || i, 'default', 'sb_' || i, 'ssn_' || i, ${owner}, 'c', 'fs:rw', 1, ${nowMs}, ${nowMs} + 900000
    FROM ${numbers}`);
  await db.run(`INSERT INTO audit (at, event, tenant, details)
    SELECT ${nowMs}, 'test.seed', 'default', '{}' FROM ${numbers}`);
  await db.run(`INSERT INTO idempotency (caller, route, idempotency_key, request_hash, session_id, created_at, expires_at)
    SELECT 'c' || i, 'r', 'k', 'h', 'ssn_' || i, ${nowMs}, ${nowMs} + 86400000 FROM ${numbers}`);
  await db.run(`INSERT INTO grants (id, session_id, tenant, grantee_type, grantee_id, capabilities, created_at, created_by)
    SELECT 'grant_' || i, 'ssn_' || i, 'default', 'user', 'usr_' || (i % 1000), 'fs:ro', ${nowMs}, 'usr_x' FROM ${numbers}`);
  await db.run('ANALYZE');
}
