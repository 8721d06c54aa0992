/** Several processes on one store: nothing is counted twice or lost, also when one of them is killed at any instruction. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/server/store/open-store.js';
import { startPostgres } from '../../support/postgres.js';
import { bundleProgram, here, type Program } from './support/program.js';

const soak = process.env['AILSD_SOAK'] === '1';
const postgres = await startPostgres();
const folder = await mkdtemp(join(tmpdir(), 'ailsd-processes-'));
let writer: Program;

beforeAll(async () => {
  writer = await bundleProgram(join(here, 'writer.ts'));
});

afterAll(async () => {
  await writer[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
  if (postgres.kind === 'started') await postgres.server[Symbol.asyncDispose]();
});

const places = [{ name: 'SQLite', url: async () => `sqlite:${join(folder, 'shared.db')}` }];
if (postgres.kind === 'started') {
  const { server } = postgres;
  places.push({ name: 'PostgreSQL', url: () => server.createDatabase() });
} else describe.skip('PostgreSQL', () => it(postgres.reason, () => undefined));

describe.each(places)('processes on $name', ({ url: place }) => {
  it('three that write at once, by statement and by transaction, count exactly', async () => {
    const url = await place();
    await using db = await openStore(url);
    await db.run('CREATE TABLE counters (name TEXT PRIMARY KEY, n BIGINT NOT NULL)');
    await db.run("INSERT INTO counters (name, n) VALUES ('shared', 0)");
    const runs = Array.from({ length: 3 }, () => writer.start('count', url, '100'));
    expect(await Promise.all(runs.map(({ ended }) => ended))).toEqual(['0', '0', '0']);
    expect(await db.query('SELECT n FROM counters')).toEqual([{ n: 300 }]);
  });
});

describe('a SQLite writer that is killed', () => {
  const seed = Number(process.env['AILSD_SEED'] ?? Date.now() % 100_000);

  it(`loses no row it was told of and leaves no half of a transaction (seed ${seed})`, async () => {
    const url = `sqlite:${join(folder, 'killed.db')}`;
    await using db = await openStore(url);
    await db.run('CREATE TABLE rows (name TEXT PRIMARY KEY)');
    const acknowledged: string[] = [];
    for (let round = 0; round < (soak ? 60 : 6); round++) {
      const run = writer.start('append', url, `r${round}`);
      await run.printed(1 + ((seed * (round + 7)) % 400));
      run.process.kill('SIGKILL');
      expect(await run.ended).toBe('SIGKILL');
      acknowledged.push(...run.lines);
    }
    const rows = await db.query('SELECT name FROM rows');
    const kept = new Set(rows.map((row) => row['name']));
    expect(acknowledged.length).toBeGreaterThan(6);
    expect(acknowledged.filter((name) => !kept.has(name))).toEqual([]);
    const firsts = [...kept].filter((name) => /-\d*[02468]$/.test(String(name)));
    expect(firsts.filter((name) => !kept.has(`${name}-twin`))).toEqual([]);
    expect(await db.query('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  });
});
