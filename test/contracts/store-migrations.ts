/** What every engine promises about its tables: made once, all or none, and never touched by an older program. */
import { describe, expect, it } from 'vitest';
import type { Migration } from '../../src/server/store/migration.js';
import { MIGRATIONS, migrate, pendingMigrations } from '../../src/server/store/migrations.js';
import type { StoreKind } from './store.js';

export function describeMigrations(kind: StoreKind): void {
  describe(`migrations on ${kind.name}`, () => {
    const names = MIGRATIONS.map(({ name }) => name);

    it('five replicas that start at once apply each migration once', async () => {
      await using place = await kind.create();
      for (let round = 0; round < 3; round++) {
        const dbs = await Promise.all(Array.from({ length: 5 }, () => place.open()));
        try {
          const applied = await Promise.all(dbs.map((db) => migrate(db)));
          expect(applied.flat()).toEqual(round === 0 ? names : []);
        } finally {
          for (const db of dbs) await db[Symbol.asyncDispose]();
        }
      }
    });

    it('what is pending is told without changing anything', async () => {
      await using place = await kind.create();
      await using db = await place.open();
      expect(await pendingMigrations(db)).toEqual(names);
      expect(await pendingMigrations(db)).toEqual(names);
      expect(await migrate(db)).toEqual(names);
      expect(await pendingMigrations(db)).toEqual([]);
    });

    it('later migrations are added to earlier ones', async () => {
      await using place = await kind.create();
      await using db = await place.open();
      await migrate(db, [first]);
      expect(await pendingMigrations(db, [first, second])).toEqual(['second']);
      expect(await migrate(db, [first, second])).toEqual(['second']);
      await db.run('INSERT INTO made (n, m) VALUES (1, 2)');
    });

    it('a migration that fails leaves nothing of itself or of those with it', async () => {
      await using place = await kind.create();
      await using db = await place.open();
      await expect(migrate(db, [first, broken])).rejects.toMatchObject({ code: 'INTERNAL' });
      expect(await pendingMigrations(db, [first])).toEqual(['first']);
      expect(await migrate(db, [first])).toEqual(['first']);
    });

    it('a database newer than the program is refused and left alone', async () => {
      await using place = await kind.create();
      await using db = await place.open();
      await migrate(db, [first, second]);
      for (const known of [[first], [second], [second, first], []]) {
        const refusal = { code: 'CONFIG_INVALID', message: expect.stringContaining('newer') };
        await expect(migrate(db, known)).rejects.toMatchObject(refusal);
        await expect(pendingMigrations(db, known)).rejects.toMatchObject(refusal);
      }
      expect(await pendingMigrations(db, [first, second])).toEqual([]);
    });
  });
}

const first: Migration = { name: 'first', statements: () => ['CREATE TABLE made (n BIGINT)'] };
const second: Migration = {
  name: 'second',
  statements: () => ['ALTER TABLE made ADD COLUMN m BIGINT'],
};
const broken: Migration = {
  name: 'broken',
  statements: () => ['CREATE TABLE half (n BIGINT)', 'CREATE TABLE half (n BIGINT)'],
};
