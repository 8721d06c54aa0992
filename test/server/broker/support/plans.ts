/** Which statements are sent to a store, and whether each goes by an index. */
import Database from 'libsql';
import type { Bind, Db, Row } from '../../../../src/server/store/db.js';
import type { World } from './world.js';

/** How the database would go about a statement. */
export async function planOf(
  { db, storeUrl }: Pick<World, 'db' | 'storeUrl'>,
  sql: string,
  binds: readonly Bind[],
): Promise<string> {
  if (!/^\s*(SELECT|UPDATE|DELETE|INSERT)/.test(sql)) return '';
  if (db.engine === 'postgres') {
    const rows = await db.query(`EXPLAIN ${sql}`, binds);
    return rows.map((row) => String(row['QUERY PLAN'])).join(' | ');
  }
  const file = new Database(storeUrl, { readonly: true });
  try {
    const rows = file.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...binds);
    return rows.map((row) => String(Object(row).detail)).join(' | ');
  } finally {
    file.close();
  }
}

/** Remembers every statement that goes through it. */
export class RecordingDb implements Db {
  readonly engine: Db['engine'];
  readonly statements: Map<string, readonly Bind[]>;
  /** How often anything was asked outside a transaction. */
  queries = 0;
  readonly #db: Db;

  constructor(db: Db, statements = new Map<string, readonly Bind[]>()) {
    this.engine = db.engine;
    this.#db = db;
    this.statements = statements;
  }

  query(sql: string, binds: readonly Bind[] = []): Promise<readonly Row[]> {
    this.statements.set(sql, binds);
    this.queries += 1;
    return this.#db.query(sql, binds);
  }

  run(sql: string, binds: readonly Bind[] = []): Promise<number> {
    this.statements.set(sql, binds);
    return this.#db.run(sql, binds);
  }

  transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return this.#db.transaction((tx) => work(new RecordingDb(tx, this.statements)));
  }

  now(): Promise<number> {
    return this.#db.now();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
