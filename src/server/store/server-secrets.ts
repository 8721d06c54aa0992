/** Secrets all replicas share, made once by whichever needs one first. */
import { Secret } from '../../base/secret.js';
import type { Db } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { textOf } from './row.js';

export class ServerSecrets {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** What is kept under the name; if there is nothing, `fresh` is kept, unless somebody else was faster. */
  async ensure(name: string, fresh: () => Secret): Promise<Secret> {
    const kept = await this.find(name);
    if (kept !== undefined) return kept;
    const made = fresh();
    await this.#db.run(
      `INSERT INTO server_secrets (name, material, created_at)
        VALUES (?, ?, ${NOW_SQL[this.#db.engine]}) ON CONFLICT (name) DO NOTHING`,
      [name, made.reveal()],
    );
    return (await this.find(name)) ?? made;
  }

  async find(name: string): Promise<Secret | undefined> {
    const [row] = await this.#db.query('SELECT material FROM server_secrets WHERE name = ?', [
      name,
    ]);
    return row === undefined ? undefined : new Secret(textOf(row, 'material'));
  }
}
