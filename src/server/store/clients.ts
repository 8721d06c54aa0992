/** The OAuth clients the issuer knows, and the most each may ask for. */
import { Secret } from '../../base/secret.js';
import { formatScopes, parseScopes, type Scope } from '../../protocol/scopes.js';
import { isStorable } from './bind-guard.js';
import type { Db, Row } from './db.js';
import { fieldsOf, maybeNumberOf, maybeTextOf, numberOf, textOf, textsOf } from './row.js';

export interface NewClient {
  readonly clientId: string;
  readonly tenant: string;
  readonly name: string;
  /** A public client has neither secret nor keys. */
  readonly kind: ClientKind;
  readonly secretHash?: Secret | undefined;
  /** Public keys for `private_key_jwt`. */
  readonly jwks?: Readonly<Record<string, unknown>> | undefined;
  readonly redirectUris: readonly string[];
  readonly grants: readonly string[];
  readonly allowedScopes: readonly Scope[];
}

export type ClientKind = 'public' | 'confidential';

export interface Client extends NewClient {
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
}

export class Clients {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async add(client: NewClient): Promise<'added' | 'taken'> {
    const added = await this.#db.run(
      `INSERT INTO clients (client_id, tenant, name, kind, secret_hash, jwks, redirect_uris, grants,
          allowed_scopes, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (client_id) DO NOTHING`,
      [
        client.clientId,
        client.tenant,
        client.name,
        client.kind,
        client.secretHash?.reveal() ?? null,
        client.jwks === undefined ? null : JSON.stringify(client.jwks),
        JSON.stringify(client.redirectUris),
        JSON.stringify(client.grants),
        formatScopes(client.allowedScopes),
        await this.#db.now(),
      ],
    );
    return added === 1 ? 'added' : 'taken';
  }

  async find(clientId: string): Promise<Client | undefined> {
    if (!isStorable(clientId)) return undefined;
    const [row] = await this.#db.query('SELECT * FROM clients WHERE client_id = ?', [clientId]);
    return row === undefined ? undefined : toClient(row);
  }

  /** By id, those after `afterId` first: a page. */
  async list(limit: number, afterId = ''): Promise<readonly Client[]> {
    const rows = await this.#db.query(
      'SELECT * FROM clients WHERE client_id > ? ORDER BY client_id LIMIT ?',
      [afterId, limit],
    );
    return rows.map(toClient);
  }

  /** Each of these: whether there is such a client. */
  setSecretHash(clientId: string, secretHash: Secret): Promise<boolean> {
    return this.#changed(
      "UPDATE clients SET secret_hash = ? WHERE client_id = ? AND kind = 'confidential'",
      [secretHash.reveal(), clientId],
    );
  }

  setAllowedScopes(clientId: string, scopes: readonly Scope[]): Promise<boolean> {
    return this.#changed('UPDATE clients SET allowed_scopes = ? WHERE client_id = ?', [
      formatScopes(scopes),
      clientId,
    ]);
  }

  /** Disabling again keeps the time of the first. */
  async setDisabled(clientId: string, isDisabled: boolean): Promise<boolean> {
    if (!isDisabled) {
      return this.#changed('UPDATE clients SET disabled_at = NULL WHERE client_id = ?', [clientId]);
    }
    return this.#changed(
      'UPDATE clients SET disabled_at = COALESCE(disabled_at, CAST(? AS BIGINT)) WHERE client_id = ?',
      [await this.#db.now(), clientId],
    );
  }

  async #changed(sql: string, binds: readonly (string | number)[]): Promise<boolean> {
    return (await this.#db.run(sql, binds)) === 1;
  }
}

function toClient(row: Row): Client {
  const hash = maybeTextOf(row, 'secret_hash');
  return {
    clientId: textOf(row, 'client_id'),
    tenant: textOf(row, 'tenant'),
    name: textOf(row, 'name'),
    kind: textOf(row, 'kind') === 'confidential' ? 'confidential' : 'public',
    secretHash: hash === undefined ? undefined : new Secret(hash),
    jwks: row['jwks'] === null ? undefined : fieldsOf(row, 'jwks'),
    redirectUris: textsOf(row, 'redirect_uris'),
    grants: textsOf(row, 'grants'),
    allowedScopes: parseScopes(textOf(row, 'allowed_scopes')),
    createdAtMs: numberOf(row, 'created_at'),
    disabledAtMs: maybeNumberOf(row, 'disabled_at'),
  };
}
