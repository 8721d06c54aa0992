/** A store handle that ends its process, as `kill -9` would, at a chosen point of what is done through it. */
import type { Bind, Db, Row } from '../../../../src/server/store/db.js';

export interface CrashPoint {
  /** Of the statement, once it has been run. */
  readonly statement: string;
  /** `within` its transaction, or `after` that was committed. */
  readonly at: 'within' | 'after';
}

export function crash(): never {
  process.kill(process.pid, 'SIGKILL');
  // The signal takes the process before this loop is noticed by anybody.
  for (;;);
}

export class CrashingDb implements Db {
  readonly engine: Db['engine'];
  readonly #db: Db;
  readonly #point: CrashPoint;
  #isReached = false;

  constructor(db: Db, point: CrashPoint) {
    this.engine = db.engine;
    this.#db = db;
    this.#point = point;
  }

  async query(sql: string, binds?: readonly Bind[]): Promise<readonly Row[]> {
    const rows = await this.#db.query(sql, binds);
    this.#look(sql, rows.length);
    return rows;
  }

  async run(sql: string, binds?: readonly Bind[]): Promise<number> {
    const changed = await this.#db.run(sql, binds);
    this.#look(sql, changed);
    return changed;
  }

  async transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    let isReached = false;
    const value = await this.#db.transaction(async (tx) => {
      const inner = new CrashingDb(tx, this.#point);
      const done = await work(inner);
      isReached = inner.#isReached;
      return done;
    });
    if (isReached && this.#point.at === 'after') crash();
    return value;
  }

  now(): Promise<number> {
    return this.#db.now();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#db[Symbol.asyncDispose]();
  }

  #look(sql: string, changed: number): void {
    if (changed === 0 || !sql.replace(/\s+/g, ' ').includes(this.#point.statement)) return;
    this.#isReached = true;
    if (this.#point.at === 'within') crash();
  }
}
