/** Which keys and tokens count at a sandbox has a generation here; what its provider has not been told yet is found by it. */
import type { SandboxId } from '../../protocol/ids.js';
import type { Db, Row } from './db.js';
import { numberOf, textOf } from './row.js';

export interface AccessRecord {
  readonly sandboxId: SandboxId;
  readonly tenant: string;
  readonly provider: string;
  readonly keyGeneration: number;
  readonly accessGeneration: number;
  readonly accessDelivered: number;
  /** Its provider has made it, and it has not ended. */
  readonly isThere: boolean;
}

export class SandboxAccess {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async find(sandboxId: string): Promise<AccessRecord | undefined> {
    const [row] = await this.#db.query(`SELECT ${COLUMNS} FROM sandboxes WHERE id = ?`, [
      sandboxId,
    ]);
    return row === undefined ? undefined : toRecord(row);
  }

  /** To be said in the transaction that ends a token: its sandbox has something to learn. */
  async bump(sandboxId: SandboxId): Promise<void> {
    await this.#db.run(
      'UPDATE sandboxes SET access_generation = access_generation + 1 WHERE id = ?',
      [sandboxId],
    );
  }

  /** Every token of the sandbox dies. The new key's generation; `undefined` for a sandbox that has ended. */
  async rotateKey(sandboxId: SandboxId): Promise<number | undefined> {
    const [row] = await this.#db.query(
      `UPDATE sandboxes SET key_generation = key_generation + 1, access_generation = access_generation + 1
        WHERE id = ? AND ended_at IS NULL RETURNING key_generation`,
      [sandboxId],
    );
    return row && numberOf(row, 'key_generation');
  }

  /** The same for every sandbox of a tenant; how many they are. */
  rotateKeysOf(tenant: string): Promise<number> {
    return this.#db.run(
      `UPDATE sandboxes SET key_generation = key_generation + 1, access_generation = access_generation + 1
        WHERE tenant = ? AND ended_at IS NULL`,
      [tenant],
    );
  }

  /** Its provider goes by this generation now; word of an older one that comes late changes nothing. */
  async markDelivered(sandboxId: SandboxId, generation: number): Promise<void> {
    await this.#db.run(
      'UPDATE sandboxes SET access_delivered = ? WHERE id = ? AND access_delivered < ?',
      [generation, sandboxId, generation],
    );
  }

  /** Those that live and go by something older than what is recorded, by id. */
  async listUndelivered(limit: number, afterId = ''): Promise<readonly AccessRecord[]> {
    const rows = await this.#db.query(
      `SELECT ${COLUMNS} FROM sandboxes
        WHERE ended_at IS NULL AND access_delivered < access_generation AND id > ?
          AND state IN ('active', 'idle', 'suspended') ORDER BY id LIMIT ?`,
      [afterId, limit],
    );
    return rows.map(toRecord);
  }
}

const COLUMNS = `id, tenant, provider, key_generation, access_generation, access_delivered,
  CASE WHEN ended_at IS NULL AND state IN ('active', 'idle', 'suspended') THEN 1 ELSE 0 END AS is_there`;

function toRecord(row: Row): AccessRecord {
  return {
    sandboxId: textOf(row, 'id') as SandboxId,
    tenant: textOf(row, 'tenant'),
    provider: textOf(row, 'provider'),
    keyGeneration: numberOf(row, 'key_generation'),
    accessGeneration: numberOf(row, 'access_generation'),
    accessDelivered: numberOf(row, 'access_delivered'),
    isThere: numberOf(row, 'is_there') === 1,
  };
}
