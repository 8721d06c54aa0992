/** Which identity tokens of other systems, a CI's say, are let in, and as which service principal. */
import { formatScopes, parseScopes, type Scope } from '../../protocol/scopes.js';
import type { Db, Row } from './db.js';
import { fieldsOf, numberOf, textOf } from './row.js';

export interface NewTrust {
  readonly id: string;
  readonly issuer: string;
  readonly audience: string;
  /** Claim → what it must be; all of them. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly clientId: string;
  readonly tenant: string;
  readonly scopes: readonly Scope[];
}

export interface Trust extends NewTrust {
  readonly createdAtMs: number;
}

export class WorkloadTrust {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async add(trust: NewTrust): Promise<'added' | 'taken'> {
    const added = await this.#db.run(
      `INSERT INTO workload_trust (id, issuer, audience, claims, client_id, tenant, scopes, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
      [
        trust.id,
        trust.issuer,
        trust.audience,
        JSON.stringify(trust.claims),
        trust.clientId,
        trust.tenant,
        formatScopes(trust.scopes),
        await this.#db.now(),
      ],
    );
    return added === 1 ? 'added' : 'taken';
  }

  /** All that trust this issuer; compared as it is written. */
  async listByIssuer(issuer: string): Promise<readonly Trust[]> {
    const rows = await this.#db.query('SELECT * FROM workload_trust WHERE issuer = ? ORDER BY id', [
      issuer,
    ]);
    return rows.map(toTrust);
  }

  async has(id: string): Promise<boolean> {
    const rows = await this.#db.query('SELECT id FROM workload_trust WHERE id = ?', [id]);
    return rows.length > 0;
  }

  /** By id, those after `afterId` first: a page. */
  async list(limit: number, afterId = ''): Promise<readonly Trust[]> {
    const rows = await this.#db.query(
      'SELECT * FROM workload_trust WHERE id > ? ORDER BY id LIMIT ?',
      [afterId, limit],
    );
    return rows.map(toTrust);
  }

  async remove(id: string): Promise<boolean> {
    return (await this.#db.run('DELETE FROM workload_trust WHERE id = ?', [id])) === 1;
  }
}

function toTrust(row: Row): Trust {
  return {
    id: textOf(row, 'id'),
    issuer: textOf(row, 'issuer'),
    audience: textOf(row, 'audience'),
    claims: fieldsOf(row, 'claims'),
    clientId: textOf(row, 'client_id'),
    tenant: textOf(row, 'tenant'),
    scopes: parseScopes(textOf(row, 'scopes')),
    createdAtMs: numberOf(row, 'created_at'),
  };
}
