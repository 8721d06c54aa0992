/** What clears away finds it by an index, however much there is that stays. */
import { expect, it } from 'vitest';
import { Attempts } from '../../../src/server/store/attempts.js';
import type { Db } from '../../../src/server/store/db.js';
import { Invites } from '../../../src/server/store/invites.js';
import { IssuedTokens } from '../../../src/server/store/issued-tokens.js';
import { OidcPayloads } from '../../../src/server/store/oidc-payloads.js';
import { Snapshots } from '../../../src/server/store/snapshots.js';
import { describeOnBoth } from './support/engines.js';
import { planOf, RecordingDb } from './support/plans.js';
import { openWorld } from './support/world.js';

const ROWS = 20_000;

describeOnBoth('sweeps', (engine) => {
  it('of attempts, payloads, invites, tokens and snapshots read no whole table', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: 0 });
    await seed(world.db);
    const db = new RecordingDb(world.db);
    await new Attempts(db).sweepExpired(100);
    await new OidcPayloads(db).sweepExpired(100, 1_000);
    await new Invites(db).sweepExpired(1_000, 100);
    await new IssuedTokens(db).sweepExpired(1_000, 100);
    await new Snapshots(db).listLeft(1_000, 100);
    expect(db.statements.size).toBe(5);
    for (const [sql, binds] of db.statements) {
      const plan = await planOf(world, sql, binds);
      expect(plan, sql).not.toMatch(WHOLE_TABLE);
      expect(plan, sql).toMatch(BY_INDEX);
    }
  });

  it('remove what is over and leave what is not', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: 0 });
    await seed(world.db, 10);
    const attempts = new Attempts(world.db);
    expect(await attempts.sweepExpired(100)).toBe(0);
    await world.db.run("UPDATE attempts SET ends_at = 5 WHERE bucket IN ('b1', 'b2', 'b3')");
    await world.db.run("UPDATE oidc_payloads SET expires_at = 5 WHERE id IN ('p1', 'p2', 'p3')");
    await world.db.run("UPDATE invites SET expires_at = 5 WHERE hash IN ('h1', 'h2', 'h3')");
    expect(await attempts.sweepExpired(2)).toBe(2);
    expect(await attempts.sweepExpired(2)).toBe(1);
    expect(await new OidcPayloads(world.db).sweepExpired(2, 1_000)).toBe(2);
    expect(await new OidcPayloads(world.db).sweepExpired(2, 1_000)).toBe(1);
    expect(await new Invites(world.db).sweepExpired(1_000, 2)).toBe(2);
    expect(await new Invites(world.db).sweepExpired(1_000, 2)).toBe(1);
    const names = 'SELECT bucket AS name FROM attempts UNION ALL SELECT hash FROM invites';
    expect(await world.db.query(names)).toHaveLength(14);
  });
});

const TABLES = 'attempts|oidc_payloads|invites|issued_tokens|snapshots|sessions|sandboxes';
const WHOLE_TABLE = new RegExp(`SCAN (?:${TABLES})\\b(?! USING)|Seq Scan on (?:${TABLES})\\b`);
/** By the time where one is compared; snapshots by the partial index of those that are there. */
const BY_INDEX =
  /(?:attempts_by_end|oidc_payloads_by_expiry|invites_by_expiry|issued_tokens_by_expiry|snapshots_there)\b/;

/** Nothing of it is over. */
async function seed(db: Db, rows = ROWS): Promise<void> {
  const numbers = `(WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT)
    UNION ALL SELECT i + 1 FROM n WHERE i < ${rows}) SELECT i FROM n) AS numbers`;
  const later = (await db.now()) + 9_000_000;
  await db.run(`INSERT INTO attempts (bucket, starts_at, ends_at, count)
    SELECT 'b' || i, 0, ${later} + i, 1 FROM ${numbers}`);
  await db.run(`INSERT INTO oidc_payloads (kind, id, payload, created_at, expires_at)
    SELECT 'AccessToken', 'p' || i, '{}', 0, ${later} + i FROM ${numbers}`);
  await db.run(
    `INSERT INTO invites (hash, expires_at) SELECT 'h' || i, ${later} + i FROM ${numbers}`,
  );
  await db.run(`INSERT INTO issued_tokens (jti, tenant, sandbox_id, session_id, subject, client_id, scope,
      key_generation, issued_at, expires_at)
    SELECT 'tok_' || i, 'default', 'sb_' || i, 'ssn_' || i, 'usr', 'c', 'fs:rw', 1, 0, ${later} + i FROM ${numbers}`);
  await db.run(`INSERT INTO sandboxes (id, tenant, owner, client_id, provider, environment, state, idle_timeout_ms,
      key_generation, access_generation, access_delivered, created_at, last_active_at, lease_expires_at, hard_expires_at)
    SELECT 'sb_' || i, 'default', 'usr', 'c', 'folder', 'default-public', 'active', 900000, 1, 1, 1, 0, 0, ${later},
      ${later} FROM ${numbers}`);
  await db.run(`INSERT INTO sessions (id, tenant, thread_id, scope_type, owner, sandbox_id, created_at)
    SELECT 'ssn_' || i, 'default', 'thr_' || i, 'thread', 'usr', 'sb_' || i, 0 FROM ${numbers}`);
  await db.run(`INSERT INTO snapshots (id, tenant, owner, session_id, sandbox_id, state, created_at)
    SELECT 'snap_' || i, 'default', 'usr', 'ssn_' || i, 'sb_' || i,
      CASE WHEN i % 100 = 0 THEN 'kept' ELSE 'removed' END, 0 FROM ${numbers}`);
  await db.run('ANALYZE');
}
