/** Who may sign in: local accounts with a password, and people whom an upstream issuer vouches for. */
import { Secret } from '../../base/secret.js';
import { formatScopes, parseScopes, type Scope } from '../../protocol/scopes.js';
import { isStorable } from './bind-guard.js';
import type { Db, Row } from './db.js';
import { OidcPayloads } from './oidc-payloads.js';
import { maybeNumberOf, maybeTextOf, numberOf, textOf } from './row.js';

export interface NewUser {
  readonly id: string;
  readonly tenant: string;
  /** Unique in its tenant, as it is written. */
  readonly name: string;
  readonly passwordHash?: Secret | undefined;
  readonly upstream?: Upstream | undefined;
  /** The most a login of this user may hold. */
  readonly scopes: readonly Scope[];
}

export interface Upstream {
  readonly issuer: string;
  readonly subject: string;
}

export interface User extends NewUser {
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
  /** Logins and sessions that began until then are over. */
  readonly loginsEndedAtMs: number | undefined;
}

export class Users {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** `taken`: the id, the name or the upstream identity is another user's. */
  async add(user: NewUser): Promise<'added' | 'taken'> {
    const added = await this.#db.run(
      `INSERT INTO users (id, tenant, name, password_hash, upstream_issuer, upstream_subject, scopes, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      [
        user.id,
        user.tenant,
        user.name,
        user.passwordHash?.reveal() ?? null,
        user.upstream?.issuer ?? null,
        user.upstream?.subject ?? null,
        formatScopes(user.scopes),
        await this.#db.now(),
      ],
    );
    return added === 1 ? 'added' : 'taken';
  }

  find(id: string): Promise<User | undefined> {
    return this.#findOne('id = ?', [id]);
  }

  findByName(tenant: string, name: string): Promise<User | undefined> {
    return this.#findOne('tenant = ? AND name = ?', [tenant, name]);
  }

  findByUpstream({ issuer, subject }: Upstream): Promise<User | undefined> {
    return this.#findOne('upstream_issuer = ? AND upstream_subject = ?', [issuer, subject]);
  }

  /** By name, those after `afterName` first: a page. */
  async list(tenant: string, limit: number, afterName = ''): Promise<readonly User[]> {
    const rows = await this.#db.query(
      `SELECT * FROM users WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?`,
      [tenant, afterName, limit],
    );
    return rows.map(toUser);
  }

  /** Each of these: whether there is such a user. */
  async setPasswordHash(id: string, passwordHash: Secret): Promise<boolean> {
    return this.#changed('UPDATE users SET password_hash = ?, logins_ended_at = ? WHERE id = ?', [
      passwordHash.reveal(),
      await this.#db.now(),
      id,
    ]);
  }

  /** For good: whoever knew the password, or found a browser open, has to sign in again. */
  async endLogins(id: string): Promise<boolean> {
    return this.#changed('UPDATE users SET logins_ended_at = ? WHERE id = ?', [
      await this.#db.now(),
      id,
    ]);
  }

  setScopes(id: string, scopes: readonly Scope[]): Promise<boolean> {
    return this.#changed('UPDATE users SET scopes = ? WHERE id = ?', [formatScopes(scopes), id]);
  }

  /** For good, with all logins: whoever gets the name later is somebody else. */
  async remove(id: string): Promise<boolean> {
    const payloads = new OidcPayloads(this.#db);
    for (const grantId of await payloads.grantsOf(id)) await payloads.endGrant(grantId);
    return this.#changed('DELETE FROM users WHERE id = ?', [id]);
  }

  /** Disabling again keeps the time of the first. Enabling brings no login back. */
  async setDisabled(id: string, isDisabled: boolean): Promise<boolean> {
    if (!isDisabled) return this.#changed('UPDATE users SET disabled_at = NULL WHERE id = ?', [id]);
    const nowMs = await this.#db.now();
    return this.#changed(
      `UPDATE users SET disabled_at = COALESCE(disabled_at, CAST(? AS BIGINT)), logins_ended_at = ?
        WHERE id = ?`,
      [nowMs, nowMs, id],
    );
  }

  async #findOne(condition: string, binds: readonly string[]): Promise<User | undefined> {
    if (!binds.every(isStorable)) return undefined;
    const [row] = await this.#db.query(`SELECT * FROM users WHERE ${condition}`, binds);
    return row === undefined ? undefined : toUser(row);
  }

  async #changed(sql: string, binds: readonly (string | number)[]): Promise<boolean> {
    return (await this.#db.run(sql, binds)) === 1;
  }
}

function toUser(row: Row): User {
  const hash = maybeTextOf(row, 'password_hash');
  const issuer = maybeTextOf(row, 'upstream_issuer');
  const subject = maybeTextOf(row, 'upstream_subject');
  return {
    id: textOf(row, 'id'),
    tenant: textOf(row, 'tenant'),
    name: textOf(row, 'name'),
    passwordHash: hash === undefined ? undefined : new Secret(hash),
    upstream: issuer === undefined || subject === undefined ? undefined : { issuer, subject },
    scopes: parseScopes(textOf(row, 'scopes')),
    createdAtMs: numberOf(row, 'created_at'),
    disabledAtMs: maybeNumberOf(row, 'disabled_at'),
    loginsEndedAtMs: maybeNumberOf(row, 'logins_ended_at'),
  };
}
