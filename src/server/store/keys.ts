/** The issuer's own keys: what signs tokens and cookies, kept over restarts and shared by replicas. */
import { Secret } from '../../base/secret.js';
import type { Db, Row } from './db.js';
import { maybeNumberOf, numberOf, textOf } from './row.js';

export type KeyPurpose = 'signing' | 'cookie';

export interface NewKey {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  /** A private JWK as JSON, or the secret itself. */
  readonly material: Secret;
}

export interface IssuerKey extends NewKey {
  readonly createdAtMs: number;
  /** Signs nothing more; still published, or accepted, until it is removed. */
  readonly retiredAtMs: number | undefined;
}

export class IssuerKeys {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** The newest first; the first that is not retired is the one to sign with. */
  async list(purpose: KeyPurpose): Promise<readonly IssuerKey[]> {
    const rows = await this.#db.query(
      'SELECT * FROM issuer_keys WHERE purpose = ? ORDER BY created_at DESC, kid DESC',
      [purpose],
    );
    return rows.map(toKey);
  }

  /** Stores the key if its purpose has no current one; of several replicas that start at once, the first wins. */
  addFirst(key: NewKey): Promise<'added' | 'present'> {
    return this.#db.transaction(async (tx) => {
      const [current] = await tx.query(
        'SELECT kid FROM issuer_keys WHERE purpose = ? AND retired_at IS NULL LIMIT 1',
        [key.purpose],
      );
      if (current !== undefined) return 'present';
      await insert(tx, key);
      return 'added';
    });
  }

  /** Makes the key the current one and retires those before it. */
  rotate(key: NewKey): Promise<void> {
    return this.#db.transaction(async (tx) => {
      await tx.run(
        'UPDATE issuer_keys SET retired_at = ? WHERE purpose = ? AND retired_at IS NULL',
        [await tx.now(), key.purpose],
      );
      await insert(tx, key);
    });
  }

  /** Removes keys retired at least `ageMs` ago: nothing they signed may still be valid. How many it were. */
  async removeRetired(purpose: KeyPurpose, ageMs: number): Promise<number> {
    return this.#db.run('DELETE FROM issuer_keys WHERE purpose = ? AND retired_at <= ?', [
      purpose,
      (await this.#db.now()) - ageMs,
    ]);
  }
}

async function insert(tx: Db, key: NewKey): Promise<void> {
  await tx.run('INSERT INTO issuer_keys (kid, purpose, material, created_at) VALUES (?, ?, ?, ?)', [
    key.kid,
    key.purpose,
    key.material.reveal(),
    await tx.now(),
  ]);
}

function toKey(row: Row): IssuerKey {
  return {
    kid: textOf(row, 'kid'),
    purpose: textOf(row, 'purpose') === 'cookie' ? 'cookie' : 'signing',
    material: new Secret(textOf(row, 'material')),
    createdAtMs: numberOf(row, 'created_at'),
    retiredAtMs: maybeNumberOf(row, 'retired_at'),
  };
}
