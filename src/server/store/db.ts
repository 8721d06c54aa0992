/** What the rooms above know of a database: one interface over SQLite and PostgreSQL, in the SQL both understand. */

/** What may be bound to a placeholder; `bind-guard.ts` holds every driver to it. */
export type Bind = string | number | bigint | Uint8Array | null;

/** BIGINT columns come as numbers: what is stored in them stays within ±2^53. */
export type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

export interface Db extends AsyncDisposable {
  readonly engine: 'sqlite' | 'postgres';
  /** Rows of a SELECT or of a statement with RETURNING. Placeholders are `?`. */
  query(sql: string, binds?: readonly Bind[]): Promise<readonly Row[]>;
  /** A statement; how many rows it changed. */
  run(sql: string, binds?: readonly Bind[]): Promise<number>;
  /**
   * All or nothing. SQLite: BEGIN IMMEDIATE, one writer; PostgreSQL: one client of the pool. Nested calls are an error.
   * On PostgreSQL `work` runs again when it lost against another: what it does besides `tx` must bear repeating.
   */
  transaction<T>(work: (tx: Db) => Promise<T>): Promise<T>;
  /** The database's own clock, epoch milliseconds: leases and expiry are decided by it. */
  now(): Promise<number>;
}
