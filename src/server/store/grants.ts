/** Who else was let into a session, with what and until when. A grantee has one grant in force at most. */
import {
  type Capability,
  formatCapabilities,
  parseCapabilities,
} from '../../protocol/capabilities.js';
import type { GrantId, SessionId } from '../../protocol/ids.js';
import type { Principal } from '../../protocol/principal.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeNumberOf, numberOf, textOf } from './row.js';

export interface Grantee {
  readonly type: 'user' | 'agent';
  readonly id: string;
}

export interface NewGrant {
  readonly id: GrantId;
  readonly sessionId: SessionId;
  /** The session's: nobody of another is let in. */
  readonly tenant: string;
  readonly grantee: Grantee;
  readonly capabilities: readonly Capability[];
  readonly createdBy: string;
  readonly expiresAtMs?: number | undefined;
}

export interface GrantRecord extends NewGrant {
  readonly createdAtMs: number;
}

export class Grants {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  /** `undefined`: this grantee has one in force. */
  async add(grant: NewGrant): Promise<GrantRecord | undefined> {
    const [row] = await this.#db.query(
      `INSERT INTO grants (id, session_id, tenant, grantee_type, grantee_id, capabilities, created_at, created_by,
          expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ${this.#now}, ?, ?) ON CONFLICT DO NOTHING RETURNING *`,
      [
        grant.id,
        grant.sessionId,
        grant.tenant,
        grant.grantee.type,
        grant.grantee.id,
        formatCapabilities(grant.capabilities),
        grant.createdBy,
        grant.expiresAtMs ?? null,
      ],
    );
    return row && toGrant(row);
  }

  /** What lets the caller into the session just now. A grant to the agent itself goes before one to whom it acts for. */
  async findFor(sessionId: SessionId, principal: Principal): Promise<GrantRecord | undefined> {
    const agent = agentOf(principal);
    const [row] = await this.#db.query(
      `SELECT * FROM grants WHERE session_id = ? AND tenant = ? AND deleted_at IS NULL
          AND (expires_at IS NULL OR expires_at > ${this.#now})
          AND ((grantee_type = 'agent' AND grantee_id = ?) OR (grantee_type = 'user' AND grantee_id = ?))
        ORDER BY grantee_type LIMIT 1`,
      [sessionId, principal.tenant, agent ?? '', principal.sub],
    );
    return row && toGrant(row);
  }

  /** Of this grantee, whether it has expired or not. */
  async findOf(sessionId: SessionId, grantee: Grantee): Promise<GrantRecord | undefined> {
    const [row] = await this.#db.query(
      `SELECT * FROM grants WHERE session_id = ? AND grantee_type = ? AND grantee_id = ? AND deleted_at IS NULL`,
      [sessionId, grantee.type, grantee.id],
    );
    return row && toGrant(row);
  }

  /** By id, those after `afterId` first: a page. Expired ones are not shown. */
  async list(sessionId: SessionId, limit: number, afterId = ''): Promise<readonly GrantRecord[]> {
    const rows = await this.#db.query(
      `SELECT * FROM grants WHERE session_id = ? AND deleted_at IS NULL AND id > ?
          AND (expires_at IS NULL OR expires_at > ${this.#now})
        ORDER BY id LIMIT ?`,
      [sessionId, afterId, limit],
    );
    return rows.map(toGrant);
  }

  async count(sessionId: SessionId): Promise<number> {
    const [row] = await this.#db.query(
      'SELECT COUNT(*) AS grants FROM grants WHERE session_id = ? AND deleted_at IS NULL',
      [sessionId],
    );
    return row === undefined ? 0 : numberOf(row, 'grants');
  }

  /** Until the transaction ends nobody can take it back. False: it was taken back already. */
  async hold(id: GrantId): Promise<boolean> {
    const held = await this.#db.run(
      'UPDATE grants SET id = id WHERE id = ? AND deleted_at IS NULL',
      [id],
    );
    return held === 1;
  }

  /** What was taken back; `undefined`: there was nothing. */
  async remove(sessionId: SessionId, id: string): Promise<GrantRecord | undefined> {
    const [row] = await this.#db.query(
      `UPDATE grants SET deleted_at = ${this.#now} WHERE session_id = ? AND id = ? AND deleted_at IS NULL
        RETURNING *`,
      [sessionId, id],
    );
    return row && toGrant(row);
  }
}

/** Who acts, where that is not the subject itself. A service acts for itself. */
function agentOf(principal: Principal): string | undefined {
  return principal.act?.sub ?? (principal.kind === 'service' ? principal.sub : undefined);
}

function toGrant(row: Row): GrantRecord {
  return {
    id: textOf(row, 'id') as GrantId,
    sessionId: textOf(row, 'session_id') as SessionId,
    tenant: textOf(row, 'tenant'),
    grantee: {
      type: textOf(row, 'grantee_type') === 'agent' ? 'agent' : 'user',
      id: textOf(row, 'grantee_id'),
    },
    capabilities: parseCapabilities(textOf(row, 'capabilities')) ?? [],
    createdAtMs: numberOf(row, 'created_at'),
    createdBy: textOf(row, 'created_by'),
    expiresAtMs: maybeNumberOf(row, 'expires_at'),
  };
}
