/** Tenants and what they are allowed. One without a row is allowed nothing. */
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { numberOf, textOf } from './row.js';

export interface TenantSettings {
  readonly isSandboxEnabled: boolean;
  readonly environment: Environment;
  readonly tokenMode: TokenMode;
  readonly auditRetentionDays: number;
}

export type Environment = 'default-public' | 'internal-only';
export type TokenMode = 'jwt' | 'opaque';

export interface Tenant extends TenantSettings {
  readonly id: string;
}

export class Tenants {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async find(id: string): Promise<Tenant | undefined> {
    const [row] = await this.#db.query('SELECT * FROM tenants WHERE id = ?', [id]);
    return row === undefined ? undefined : toTenant(row);
  }

  /** Replaces all of its settings, or adds it. */
  async put({ id, ...settings }: Tenant): Promise<void> {
    await this.#db.run(
      `INSERT INTO tenants (id, sandbox_enabled, environment, token_mode, audit_retention_days, updated_at)
        VALUES (?, ?, ?, ?, ?, ${NOW_SQL[this.#db.engine]})
        ON CONFLICT (id) DO UPDATE SET sandbox_enabled = excluded.sandbox_enabled,
          environment = excluded.environment, token_mode = excluded.token_mode,
          audit_retention_days = excluded.audit_retention_days, updated_at = excluded.updated_at`,
      [
        id,
        settings.isSandboxEnabled ? 1 : 0,
        settings.environment,
        settings.tokenMode,
        settings.auditRetentionDays,
      ],
    );
  }
}

export function toTenant(row: Row): Tenant {
  return {
    id: textOf(row, 'id'),
    isSandboxEnabled: numberOf(row, 'sandbox_enabled') === 1,
    // Whatever is not known to be open is closed.
    environment:
      textOf(row, 'environment') === 'default-public' ? 'default-public' : 'internal-only',
    tokenMode: textOf(row, 'token_mode') === 'jwt' ? 'jwt' : 'opaque',
    auditRetentionDays: numberOf(row, 'audit_retention_days'),
  };
}
