/** What owners and administrators do besides sessions: sandboxes, tenants, clients, trusted workloads, the audit. */
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SandboxId } from '../../../src/protocol/ids.js';
import type { Scope } from '../../../src/protocol/scopes.js';
import { Audit } from '../../../src/server/store/audit.js';
import { eventually } from '../../support/eventually.js';
import { ask, ensure } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { RecordingDb } from './support/plans.js';
import { openReplica, tokenOf } from './support/replica.js';
import { openWorld, type World } from './support/world.js';

const BOB = { sub: 'usr_bob' };
const ADMIN_SCOPES: readonly Scope[] = ['admin:sandbox', 'read:sandbox', 'write:sandbox'];
const ADMIN = { sub: 'usr_root', scopes: ADMIN_SCOPES };

describeOnBoth('the faces beside the sessions', (engine) => {
  let world: World;

  beforeAll(async () => {
    world = await openWorld({ storeUrl: await engine.storeUrl() });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const at = (method: string, path: string, body?: object, as: typeof ADMIN | typeof BOB = ADMIN) =>
    ask(world.url(), method, path, { as, ...(body && { body }) });
  const events = async (event: string) =>
    (await new Audit(world.db).list({ event }, { limit: 100 })).entries;

  it('an owner renames, stops and starts a sandbox; it keeps its id, and others find nothing', async () => {
    const { json } = await ensure(world.url(), 'thr_own');
    const id: SandboxId = json.sandbox.id;
    const path = `/v1/sandboxes/${id}`;
    const own = (method: string, rest = '', body?: object) =>
      ask(world.url(), method, `${path}${rest}`, body && { body });
    const steps: readonly (readonly [method: string, rest: string, body?: object])[] = [
      ['PATCH', '', { name: 'mine now' }],
      ['POST', '/stop', {}],
      ['POST', '/start', {}],
    ];
    for (const [method, rest, body] of steps)
      expect(await at(method, `${path}${rest}`, body, BOB)).toMatchObject({ status: 404 });
    expect((await world.provider.look(id))?.state).toBe('running');

    const renamed = await own('PATCH', '', { name: 'build box' });
    expect(renamed).toMatchObject({ status: 200, json: { id, name: 'build box' } });
    expect((await own('GET')).json.name).toBe('build box');
    expect(await own('PATCH', '', { name: '' })).toMatchObject({ status: 400 });
    expect(await events('sandbox.renamed')).toMatchObject([
      { sandboxId: id, subject: 'usr_alice', details: { name: 'build box' } },
    ]);

    for (let twice = 0; twice < 2; twice++) {
      const stopped = await own('POST', '/stop', {});
      expect(stopped).toMatchObject({ status: 200, json: { id, state: 'suspended' } });
      expect((await world.provider.look(id))?.state).toBe('stopped');
    }
    for (let twice = 0; twice < 2; twice++) {
      const started = await own('POST', '/start', {});
      expect(started).toMatchObject({ status: 200, json: { id, state: 'active' } });
      expect((await world.provider.look(id))?.state).toBe('running');
    }
    expect((await ensure(world.url(), 'thr_own')).json.sandbox.id).toBe(id);
    expect((await own('DELETE')).status).toBe(204);
    for (const [method, rest, body] of steps)
      expect((await own(method, rest, body)).status).toBe(404);
    expect(await world.provider.look(id)).toBeUndefined();
  });

  it('the administration is for administrators: anybody else is 403, and changes nothing', async () => {
    const trust = {
      issuer: 'https://ci.example',
      audience: 'a',
      claims: { repository: 'a/b' },
      subject: 'svc_ci',
      tenant: 'default',
      scopes: [],
    };
    const policy = { sidecar: null, environment: {}, capability_ceiling: null };
    for (const [method, path, body] of [
      ['GET', '/admin/sandboxes'],
      ['GET', '/admin/audit'],
      ['GET', '/admin/tenants/default'],
      ['PATCH', '/admin/tenants/default', { sandbox_enabled: false }],
      ['GET', '/admin/clients'],
      ['PUT', '/admin/clients/c1', policy],
      ['DELETE', '/admin/clients/c1'],
      ['GET', '/admin/workload-trust'],
      ['POST', '/admin/workload-trust', trust],
      ['DELETE', '/admin/workload-trust/trust_1'],
    ] as const)
      expect((await at(method, path, body, BOB)).status, `${method} ${path}`).toBe(403);
    expect((await at('GET', '/admin/tenants/default')).json.sandbox_enabled).toBe(true);
    expect((await at('GET', '/admin/clients')).json.items).toEqual([]);
    expect((await at('GET', '/admin/workload-trust')).json.items).toEqual([]);
  });

  it('a tenant begins shut, is let in, and when it is switched off its tokens end, and no one else’s', async () => {
    const path = '/admin/tenants/mid';
    expect((await at('GET', path)).status).toBe(404);
    const begun = await at('PATCH', path, { token_mode: 'jwt' });
    expect(begun.json).toMatchObject({ id: 'mid', sandbox_enabled: false });
    const mid = { sub: 'usr_mid', tenant: 'mid' };
    expect((await ensure(world.url(), 'thr_mid', { as: mid })).status).toBe(403);
    // Tenants that come before and after it by name.
    for (const id of ['mia', 'mie', 'mid'])
      expect((await at('PATCH', `/admin/tenants/${id}`, { sandbox_enabled: true })).status).toBe(
        200,
      );
    const made = async (tenant: string): Promise<SandboxId> => {
      const as = { sub: `usr_${tenant}`, tenant };
      return (await ensure(world.url(), `thr_${tenant}`, { as })).json.sandbox.id;
    };
    const [before, ours, after] = [await made('mia'), await made('mid'), await made('mie')];
    const keyOf = async (id: SandboxId) => (await world.provider.look(id))?.access.keys[0];
    const keys = [await keyOf(before), await keyOf(ours), await keyOf(after)];

    const off = await at('PATCH', path, { sandbox_enabled: false });
    expect(off.json).toMatchObject({ sandbox_enabled: false, token_mode: 'jwt' });
    // The key that every token of its sandboxes was signed with counts no more.
    await eventually(async () => (await keyOf(ours)) !== keys[1]);
    expect([await keyOf(before), await keyOf(after)]).toEqual([keys[0], keys[2]]);
    const again = await ensure(world.url(), 'thr_mid', { as: mid });
    expect(again).toMatchObject({ status: 403, json: { error: { code: 'FORBIDDEN' } } });
    const changes = await events('tenant.changed');
    expect(changes.map(({ details }) => details?.['sandbox_enabled'])).toEqual([
      false,
      true,
      true,
      true,
      false,
    ]);
    expect(changes.every(({ subject }) => subject === ADMIN.sub)).toBe(true);
  });

  it('a client’s policy is set, read, listed and removed; its variables are not told to the audit', async () => {
    const policy = {
      sidecar: { image: 'proxy:1', audience: 'https://api.example', scopes: ['read'] },
      environment: { API_KEY: 'hunter2-value' },
      capability_ceiling: ['fs:ro'],
    };
    const set = await at('PUT', '/admin/clients/narrow', policy);
    expect(set).toMatchObject({ status: 200, json: { client_id: 'narrow', ...policy } });
    expect((await at('GET', '/admin/clients/narrow')).json).toEqual({
      client_id: 'narrow',
      ...policy,
    });
    expect((await at('GET', '/admin/clients')).json.items).toEqual([
      { client_id: 'narrow', ...policy },
    ]);
    const bad = await at('PUT', '/admin/clients/narrow', {
      ...policy,
      capability_ceiling: ['fly'],
    });
    expect(bad).toMatchObject({ status: 400, json: { error: { field: 'capability_ceiling' } } });
    const as = { sub: 'usr_alice', clientId: 'narrow' };
    const body = { requested_capabilities: ['fs:rw', 'shell'] };
    const got = await ensure(world.url(), 'thr_narrow', { as, body });
    expect(
      got.json.credentials?.scopes ?? got.json.scopes ?? payloadOf(got.json.token).scope,
    ).toEqual('fs:ro');
    expect((await at('DELETE', '/admin/clients/narrow')).status).toBe(204);
    expect((await at('DELETE', '/admin/clients/narrow')).status).toBe(404);
    expect((await at('GET', '/admin/clients/narrow')).status).toBe(404);
    const told = JSON.stringify([await events('client.changed'), await events('client.removed')]);
    expect(told).toContain('API_KEY');
    expect(told).not.toContain('hunter2-value');
  });

  it('a trusted workload needs claims, is listed in pages and is removed once', async () => {
    const trust = (name: string) => ({
      issuer: 'https://ci.example',
      audience: 'ailsd',
      claims: { repository: `acme/${name}` },
      subject: `svc_${name}`,
      tenant: 'default',
      scopes: ['read:sandbox'],
    });
    const open = await at('POST', '/admin/workload-trust', { ...trust('x'), claims: {} });
    expect(open).toMatchObject({ status: 400, json: { error: { field: 'claims' } } });
    const made = [];
    for (const name of ['a', 'b', 'c']) {
      const added = await at('POST', '/admin/workload-trust', trust(name));
      expect(added).toMatchObject({ status: 201, json: trust(name) });
      made.push(added.json.id);
    }
    const first = await at('GET', '/admin/workload-trust?limit=2');
    const rest = await at('GET', `/admin/workload-trust?limit=2&cursor=${first.json.next_cursor}`);
    const listed = [...first.json.items, ...rest.json.items].map(({ id }) => id);
    expect(listed).toEqual([...made].sort());
    expect((await at('DELETE', `/admin/workload-trust/${made[0]}`)).status).toBe(204);
    expect((await at('DELETE', `/admin/workload-trust/${made[0]}`)).status).toBe(404);
    expect(await events('trust_added')).toHaveLength(3);
    expect(await events('trust_removed')).toMatchObject([{ details: { id: made[0] } }]);
  });

  it('an administrator sees and ends anybody’s sandbox, and both are recorded', async () => {
    const { json } = await ensure(world.url(), 'thr_killed');
    const { id } = json.sandbox;
    const all = await at('GET', '/admin/sandboxes?thread_id=thr_killed');
    expect(all.json.items).toMatchObject([{ id, owner: 'usr_alice', tenant: 'default' }]);
    const kill = () => at('DELETE', `/admin/sandboxes/${id}`);
    expect((await kill()).status).toBe(204);
    expect((await kill()).status).toBe(404);
    expect(await world.provider.look(id)).toBeUndefined();
    expect(await events('admin.listed_sandboxes')).not.toEqual([]);
  });

  it('the audit is exported as JSON lines, all of it, while little of it is held, and a caller that leaves ends it', async () => {
    const ROWS = 12_000;
    await world.db.run(`INSERT INTO audit (at, event, tenant, details)
      SELECT i, 'test.bulk', 'default', '{"text":"${'x'.repeat(3_500)}"}' FROM (WITH RECURSIVE n(i) AS
        (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS}) SELECT i FROM n) AS numbers`);
    const path = '/admin/audit?format=jsonl&event=test.bulk';
    const db = new RecordingDb(world.db);
    await using replica = await openReplica({ db, provider: world.provider, jobs: false });
    // For one that takes nothing little is read: what fits between the two ends, and a page.
    const stalled = await exportOf(replica.url, path);
    stalled.pause();
    const pages = await untilStill(() => db.queries);
    expect(pages).toBeLessThan(ROWS / 500 / 2);
    stalled.destroy();

    const whole = await exportOf(replica.url, path);
    let bytes = 0;
    let lines = 0;
    let last = 0;
    let part = '';
    for await (const chunk of whole) {
      bytes += chunk.length;
      const found = `${part}${chunk}`.split('\n');
      part = found.pop() ?? '';
      for (const line of found) {
        const { id, event } = JSON.parse(line);
        if (event !== 'test.bulk' || Number(id) <= last) throw new Error(`out of order: ${line}`);
        last = Number(id);
        lines += 1;
      }
    }
    expect(part).toBe('');
    expect(lines).toBe(ROWS);
    expect(bytes).toBeGreaterThan(40_000_000);
    // The one that left has not been read for any more.
    expect(db.queries).toBeLessThan(pages + ROWS / 500 + 5);
    expect(await events('audit.exported')).toMatchObject([
      { subject: ADMIN.sub },
      { subject: ADMIN.sub },
    ]);
  });

  function exportOf(url: string, path: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${tokenOf(ADMIN)}` };
      const outgoing = request(`${url}${path}`, { headers, agent: false }, resolve);
      outgoing.on('error', reject);
      outgoing.end();
    });
  }
});

/** A figure that has been the same for a while. */
async function untilStill(read: () => number): Promise<number> {
  for (let before = -1; ; ) {
    const now = read();
    if (now === before && now > 0) return now;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

function payloadOf(token: string): { readonly scope: string } {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}
