/** The SQLite connection built into Node from 22.13 on. Described here as far as it is used: the types are of an older Node. */
import type { Bind, Row } from './db.js';
import { RecentMap } from './recent-map.js';
import { toRow } from './row.js';
import { MAX_PREPARED_STATEMENTS, type SqliteEngine, toSqliteBind } from './sqlite-engine.js';
import type { Statement } from './statement.js';

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase;
}

interface NodeDatabase {
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
  /** Not yet there in the first versions. */
  readonly isTransaction?: boolean;
}

interface NodeStatement {
  all(...binds: readonly Bind[]): readonly object[];
  run(...binds: readonly Bind[]): { readonly changes: number | bigint };
  setReadBigInts(enabled: boolean): void;
}

export function findNodeSqlite(): NodeSqlite | undefined {
  const found = withoutExperimentalWarning(() => process.getBuiltinModule('node:sqlite'));
  return isNodeSqlite(found) ? found : undefined;
}

export function openNodeEngine(library: NodeSqlite, path: string): SqliteEngine {
  return new NodeEngine(new library.DatabaseSync(path));
}

class NodeEngine implements SqliteEngine {
  readonly library = 'node:sqlite';
  readonly #database: NodeDatabase;
  readonly #prepared = new RecentMap<string, NodeStatement>(MAX_PREPARED_STATEMENTS);

  constructor(database: NodeDatabase) {
    this.#database = database;
  }

  all(statement: Statement, binds: readonly Bind[]): readonly Row[] {
    return this.#prepare(statement)
      .all(...binds.map(toSqliteBind))
      .map(toRow);
  }

  run(statement: Statement, binds: readonly Bind[]): number {
    const { changes } = this.#prepare(statement).run(...binds.map(toSqliteBind));
    // For a definition SQLite tells the changes of the statement before.
    return statement.kind === 'change' ? Number(changes) : 0;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction ?? this.#probeTransaction();
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  #prepare(statement: Statement): NodeStatement {
    return this.#prepared.get(statement.sql, (sql) => {
      const prepared = this.#database.prepare(sql);
      prepared.setReadBigInts(true);
      return prepared;
    });
  }

  /** A second BEGIN is refused inside a transaction and only there. */
  #probeTransaction(): boolean {
    try {
      this.#database.exec('BEGIN');
    } catch {
      return true;
    }
    this.#database.exec('ROLLBACK');
    return false;
  }
}

function isNodeSqlite(found: object | undefined): found is NodeSqlite {
  return found !== undefined && 'DatabaseSync' in found;
}

/** Node warns on standard error at the first use, whoever asks; what a user could do about it is nothing. */
function withoutExperimentalWarning<T>(load: () => T): T {
  const emitWarning = process.emitWarning;
  process.emitWarning = () => undefined;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
