/**
 * The steps of a sandbox's life. Each is one conditional write by the database's clock: of several replicas that try the
 * same step one succeeds, and a replica that lost its hold on a sandbox changes nothing.
 */
import type { SandboxId } from '../../protocol/ids.js';
import type { Bind, Db } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { type SandboxRecord, toSandbox } from './sandboxes.js';

/** Who starts or stops a sandbox, and how long the others stay away unless that is renewed. */
export interface Hold {
  readonly holder: string;
  readonly leaseMs: number;
}

export class SandboxLife {
  readonly #db: Db;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  /** Alive for a full idle timeout from now, or until its hard end: never shorter than it was. Undefined: not active. */
  lengthenLease(id: SandboxId): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.lengthenLease, [id]);
  }

  /** The same for work seen at `activeAtMs`, which is by another clock: taken for now at the latest. */
  keepActive(id: SandboxId, activeAtMs: number): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.keepActive, [activeAtMs, activeAtMs, id]);
  }

  renewHold(id: SandboxId, hold: Hold): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.renewHold, [hold.leaseMs, id, hold.holder]);
  }

  /** Takes over what a replica began to start or stop and then was heard of no more. */
  takeOver(id: SandboxId, hold: Hold): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.takeOver, [hold.holder, hold.leaseMs, id]);
  }

  /** suspended → provisioning. */
  beginResume(id: SandboxId, hold: Hold): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.beginResume, [hold.holder, hold.leaseMs, id]);
  }

  /** provisioning → active, with a whole lease before it. */
  becomeActive(
    id: SandboxId,
    holder: string,
    made: {
      readonly httpUrl: string;
      readonly wsUrl: string;
      /** The generation of the access that was delivered with it. */
      readonly accessGeneration: number;
    },
  ): Promise<SandboxRecord | undefined> {
    const { httpUrl, wsUrl, accessGeneration } = made;
    return this.#one(this.#sql.becomeActive, [
      httpUrl,
      wsUrl,
      accessGeneration,
      accessGeneration,
      id,
      holder,
    ]);
  }

  /** active → idle, if its lease is over. */
  becomeIdle(id: SandboxId, hold: Hold): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.becomeIdle, [hold.holder, hold.leaseMs, id]);
  }

  /** active → idle, because its owner says so. */
  beginStop(id: SandboxId, hold: Hold): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.beginStop, [hold.holder, hold.leaseMs, id]);
  }

  /** idle → suspended. */
  becomeSuspended(id: SandboxId, holder: string): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.becomeSuspended, [id, holder]);
  }

  /** Any living state → failed, by who held it. */
  fail(id: SandboxId, holder: string, reason: string): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.fail, [reason, id, holder]);
  }

  /** Any living state → terminated. Whoever worked on it finds that it holds it no more. */
  terminate(id: SandboxId, reason: string): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.terminate, [reason, id]);
  }

  /** The same, if its hard end has come. */
  expire(id: SandboxId, reason: string): Promise<SandboxRecord | undefined> {
    return this.#one(this.#sql.expire, [reason, id]);
  }

  /** Its provider holds nothing of it any more. */
  async markDestroyed(id: SandboxId): Promise<void> {
    await this.#db.run(this.#sql.markDestroyed, [id]);
  }

  leaseOver(limit: number): Promise<readonly SandboxRecord[]> {
    return this.#many(this.#sql.leaseOver, [limit]);
  }

  hardEndReached(limit: number): Promise<readonly SandboxRecord[]> {
    return this.#many(this.#sql.hardEndReached, [limit]);
  }

  /** Being started or stopped by nobody any more. */
  abandoned(limit: number): Promise<readonly SandboxRecord[]> {
    return this.#many(this.#sql.abandoned, [limit]);
  }

  /** Ended, and perhaps still there. The longest ended first; `afterMs` is where the batch before ended. */
  toDestroy(limit: number, afterMs: number): Promise<readonly SandboxRecord[]> {
    return this.#many(this.#sql.toDestroy, [afterMs, limit]);
  }

  async #one(sql: string, binds: readonly Bind[]): Promise<SandboxRecord | undefined> {
    const [row] = await this.#db.query(sql, binds);
    return row && toSandbox(row);
  }

  async #many(sql: string, binds: readonly Bind[]): Promise<readonly SandboxRecord[]> {
    return (await this.#db.query(sql, binds)).map(toSandbox);
  }
}

function statements(now: string) {
  const leaseFrom = (begin: string): string => {
    const end = `(${begin}) + idle_timeout_ms`;
    return `CASE WHEN hard_expires_at <= ${end} THEN hard_expires_at
      WHEN lease_expires_at >= ${end} THEN lease_expires_at ELSE ${end} END`;
  };
  const released = 'work_holder = NULL, work_until = NULL';
  const held = `work_holder = ?, work_until = ${now} + CAST(? AS BIGINT)`;
  const ended = `ended_at = ${now}, end_reason = ?, ${released}`;
  // As a query of its own it is asked once, and an index can be searched by it.
  const once = `(SELECT ${now})`;
  const seenAt = `CASE WHEN CAST(? AS BIGINT) < ${now} THEN CAST(? AS BIGINT) ELSE ${now} END`;
  return {
    lengthenLease: `UPDATE sandboxes SET last_active_at = ${now}, lease_expires_at = ${leaseFrom(now)}
      WHERE id = ? AND state = 'active' AND hard_expires_at > ${now} RETURNING *`,
    keepActive: `UPDATE sandboxes SET last_active_at = seen.seen_at,
        lease_expires_at = ${leaseFrom('seen.seen_at')}
      FROM (SELECT ${seenAt} AS seen_at) AS seen
      WHERE id = ? AND state = 'active' AND seen.seen_at > last_active_at RETURNING *`,
    renewHold: `UPDATE sandboxes SET work_until = ${now} + CAST(? AS BIGINT)
      WHERE id = ? AND work_holder = ? AND ended_at IS NULL RETURNING *`,
    takeOver: `UPDATE sandboxes SET ${held}
      WHERE id = ? AND ended_at IS NULL AND work_until <= ${now} RETURNING *`,
    beginResume: `UPDATE sandboxes SET state = 'provisioning', last_active_at = ${now}, ${held}
      WHERE id = ? AND state = 'suspended' AND hard_expires_at > ${now} RETURNING *`,
    becomeActive: `UPDATE sandboxes SET state = 'active', http_url = ?, ws_url = ?,
        access_delivered = CASE WHEN access_delivered < CAST(? AS BIGINT)
          THEN CAST(? AS BIGINT) ELSE access_delivered END,
        last_active_at = ${now}, lease_expires_at = ${leaseFrom(now)}, ${released}
      WHERE id = ? AND state = 'provisioning' AND work_holder = ? RETURNING *`,
    becomeIdle: `UPDATE sandboxes SET state = 'idle', ${held}
      WHERE id = ? AND state = 'active' AND lease_expires_at <= ${now} RETURNING *`,
    beginStop: `UPDATE sandboxes SET state = 'idle', ${held}
      WHERE id = ? AND state = 'active' RETURNING *`,
    becomeSuspended: `UPDATE sandboxes SET state = 'suspended', ${released}
      WHERE id = ? AND state = 'idle' AND work_holder = ? RETURNING *`,
    fail: `UPDATE sandboxes SET state = 'failed', ${ended}
      WHERE id = ? AND work_holder = ? AND ended_at IS NULL RETURNING *`,
    terminate: `UPDATE sandboxes SET state = 'terminated', ${ended}
      WHERE id = ? AND ended_at IS NULL RETURNING *`,
    expire: `UPDATE sandboxes SET state = 'terminated', ${ended}
      WHERE id = ? AND ended_at IS NULL AND hard_expires_at <= ${now} RETURNING *`,
    markDestroyed: `UPDATE sandboxes SET destroyed_at = ${now}
      WHERE id = ? AND ended_at IS NOT NULL AND destroyed_at IS NULL`,
    leaseOver: `SELECT * FROM sandboxes WHERE state = 'active' AND lease_expires_at <= ${once}
      ORDER BY lease_expires_at LIMIT ?`,
    hardEndReached: `SELECT * FROM sandboxes WHERE ended_at IS NULL AND hard_expires_at <= ${once}
      ORDER BY hard_expires_at LIMIT ?`,
    abandoned: `SELECT * FROM sandboxes WHERE work_until IS NOT NULL AND work_until <= ${once}
      ORDER BY work_until LIMIT ?`,
    toDestroy: `SELECT * FROM sandboxes
      WHERE ended_at IS NOT NULL AND destroyed_at IS NULL AND ended_at > CAST(? AS BIGINT)
      ORDER BY ended_at LIMIT ?`,
  };
}
