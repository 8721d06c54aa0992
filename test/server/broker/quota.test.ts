/** Caps, fail-closed, truncation and redaction of calls, and the rule that nothing of their rows is rewritten. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { purgeExpired } from '../../../src/server/broker/code/recovery.js';
import type { Provider } from '../../../src/server/providers/provider.js';
import type { Bind, Db, Row } from '../../../src/server/store/db.js';
import { Quotas } from '../../../src/server/store/quotas.js';
import { proves } from '../../requirements.js';
import { ask, ensure } from './support/client.js';
import { openCodeWorld } from './support/code-world.js';
import { describeOnBoth, describeOnPostgres } from './support/engines.js';

const ADMIN = { sub: 'svc_admin', scopes: ['admin:sandbox'] as const };

/** A store whose clock is elsewhere, or that fails for one statement. */
class OddDb implements Db {
  readonly engine: Db['engine'];
  readonly #db: Db;
  readonly #odd: Odd;

  constructor(db: Db, odd: Odd) {
    this.engine = db.engine;
    this.#db = db;
    this.#odd = odd;
  }

  async query(sql: string, binds?: readonly Bind[]): Promise<readonly Row[]> {
    if (this.#odd.fails?.(sql)) throw new Error('the store is away');
    return this.#db.query(sql, binds);
  }

  run(sql: string, binds?: readonly Bind[]): Promise<number> {
    return this.#db.run(sql, binds);
  }

  async now(): Promise<number> {
    return (await this.#db.now()) + (this.#odd.aheadMs ?? 0);
  }

  transaction<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return this.#db.transaction((tx) => work(new OddDb(tx, this.#odd)));
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#db[Symbol.asyncDispose]();
  }
}

interface Odd {
  aheadMs?: number;
  fails?: (sql: string) => boolean;
}

describeOnPostgres('the cap on calls', (engine) => {
  it(proves('lets exactly so many of 500 at once run, on three replicas', 'QU-01'), async () => {
    await using world = await openCodeWorld({ storeUrl: await engine.storeUrl(), replicas: 3 });
    const json = { tenant: 'default', agent_hourly: 100 };
    const set = await ask(world.url(), 'PATCH', '/admin/quotas', { as: ADMIN, body: json });
    expect(set.json).toMatchObject(json);
    await ensure(world.url(), 'thr_code');
    const begun = await world.db.query('SELECT id FROM sessions');
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, turn) => world.code({ code: 'echo ran' }, { turn })),
    );
    const ran = answers.filter(({ json: one }) => one.ok === true);
    expect(ran).toHaveLength(100);
    const strange = answers.filter(
      ({ json: one }) => one.ok !== true && one.error !== 'SandboxCapExceeded',
    );
    expect(strange).toEqual([]);
    const refused = answers.filter(({ json: one }) => one.error === 'SandboxCapExceeded');
    expect(refused).toHaveLength(400);
    const now = Date.now();
    for (const { json: one } of refused) {
      expect(one).toMatchObject({
        ok: false,
        dimension: 'agent_hourly',
        exit_status: 'cap_exceeded',
      });
      expect(Date.parse(one.resets_at) % 3_600_000).toBe(0);
      expect(Date.parse(one.resets_at) - now).toBeLessThanOrEqual(3_600_000);
    }
    // One session was there, and none was created.
    expect(await world.db.query('SELECT id FROM sessions')).toEqual(begun);
    expect(await world.rows()).toHaveLength(500);
    const counted = await world.db.query('SELECT count FROM sandbox_agent_hourly_counters');
    expect(counted).toEqual([{ count: 100 }]);
    expect(await world.db.query('SELECT count FROM sandbox_tenant_daily_counters')).toEqual([
      { count: 100 },
    ]);
  });
});

describeOnBoth('caps', (engine) => {
  it(
    proves(
      'are changed at run time, each by itself, 0 stops everything, windows roll over',
      'QU-02',
    ),
    async () => {
      const odd: Odd = {};
      await using world = await openCodeWorld({
        storeUrl: await engine.storeUrl(),
        replicas: engine.mostReplicas,
        wrap: (db) => new OddDb(db, odd),
      });
      const set = (body: object) => ask(world.url(), 'PATCH', '/admin/quotas', { as: ADMIN, body });
      for (const dimension of ['tenant_daily', 'agent_hourly'] as const) {
        await set({ [dimension]: 0 });
        for (let turn = 0; turn < engine.mostReplicas; turn++) {
          const { json } = await world.code({ code: 'true' }, { turn });
          expect(json).toMatchObject({ ok: false, error: 'SandboxCapExceeded', dimension });
        }
        await set({ [dimension]: 1000 });
      }
      const statuses = (await world.rows()).map(({ exit_status }) => exit_status);
      expect(new Set(statuses)).toEqual(new Set(['cap_exceeded']));
      // The hour is full while the day has room: nothing is taken from the day.
      await set({ tenant: 'default', agent_hourly: 1 });
      expect((await world.code({ code: 'true' })).json.ok).toBe(true);
      const over = await world.code({ code: 'true' });
      expect(over.json).toMatchObject({ dimension: 'agent_hourly' });
      expect(await world.db.query('SELECT count FROM sandbox_tenant_daily_counters')).toEqual([
        { count: 1 },
      ]);
      await set({ tenant: 'default', agent_hourly: 1000 });
      // 50 takes across midnight.
      const day = 86_400_000;
      const nowMs = await world.db.now();
      odd.aheadMs = day - (nowMs % day) - 100;
      const quotas = new Quotas(new OddDb(world.db, odd));
      const before = Date.now();
      const taken: Promise<unknown>[] = [];
      while (Date.now() - before < 250 || taken.length < 50) {
        taken.push(quotas.take('acme', 'agent'));
        await new Promise((resolve) => setTimeout(resolve, 4));
      }
      await Promise.all(taken);
      const rows = await world.db.query(
        "SELECT starts_at, count FROM sandbox_tenant_daily_counters WHERE tenant = 'acme' ORDER BY starts_at",
      );
      const hours = await world.db.query(
        "SELECT count FROM sandbox_agent_hourly_counters WHERE tenant = 'acme'",
      );
      const sum = (list: readonly Row[]) =>
        list.reduce((all, row) => all + Number(row['count']), 0);
      expect(rows).toHaveLength(2);
      expect(Number(rows[1]?.['starts_at']) - Number(rows[0]?.['starts_at'])).toBe(day);
      expect([sum(rows), sum(hours)]).toEqual([taken.length, taken.length]);
      await set({ tenant: 'acme', tenant_daily: 1 });
      expect(await quotas.take('acme', 'agent')).toMatchObject({
        kind: 'breach',
        resetsAtMs: Number(rows[1]?.['starts_at']) + day,
      });
      const list = await ask(world.url(), 'GET', '/admin/quotas', { as: ADMIN });
      expect(list.json.items.map(({ tenant }: { tenant?: string }) => tenant)).toEqual([
        undefined,
        'acme',
        'default',
      ]);
    },
  );

  it(
    proves('and rows of calls are never rewritten, and go when their time is over', 'QU-04'),
    async () => {
      await using world = await openCodeWorld({ storeUrl: await engine.storeUrl() });
      await world.code({ code: 'echo kept' });
      const { db } = world;
      const before = await world.rows();
      const output = await db.query('SELECT * FROM sandbox_invocation_outputs');
      expect([before.length, output.length]).toEqual([1, 1]);
      const columns = Object.keys(before[0] ?? {});
      const values = columns.map((name) => before[0]?.[name] ?? null);
      const marks = columns.map(() => '?').join(', ');
      const insert = `INSERT INTO sandbox_invocations (${columns.join(', ')}) VALUES (${marks})`;
      const rewrites: readonly (readonly [string, (readonly Bind[])?])[] = [
        ["UPDATE sandbox_invocations SET exit_status = 'ok', agent_id = 'x'"],
        ['DELETE FROM sandbox_invocations'],
        ["UPDATE sandbox_invocation_outputs SET stream = 'stderr'"],
        ['DELETE FROM sandbox_invocation_outputs'],
        [`${insert} ON CONFLICT (id) DO UPDATE SET agent_id = 'x'`, values],
        ["UPDATE audit SET event = 'x'"],
        ['DELETE FROM audit'],
        ...(engine.name === 'SQLite'
          ? ([[insert.replace('INSERT', 'REPLACE'), values]] as const)
          : ([
              ['TRUNCATE sandbox_invocations'],
              ['TRUNCATE sandbox_invocation_outputs'],
              ['TRUNCATE audit'],
            ] as const)),
      ];
      for (const [sql, binds] of rewrites) await expect(db.run(sql, binds), sql).rejects.toThrow();
      expect(await world.rows()).toEqual(before);
      expect(await db.query('SELECT * FROM sandbox_invocation_outputs')).toEqual(output);
      const row = (id: string, createdAt: number, days: number) =>
        columns.map((name) => {
          if (name === 'id') return id;
          if (name === 'created_at') return createdAt;
          if (name === 'retention_days') return days;
          if (name === 'expires_at') return createdAt + days * 86_400_000;
          return before[0]?.[name] ?? null;
        });
      const nowMs = await db.now();
      await expect(db.run(insert, row('inv_long', nowMs, 181))).rejects.toThrow();
      const patch = { as: ADMIN, body: { audit_retention_days: 181 } };
      expect((await ask(world.url(), 'PATCH', '/admin/tenants/default', patch)).status).toBe(400);
      await db.run(insert, row('inv_old', nowMs - 31 * 86_400_000, 30));
      await db.run(insert, row('inv_due', nowMs - 29 * 86_400_000, 30));
      const parts = { db } as Parameters<typeof purgeExpired>[0];
      expect(await purgeExpired(parts)).toBe(1);
      expect((await world.rows()).map(({ id }) => id).sort()).toEqual(
        [String(before[0]?.['id']), 'inv_due'].sort(),
      );
      const audit = await db.query("SELECT details FROM audit WHERE event = 'invocations.purged'");
      expect(audit.map(({ details }) => JSON.parse(String(details)))).toEqual([
        { rows: 1, reason: 'retention' },
      ]);
    },
  );
});

describeOnBoth('a call for which something is not in order', (engine) => {
  it(proves('runs no code, says so, and leaves a row and no session', 'QU-05'), async () => {
    const odd: Odd = {};
    let isRedacting = true;
    const storeUrl = await engine.storeUrl();
    await using world = await openCodeWorld({
      storeUrl,
      wrap: (db) => new OddDb(db, odd),
      code: {
        redactor: () =>
          isRedacting
            ? { push: () => Buffer.from(''), end: () => Buffer.from('[secret]') }
            : { push: (bytes) => bytes, end: () => Buffer.from('') },
      },
      provider: (daemon) =>
        new Proxy<Provider>(daemon, {
          get: (target, key) => {
            const value: unknown = Reflect.get(target, key);
            if (key === 'create' && isBroken) return () => Promise.reject(new Error('no room'));
            return typeof value === 'function' ? value.bind(target) : value;
          },
        }),
    });
    let isBroken = false;
    const tenant = (body: object) =>
      ask(world.url(), 'PATCH', '/admin/tenants/default', { as: ADMIN, body });
    const expectRefused = async (language = 'bash', as = { sub: 'usr_alice' }) => {
      const rows = (await world.rows()).length;
      const { status, json } = await world.code({ code: 'touch /tmp/ran', language }, { as });
      expect({ status, json }).toMatchObject({
        status: 200,
        json: { ok: false, error: 'SandboxProvisioning', exit_status: 'provisioning', stdout: '' },
      });
      const after = await world.rows();
      expect(after).toHaveLength(rows + 1);
      expect(after.filter(({ exit_status }) => exit_status !== 'provisioning')).toEqual([]);
      const open = 'SELECT id FROM sessions WHERE ended_at IS NULL';
      expect(await world.db.query(open)).toEqual([]);
    };
    await tenant({ sandbox_enabled: false });
    await expectRefused();
    await tenant({ sandbox_enabled: true });
    await expectRefused('bash', { sub: 'usr_alice', tenant: 'nobody-let-it-in' } as {
      sub: string;
    });
    odd.fails = (sql) => sql.includes('SELECT tenants.*');
    await expectRefused();
    delete odd.fails;
    await tenant({ environment: 'internal-only' });
    await expectRefused();
    await tenant({ environment: 'default-public' });
    isBroken = true;
    await expectRefused();
    isBroken = false;
    isRedacting = false;
    await expectRefused();
    const counted = await world.db.query('SELECT count FROM sandbox_tenant_daily_counters');
    // Refused by policy, nothing is counted.
    expect(counted).toEqual([{ count: 3 }]);
    isRedacting = true;
    expect((await world.code({ code: 'echo x' })).json.ok).toBe(true);
  });
});

describeOnBoth('the output of a call', (engine) => {
  it(
    proves('is cut on a character, counted raw, kept whole and never shows a secret', 'QU-06'),
    async () => {
      await using world = await openCodeWorld({ storeUrl: await engine.storeUrl() });
      const wide = await world.code({
        language: 'python',
        turn_id: 't',
        code: `import sys
s = "\\u20ac" * (1024 * 1024 // 3)
sys.stdout.write(s)
sys.stderr.write(s)`,
      });
      const raw = Math.floor((1024 * 1024) / 3) * 3;
      expect(wide.json).toMatchObject({
        ok: true,
        stdout_bytes: raw,
        stderr_bytes: raw,
        stdout_truncated: true,
        stderr_truncated: true,
      });
      for (const [stream, limit] of [
        ['stdout', 262_144],
        ['stderr', 32_768],
      ] as const) {
        const text: string = wide.json[stream];
        expect(/^\u20ac+$/.test(text)).toBe(true);
        expect(Buffer.byteLength(text)).toBe(limit - (limit % 3));
        const [kept] = await world.db.query(
          `SELECT SUM(LENGTH(data)) AS bytes FROM sandbox_invocation_outputs
          WHERE invocation_id = ? AND stream = ?`,
          [wide.json.invocation_id, stream],
        );
        expect(Number(kept?.['bytes'])).toBe(raw);
      }
      const secret = `ghp_${createHash('sha256').update('x').digest('hex').slice(0, 36)}`;
      const split = await world.code({
        language: 'python',
        turn_id: 't',
        code: `import os
s = ${JSON.stringify(secret.slice(0, 20))} + ${JSON.stringify(secret.slice(20))}
b = s.encode()
os.write(1, b"whole " + b + b"\\n")
for at in range(1, len(b)):
    os.write(1, b[:at]); os.write(1, b[at:] + b"\\n")
for one in b: os.write(1, bytes([one]))
os.write(1, b"\\n" + b"." * 200)
`,
      });
      expect(split.json.ok).toBe(true);
      expect(split.json.stdout).toBe(
        `whole [secret]\n${'[secret]\n'.repeat(secret.length)}${'.'.repeat(200)}`,
      );
      const across = await world.code({
        language: 'python',
        turn_id: 't',
        code: `import sys
s = ${JSON.stringify(secret.slice(0, 20))} + ${JSON.stringify(secret.slice(20))}
sys.stdout.write("." * (262144 - 10) + " " + s + " after")`,
      });
      expect(across.json.stdout.slice(-11)).toBe('. [secret] ');
      const stored = await world.db.query('SELECT data FROM sandbox_invocation_outputs');
      const all = [
        JSON.stringify(split.json) + JSON.stringify(across.json),
        ...stored.map(({ data }) =>
          data instanceof Uint8Array ? Buffer.from(data).toString('latin1') : '',
        ),
        ...world.log,
      ];
      for (const text of all) expect(text.includes(secret.slice(4, 24))).toBe(false);
    },
  );
});
