/** The contract of the store, on every engine this machine has. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { silentLogger } from '../../src/base/logger.js';
import { openPostgres } from '../../src/server/store/postgres.js';
import { openSqlite } from '../../src/server/store/sqlite.js';
import type { SqliteLibrary } from '../../src/server/store/sqlite-engine.js';
import { prepareSqliteFile } from '../../src/server/store/sqlite-file.js';
import { findNodeSqlite } from '../../src/server/store/sqlite-node.js';
import { type PostgresServer, startPostgres } from '../support/postgres.js';
import { describeStore, type StoreKind } from './store.js';
import { describeMigrations } from './store-migrations.js';
import { describeRepositories } from './store-repositories.js';

const postgres = await startPostgres();

afterAll(async () => {
  if (postgres.kind === 'started') await postgres.server[Symbol.asyncDispose]();
});

const kinds: StoreKind[] = [sqliteKind('libsql')];
if (findNodeSqlite() !== undefined) kinds.push(sqliteKind('node:sqlite'));
else
  describe.skip('a store on node:sqlite', () => it('skipped: not in this Node', () => undefined));
if (postgres.kind === 'started') kinds.push(postgresKind(postgres.server));
else describe.skip('a store on PostgreSQL', () => it(postgres.reason, () => undefined));

for (const kind of kinds) {
  describeStore(kind);
  describeMigrations(kind);
  describeRepositories(kind);
}

function sqliteKind(library: SqliteLibrary): StoreKind {
  return {
    name: library,
    async create() {
      const folder = await mkdtemp(join(tmpdir(), 'ailsd-store-'));
      const file = await prepareSqliteFile(join(folder, 'store.db'), silentLogger);
      return {
        open: () => openSqlite(file, { library }),
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      };
    },
  };
}

function postgresKind(server: PostgresServer): StoreKind {
  return {
    name: 'PostgreSQL',
    async create() {
      const url = await server.createDatabase();
      return { open: () => openPostgres(url), [Symbol.asyncDispose]: async () => undefined };
    },
  };
}
