/** Another owner's sessions, sandboxes and what belongs to them do not exist: on every route there is, to the last header. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Principal } from '../../../src/protocol/principal.js';
import type { Route } from '../../../src/protocol/routes/route.js';
import { ROUTES, routeNames } from '../../../src/protocol/routes.js';
import { LOGIN_SCOPES } from '../../../src/protocol/scopes.js';
import { Tenants } from '../../../src/server/store/tenants.js';
import { proves } from '../../requirements.js';
import { HANDSHAKE, rawRequest } from '../relay/support/raw.js';
import { ALICE, ask, ensure, type Reply } from './support/client.js';
import { tokenOf } from './support/replica.js';
import { openWorld, type World } from './support/world.js';

const BOB = { sub: 'usr_bob' };
const EVE = { sub: 'usr_alice', tenant: 'elsewhere' };
const ADMIN = { sub: 'usr_root', scopes: [...LOGIN_SCOPES, 'admin:sandbox'] as const };

type Ids = Readonly<Record<string, string>>;

let world: World;
let hers: Ids;
let his: Ids;

beforeAll(async () => {
  world = await openWorld();
  await new Tenants(world.db).put({
    id: 'elsewhere',
    isSandboxEnabled: true,
    environment: 'default-public',
    tokenMode: 'jwt',
    auditRetentionDays: 30,
  });
  hers = await belongings(ALICE, 'thr_hers');
  his = await belongings(BOB, 'thr_his');
});

afterAll(() => world[Symbol.asyncDispose]());

async function belongings(as: { readonly sub: string }, thread: string): Promise<Ids> {
  const { json } = await ensure(world.url(), thread, { as, headers: { Prefer: 'wait=10' } });
  const grant = await ask(world.url(), 'POST', `/v1/sandbox/sessions/${json.session_id}/grants`, {
    as,
    body: { grantee: { type: 'user', id: 'usr_carol' }, capabilities: ['fs:ro'] },
  });
  expect(grant.status).toBe(201);
  const snapshot = `snap_${randomName()}`;
  await world.db.run(
    `INSERT INTO snapshots (id, tenant, owner, session_id, sandbox_id, state, created_at)
      VALUES (?, 'default', ?, ?, ?, 'kept', 0)`,
    [snapshot, as.sub, json.session_id, json.sandbox.id],
  );
  return {
    session_id: json.session_id,
    sandbox_id: json.sandbox.id,
    thread_id: thread,
    grant_id: grant.json.id,
    snapshot_id: snapshot,
    command_id: 'cmd_1',
    shell_id: 'sh_1',
    token: json.token,
  };
}

function randomName(): string {
  const letters = '0123456789abcdefghjkmnpqrstvwxyz';
  return Array.from(randomBytes(26), (byte) => letters[byte & 31]).join('');
}

function nobodys(): Ids {
  return {
    session_id: `ssn_${randomName()}`,
    sandbox_id: `sb_${randomName()}`,
    thread_id: `thr_${randomName()}`,
    grant_id: `grant_${randomName()}`,
    snapshot_id: `snap_${randomName()}`,
    command_id: `cmd_${randomName()}`,
    shell_id: `sh_${randomName()}`,
    token: hers['token'] ?? '',
  };
}

const FAMILIES = ['sessions', 'threads', 'sandboxes', 'commands', 'sharing'];

/** Every route of the broker with an id in its path. */
const routes = routeNames().flatMap((name) => {
  const route: Route = ROUTES[name];
  const isOurs = FAMILIES.includes(route.family) && route.path.includes('{');
  return isOurs && name !== 'negotiateThreadSandbox' ? [{ name, route }] : [];
});

function bodyOf(name: string, ids: Ids): object {
  const bodies: Record<string, object> = {
    createGrant: { grantee: { type: 'user', id: 'usr_dave' }, capabilities: ['fs:ro'] },
    downscopeToken: { current_token: ids['token'], scopes: ['fs:ro'] },
    revokeSandboxToken: { jti: `tok_${'0'.repeat(26)}` },
    createInvite: { endpoint: 'execute' },
    refreshThreadSandbox: { current_token: ids['token'] },
    refreshSession: { current_token: ids['token'] },
    refreshBindingToken: { current_token: ids['token'] },
    renameSandbox: { name: 'mine now' },
    runCommand: { argv: ['id'] },
  };
  return bodies[name] ?? {};
}

function pathOf({ path }: Route, ids: Ids): string {
  return path.replace(/\{([a-z_]+)\}/g, (_, name: string) => ids[name] ?? '');
}

/** Status, headers and body, without what differs between any two answers. */
async function answer(
  { name, route }: (typeof routes)[number],
  ids: Ids,
  as: Partial<Principal> & { readonly sub: string },
): Promise<object> {
  if (route.method === 'WS') {
    const { port } = new URL(world.url());
    const text = await rawRequest(Number(port), [
      `GET ${pathOf(route, ids)} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${tokenOf(as)}`,
      ...HANDSHAKE,
    ]);
    return { text: text.replace(/req_\w+/g, 'req').replace(/Date: .*/, '') };
  }
  const reply = await ask(world.url(), route.method, pathOf(route, ids), {
    as,
    ...(route.request !== undefined && { body: bodyOf(name, ids) }),
  });
  const { date, 'x-request-id': requestId, ...headers } = reply.headers;
  const { request_id, ...error } = reply.json?.error ?? {};
  expect(request_id).toBe(requestId);
  return { status: reply.status, headers, error };
}

describe("another owner's things", () => {
  it(proves(
    'answer on every route as things that never were; lists, threads and admins too',
    'BR-04',
  ), async () => {
    expect(routes.length).toBeGreaterThan(25);
    for (const route of routes) {
      for (const as of [BOB, EVE]) {
        const toHers = await answer(route, hers, as);
        const toNothing = await answer(route, nobodys(), as);
        expect({ route: route.name, ...toHers }).toEqual({ route: route.name, ...toNothing });
        expect(JSON.stringify(toHers), route.name).toMatch(/"status":404|HTTP\/1\.1 404/);
      }
      // One's own session with another's grant or snapshot.
      const mixed = {
        ...his,
        grant_id: hers['grant_id'] ?? '',
        snapshot_id: hers['snapshot_id'] ?? '',
      };
      if (!/grant_id|snapshot_id/.test(route.route.path)) continue;
      const none = { ...nobodys(), session_id: his['session_id'] ?? '' };
      expect(await answer(route, mixed, BOB)).toEqual(await answer(route, none, BOB));
    }

    const secrets = [hers['session_id'], hers['sandbox_id'], 'thr_hers', hers['grant_id']];
    for (const path of [
      '/v1/sandboxes',
      '/v1/sandbox/sessions',
      '/v1/sandboxes?thread_id=thr_hers',
    ]) {
      for (const as of [BOB, EVE]) {
        const { status, json } = await ask(world.url(), 'GET', path, { as });
        expect(status).toBe(200);
        for (const secret of secrets) expect(JSON.stringify(json)).not.toContain(secret);
      }
    }

    const get = (as: typeof BOB | typeof EVE) =>
      ensure(world.url(), 'thr_hers', { as, body: { mode: 'get' } });
    expect((await get(BOB)).json.error.code).toBe('SESSION_NOT_FOUND');
    const refused = await ensure(world.url(), 'thr_hers', { as: BOB });
    expect([refused.status, refused.json.error.code]).toEqual([403, 'FORBIDDEN']);
    const byThread = await ask(world.url(), 'POST', '/threads/thr_hers/sandbox', {
      as: BOB,
      body: {},
    });
    expect([byThread.status, byThread.json.error.code]).toEqual([403, 'FORBIDDEN']);
    const own = await ensure(world.url(), 'thr_hers', { as: EVE, headers: { Prefer: 'wait=10' } });
    expect(own.status).toBe(200);
    expect(own.json.session_id).not.toBe(hers['session_id']);

    const asAdmin = (path: string): Promise<Reply> => ask(world.url(), 'GET', path, { as: ADMIN });
    const sandbox = await asAdmin(`/v1/sandboxes/${hers['sandbox_id']}`);
    expect([sandbox.status, sandbox.json.owner]).toEqual([200, 'usr_alice']);
    expect((await asAdmin(`/v1/sandbox/sessions/${hers['session_id']}`)).status).toBe(200);
    const all = await asAdmin('/admin/sandboxes');
    expect(JSON.stringify(all.json)).toContain(hers['sandbox_id']);
    const audit = await asAdmin('/admin/audit?event=admin.access&sub=usr_root');
    expect(audit.json.items).toHaveLength(2);
    expect(audit.json.items[0]).toMatchObject({
      event: 'admin.access',
      sub: 'usr_root',
      sandbox_id: hers['sandbox_id'],
      request_id: sandbox.headers['x-request-id'],
    });
    // Nothing of hers was touched.
    const still = await ask(world.url(), 'GET', `/v1/sandboxes/${hers['sandbox_id']}`);
    expect(still.json).toMatchObject({ state: 'active', session_id: hers['session_id'] });
    expect(still.json.name).toBeUndefined();
  }, 60_000);
});
