/** `sandbox_client_config`: what sandboxes of an OAuth client get, and the most its tokens may do. No row: nothing, and no limit. */
import { type Capability, isCapability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import { isStorable } from './bind-guard.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { fieldsOf, maybeTextOf, textOf, textsOf } from './row.js';

export interface Sidecar {
  readonly image: string;
  readonly command?: readonly string[] | undefined;
  /** Of the sidecar's own token. */
  readonly audience: string;
  readonly scopes: readonly string[];
}

export interface ClientPolicyRow {
  readonly clientId: string;
  readonly sidecar: Sidecar | undefined;
  /** Injected into the user's container. */
  readonly environment: Readonly<Record<string, string>>;
  /** Undefined: no limit of its own. Empty: nothing at all. */
  readonly ceiling: readonly Capability[] | undefined;
}

export class ClientPolicies {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async find(clientId: string): Promise<ClientPolicyRow | undefined> {
    if (!isStorable(clientId)) return undefined;
    const [row] = await this.#db.query('SELECT * FROM sandbox_client_config WHERE client_id = ?', [
      clientId,
    ]);
    return row === undefined ? undefined : toPolicy(row);
  }

  /** By id, those after `afterId` first: a page. */
  async list(limit: number, afterId = ''): Promise<readonly ClientPolicyRow[]> {
    const rows = await this.#db.query(
      'SELECT * FROM sandbox_client_config WHERE client_id > ? ORDER BY client_id LIMIT ?',
      [afterId, limit],
    );
    return rows.map(toPolicy);
  }

  async put(policy: ClientPolicyRow): Promise<void> {
    await this.#db.run(
      `INSERT INTO sandbox_client_config (client_id, sidecar, environment, capability_ceiling, updated_at)
        VALUES (?, ?, ?, ?, ${NOW_SQL[this.#db.engine]})
        ON CONFLICT (client_id) DO UPDATE SET sidecar = excluded.sidecar, environment = excluded.environment,
          capability_ceiling = excluded.capability_ceiling, updated_at = excluded.updated_at`,
      [
        policy.clientId,
        policy.sidecar === undefined ? null : JSON.stringify(policy.sidecar),
        JSON.stringify(policy.environment),
        policy.ceiling === undefined ? null : JSON.stringify(policy.ceiling),
      ],
    );
  }

  async remove(clientId: string): Promise<boolean> {
    if (!isStorable(clientId)) return false;
    const removed = await this.#db.run('DELETE FROM sandbox_client_config WHERE client_id = ?', [
      clientId,
    ]);
    return removed === 1;
  }
}

function toPolicy(row: Row): ClientPolicyRow {
  return {
    clientId: textOf(row, 'client_id'),
    sidecar: row['sidecar'] === null ? undefined : toSidecar(fieldsOf(row, 'sidecar')),
    environment: toEnvironment(fieldsOf(row, 'environment')),
    ceiling: ceilingOf(row),
  };
}

/** A word nobody here knows limits to nothing more than the words that are known. */
export function ceilingOf(row: Row): readonly Capability[] | undefined {
  if (maybeTextOf(row, 'capability_ceiling') === undefined) return undefined;
  return textsOf(row, 'capability_ceiling').filter(isCapability);
}

function toSidecar(fields: Readonly<Record<string, unknown>>): Sidecar {
  const { image, command, audience, scopes } = fields;
  if (typeof image !== 'string' || typeof audience !== 'string' || !isTexts(scopes))
    throw new AilsdError('INTERNAL', 'the column sidecar holds no sidecar');
  return { image, audience, scopes, ...(isTexts(command) && { command }) };
}

function toEnvironment(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) environment[name] = String(value);
  return environment;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
