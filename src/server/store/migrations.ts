/** Brings a database's tables to what this program knows: each migration once, all or none, whoever else starts meanwhile. */
import { AilsdError } from '../../protocol/errors.js';
import type { Db } from './db.js';
import type { Migration } from './migration.js';
import { issuerTables } from './migrations/0001-issuer.js';
import { endedLogins } from './migrations/0002-ended-logins.js';
import { brokerTables } from './migrations/0003-broker.js';
import { codeTables } from './migrations/0004-code.js';
import { textOf } from './row.js';

/** In the order they are applied. A new one goes to the end. */
export const MIGRATIONS: readonly Migration[] = [
  issuerTables,
  endedLogins,
  brokerTables,
  codeTables,
];

/** Applies what is missing and gives its names. */
export function migrate(
  db: Db,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  return db.transaction(async (tx) => {
    await takeTurns(tx);
    await tx.run(`CREATE TABLE IF NOT EXISTS schema_migrations (
      position INTEGER NOT NULL PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      applied_at BIGINT NOT NULL
    )`);
    const pending = missing(await appliedNames(tx), migrations);
    const nowMs = await tx.now();
    for (const { position, migration } of pending) {
      for (const statement of migration.statements(tx.engine)) await tx.run(statement);
      await tx.run('INSERT INTO schema_migrations (position, name, applied_at) VALUES (?, ?, ?)', [
        position,
        migration.name,
        nowMs,
      ]);
    }
    return pending.map(({ migration }) => migration.name);
  });
}

/** What `migrate` would apply. Writes nothing. */
export async function pendingMigrations(
  db: Db,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  const [table] = await db.query(FIND_TABLE_SQL[db.engine]);
  const applied = table === undefined ? [] : await appliedNames(db);
  return missing(applied, migrations).map(({ migration }) => migration.name);
}

/** SQLite has one writer anyway. PostgreSQL would let several look, and all find the tables missing. */
async function takeTurns(tx: Db): Promise<void> {
  if (tx.engine === 'sqlite') return;
  // The wait for one's turn would otherwise fix the view of the tables at what they were before it.
  await tx.run('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await tx.query('SELECT pg_advisory_xact_lock(?)', [MIGRATION_LOCK]);
}

/** Any number, the same in every version of this program. */
const MIGRATION_LOCK = 4_815_162_342;

const FIND_TABLE_SQL = {
  sqlite: "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'",
  postgres: `SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_name = 'schema_migrations'`,
} as const;

async function appliedNames(db: Db): Promise<readonly string[]> {
  const rows = await db.query('SELECT name FROM schema_migrations ORDER BY position');
  return rows.map((row) => textOf(row, 'name'));
}

/** What was applied must be how this program's list begins; anything else was made by another program. */
function missing(
  applied: readonly string[],
  migrations: readonly Migration[],
): readonly { readonly position: number; readonly migration: Migration }[] {
  applied.forEach((name, index) => {
    if (migrations[index]?.name === name) return;
    throw new AilsdError('CONFIG_INVALID', 'the database was made by a newer version of ailsd', {
      details: { migration: name },
      hint: 'start the newer version, or name another database',
    });
  });
  return migrations
    .map((migration, index) => ({ position: index + 1, migration }))
    .slice(applied.length);
}
