/** Work that one replica at a time does for all: whoever holds the job's lease, by the database's clock. */
import type { Db } from './db.js';
import { NOW_SQL } from './engine-clock.js';

export class JobLeases {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  /** Takes the job, or keeps it. False: another replica has it. */
  async take(name: string, holder: string, leaseMs: number): Promise<boolean> {
    return (await this.#db.run(this.#sql.take, [name, holder, leaseMs])) === 1;
  }

  async letGo(name: string, holder: string): Promise<void> {
    await this.#db.run('DELETE FROM job_leases WHERE name = ? AND holder = ?', [name, holder]);
  }
}

function statements(now: string) {
  return {
    take: `INSERT INTO job_leases (name, holder, until)
      VALUES (?, ?, ${now} + CAST(? AS BIGINT))
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE job_leases.holder = excluded.holder OR job_leases.until <= ${now}`,
  };
}
