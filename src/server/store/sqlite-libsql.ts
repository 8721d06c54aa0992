/** The SQLite connection of the `libsql` package, for a Node that has none built in. */
import type Libsql from 'libsql';
import type { Bind, Row } from './db.js';
import { RecentMap } from './recent-map.js';
import { toRow } from './row.js';
import { MAX_PREPARED_STATEMENTS, type SqliteEngine, toSqliteBind } from './sqlite-engine.js';
import type { Statement } from './statement.js';

export async function openLibsqlEngine(path: string): Promise<SqliteEngine> {
  const { default: Database } = await import('libsql');
  return new LibsqlEngine(new Database(path));
}

class LibsqlEngine implements SqliteEngine {
  readonly library = 'libsql';
  readonly #database: Libsql.Database;
  readonly #prepared = new RecentMap<string, Libsql.Statement>(MAX_PREPARED_STATEMENTS);

  constructor(database: Libsql.Database) {
    this.#database = database;
  }

  all(statement: Statement, binds: readonly Bind[]): readonly Row[] {
    return this.#rows(this.#prepare(statement), binds);
  }

  run(statement: Statement, binds: readonly Bind[]): number {
    const prepared = this.#prepare(statement);
    // Its `run` leaves a statement with rows half done, and no transaction can commit after that.
    if (prepared.reader) {
      const rows = this.#rows(prepared, binds);
      return statement.kind === 'change' ? rows.length : 0;
    }
    // One array as the one argument: the library takes a lone Uint8Array for a list of values.
    const { changes } = prepared.run(binds.map(toSqliteBind));
    return statement.kind === 'change' ? changes : 0;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  #prepare(statement: Statement): Libsql.Statement {
    return this.#prepared.get(statement.sql, (sql) =>
      // Whole numbers come as bigint, so that `toRow` sees what would not fit a number.
      this.#database.prepare(sql).safeIntegers(true),
    );
  }

  #rows(prepared: Libsql.Statement, binds: readonly Bind[]): readonly Row[] {
    return prepared.all(binds.map(toSqliteBind)).map((raw) => toRow(Object(raw)));
  }
}
