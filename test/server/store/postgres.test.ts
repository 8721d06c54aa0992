/** What is PostgreSQL's alone: connections that are lost, refused or used up, and transactions that lose against others. */
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { createLogger } from '../../../src/base/logger.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { openPostgres } from '../../../src/server/store/postgres.js';
import { startPostgres } from '../../support/postgres.js';

const postgres = await startPostgres();
const server = postgres.kind === 'started' ? postgres.server : undefined;

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

if (postgres.kind === 'skipped') it.skip(postgres.reason, () => undefined);

describe.skipIf(server === undefined)('PostgreSQL', () => {
  const createDatabase = async () => (await server?.createDatabase()) ?? '';
  const endOthers = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`;

  it('a connection that is cut gives BACKEND_UNAVAILABLE to who uses it, and the next call works', async () => {
    const url = await createDatabase();
    const lines: string[] = [];
    const logger = createLogger({
      write: (line) => lines.push(line),
      clock: systemClock,
      level: 'warn',
    });
    await using db = await openStore(url, { logger });
    await using admin = await openPostgres(url);
    await db.run('CREATE TABLE t (n BIGINT)');
    for (let round = 0; round < 5; round++) {
      const sleeping = db.query('SELECT pg_sleep(30) AS slept').catch((error: unknown) => error);
      const writing = db
        .transaction(async (tx) => {
          await tx.run('INSERT INTO t (n) VALUES (1)');
          await tx.query('SELECT pg_sleep(30) AS slept');
        })
        .catch((error: unknown) => error);
      const asleep = `SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'PgSleep'`;
      while ((await admin.query(asleep)).length < 2);
      await admin.query(endOthers);
      for (const outcome of [await sleeping, await writing]) {
        expect(outcome).toMatchObject({ code: 'BACKEND_UNAVAILABLE', row: { retryable: true } });
      }
      expect(await db.query('SELECT COUNT(*) AS n FROM t')).toEqual([{ n: 0 }]);
    }
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join('')).not.toContain(new URL(url).password);
  });

  it('connections that are cut while nobody uses them are replaced', async () => {
    const url = await createDatabase();
    await using db = await openPostgres(url);
    await using admin = await openPostgres(url);
    await Promise.all(Array.from({ length: 10 }, () => db.query('SELECT pg_sleep(0.02) AS n')));
    await admin.query(endOthers);
    const others = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    while ((await admin.query(others)).length > 0);
    const settled = await Promise.allSettled(
      Array.from({ length: 50 }, () => db.query('SELECT 1 AS n')),
    );
    for (const outcome of settled) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    }
    expect(await db.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it('a server that is not there is BACKEND_UNAVAILABLE, one that refuses us CONFIG_INVALID; neither tells the password', async () => {
    const url = new URL(await createDatabase());
    const nobody = new URL(url);
    nobody.port = '1';
    const stranger = new URL(url);
    stranger.password = 'hunter2';
    const elsewhere = new URL(url);
    elsewhere.pathname = '/nowhere';
    for (const [tried, code] of [
      [nobody.href, 'BACKEND_UNAVAILABLE'],
      [stranger.href, 'CONFIG_INVALID'],
      [elsewhere.href, 'CONFIG_INVALID'],
      ['postgres://u:hunter2@[bad/x', 'CONFIG_INVALID'],
    ] as const) {
      const error = await openStore(tried).catch((refused: unknown) => refused);
      expect(error).toMatchObject({ code });
      const lines: string[] = [];
      createLogger({ write: (line) => lines.push(line), clock: systemClock, level: 'debug' }).error(
        'x',
        { error },
      );
      expect(lines.join('')).not.toContain('hunter2');
      expect(lines.join('')).not.toContain(url.password);
    }
  });

  it('a statement that takes too long is ended, and its connection stays good', async () => {
    await using db = await openPostgres(await createDatabase(), { maxConnections: 1 });
    const slow = db.transaction(async (tx) => {
      await tx.run('SET LOCAL statement_timeout = 50');
      await tx.query('SELECT pg_sleep(30) AS slept');
    });
    await expect(slow).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(await db.query('SHOW statement_timeout')).toEqual([{ statement_timeout: '4s' }]);
  });

  it('no more connections than allowed are opened, and who waits is served', async () => {
    await using db = await openPostgres(await createDatabase(), { maxConnections: 3 });
    const counts = await Promise.all(
      Array.from({ length: 60 }, () =>
        db.query('SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database()'),
      ),
    );
    expect(Math.max(...counts.map(([row]) => Number(row?.['n'])))).toBeLessThanOrEqual(3);
  });

  it('of two transactions that would each wait for the other one is begun again, and both are done', async () => {
    await using db = await openPostgres(await createDatabase());
    await db.run('CREATE TABLE t (name TEXT PRIMARY KEY, n BIGINT)');
    await db.run("INSERT INTO t (name, n) VALUES ('a', 0), ('b', 0)");
    let begun = 0;
    let meet: () => void = () => undefined;
    const met = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const cross = (first: string, second: string) =>
      db.transaction(async (tx) => {
        await tx.run('UPDATE t SET n = n + 1 WHERE name = ?', [first]);
        begun += 1;
        if (begun >= 2) meet();
        await met;
        await tx.run('UPDATE t SET n = n + 1 WHERE name = ?', [second]);
      });
    await Promise.all([cross('a', 'b'), cross('b', 'a')]);
    expect(begun).toBeGreaterThan(2);
    expect(await db.query('SELECT n FROM t')).toEqual([{ n: 2 }, { n: 2 }]);
  });

  it('two that each look at what the other changes can not both be right: write skew is impossible', async () => {
    await using db = await openPostgres(await createDatabase());
    await db.run('CREATE TABLE oncall (name TEXT PRIMARY KEY, present BIGINT)');
    for (let round = 0; round < 10; round++) {
      await db.run('DELETE FROM oncall');
      await db.run("INSERT INTO oncall (name, present) VALUES ('a', 1), ('b', 1)");
      const leave = (name: string) =>
        db.transaction(async (tx) => {
          const [row] = await tx.query('SELECT SUM(present) AS n FROM oncall');
          if (Number(row?.['n']) < 2) return;
          await tx.run('UPDATE oncall SET present = 0 WHERE name = ?', [name]);
        });
      await Promise.all([leave('a'), leave('b')]);
      expect(await db.query('SELECT SUM(present) AS n FROM oncall')).toEqual([{ n: 1 }]);
    }
  });
});
