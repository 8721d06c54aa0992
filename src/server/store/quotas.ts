/** Caps on code execution and what was used of them: calls of a tenant in a UTC day, and of an agent in a UTC hour. */
import { QUOTA_DEFAULTS } from '../../protocol/shapes/code.js';
import type { Db, Row } from './db.js';
import { NOW_SQL } from './engine-clock.js';
import { maybeNumberOf, textOf } from './row.js';
import { takeTurnsAtRows } from './row-turns.js';

export interface Caps {
  readonly tenantDaily: number;
  readonly agentHourly: number;
}

export interface TenantCaps extends Caps {
  /** Absent: the caps of those that have none of their own. */
  readonly tenant: string | undefined;
}

export type QuotaDimension = 'tenant_daily' | 'agent_hourly';

export type TakenQuota =
  | { readonly kind: 'taken' }
  /** Nothing was counted, in either dimension. */
  | { readonly kind: 'breach'; readonly dimension: QuotaDimension; readonly resetsAtMs: number };

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Of the caps that count for everybody without their own. */
const EVERYBODY = '';

export class Quotas {
  readonly #db: Db;
  readonly #now: string;

  constructor(db: Db) {
    this.#db = db;
    this.#now = NOW_SQL[db.engine];
  }

  /** One call more, in both dimensions or in none. The caps are those of this moment; not to be called in a transaction. */
  async take(tenant: string, agentId: string): Promise<TakenQuota> {
    try {
      await this.#db.transaction(async (tx) => {
        await takeTurnsAtRows(tx);
        const caps = await new Quotas(tx).caps(tenant);
        const nowMs = await tx.now();
        // Always in this order, so that nobody waits for one who waits for them.
        const day = nowMs - (nowMs % DAY_MS);
        if (!(await countDaily(tx, tenant, day, caps.tenantDaily)))
          throw new Breach('tenant_daily', day + DAY_MS);
        const hour = nowMs - (nowMs % HOUR_MS);
        // The exception takes back what the day was charged.
        if (!(await countHourly(tx, tenant, agentId, hour, caps.agentHourly)))
          throw new Breach('agent_hourly', hour + HOUR_MS);
      });
      return { kind: 'taken' };
    } catch (thrown) {
      if (!(thrown instanceof Breach)) throw thrown;
      return { kind: 'breach', dimension: thrown.dimension, resetsAtMs: thrown.resetsAtMs };
    }
  }

  /** What counts for a tenant: its own, else everybody's, else the program's. */
  async caps(tenant: string): Promise<Caps> {
    const rows = await this.#db.query('SELECT * FROM quotas WHERE tenant IN (?, ?)', [
      tenant,
      EVERYBODY,
    ]);
    const own = rows.find((row) => row['tenant'] === tenant);
    const everybodys = rows.find((row) => row['tenant'] === EVERYBODY);
    return capsOf(own, everybodys);
  }

  /** A cap that is left out stays as it is. */
  async set(
    tenant: string | undefined,
    caps: { readonly [K in keyof Caps]?: number | undefined },
  ): Promise<TenantCaps> {
    const name = tenant ?? EVERYBODY;
    await this.#db.run(
      `INSERT INTO quotas (tenant, tenant_daily, agent_hourly, updated_at) VALUES (?, ?, ?, ${this.#now})
        ON CONFLICT (tenant) DO UPDATE SET
          tenant_daily = COALESCE(excluded.tenant_daily, quotas.tenant_daily),
          agent_hourly = COALESCE(excluded.agent_hourly, quotas.agent_hourly),
          updated_at = excluded.updated_at`,
      [name, caps.tenantDaily ?? null, caps.agentHourly ?? null],
    );
    return { tenant, ...(await this.caps(name)) };
  }

  /** Everybody's first, then by the tenant's name. */
  async list(limit: number, after: string | undefined): Promise<readonly TenantCaps[]> {
    const [everybodys] = await this.#db.query('SELECT * FROM quotas WHERE tenant = ?', [EVERYBODY]);
    const rows = await this.#db.query(
      `SELECT * FROM quotas WHERE tenant > ? ORDER BY tenant LIMIT ?`,
      [after ?? EVERYBODY, limit],
    );
    const own = rows.map((row) => ({ tenant: textOf(row, 'tenant'), ...capsOf(row, everybodys) }));
    const first = { tenant: undefined, ...capsOf(undefined, everybodys) };
    return (after === undefined ? [first, ...own] : own).slice(0, limit);
  }

  /** Windows that nobody asks about any more. */
  async sweep(): Promise<void> {
    const old = `starts_at < ${this.#now} - ${KEPT_MS}`;
    await this.#db.run(`DELETE FROM sandbox_tenant_daily_counters WHERE ${old}`);
    await this.#db.run(`DELETE FROM sandbox_agent_hourly_counters WHERE ${old}`);
  }
}

/** Long enough to look at what was used of late. */
const KEPT_MS = 40 * DAY_MS;

/** Undoes the transaction it is thrown in. */
class Breach extends Error {
  readonly dimension: QuotaDimension;
  readonly resetsAtMs: number;

  constructor(dimension: QuotaDimension, resetsAtMs: number) {
    super(dimension);
    this.dimension = dimension;
    this.resetsAtMs = resetsAtMs;
  }
}

async function countDaily(tx: Db, tenant: string, startsAt: number, cap: number): Promise<boolean> {
  if (cap <= 0) return false;
  const changed = await tx.run(
    `INSERT INTO sandbox_tenant_daily_counters AS held (tenant, starts_at, count) VALUES (?, ?, 1)
      ON CONFLICT (tenant, starts_at) DO UPDATE SET count = held.count + 1
        WHERE held.count < CAST(? AS BIGINT)`,
    [tenant, startsAt, cap],
  );
  return changed === 1;
}

async function countHourly(
  tx: Db,
  tenant: string,
  agentId: string,
  startsAt: number,
  cap: number,
): Promise<boolean> {
  if (cap <= 0) return false;
  const changed = await tx.run(
    `INSERT INTO sandbox_agent_hourly_counters AS held (tenant, agent_id, starts_at, count)
      VALUES (?, ?, ?, 1)
      ON CONFLICT (tenant, agent_id, starts_at) DO UPDATE SET count = held.count + 1
        WHERE held.count < CAST(? AS BIGINT)`,
    [tenant, agentId, startsAt, cap],
  );
  return changed === 1;
}

function capsOf(own: Row | undefined, everybodys: Row | undefined): Caps {
  const said = (column: QuotaDimension): number =>
    (own && maybeNumberOf(own, column)) ??
    (everybodys && maybeNumberOf(everybodys, column)) ??
    QUOTA_DEFAULTS[column];
  return { tenantDaily: said('tenant_daily'), agentHourly: said('agent_hourly') };
}
