/** What callers of the session and thread routes are answered: modes, faces, words, owners. */
import { expect, it } from 'vitest';
import { newId } from '../../../src/protocol/ids.js';
import { parseAnswer } from '../../../src/protocol/parse.js';
import { sandboxWhy } from '../../../src/protocol/shapes/sandboxes.js';
import {
  heartbeatAnswer,
  refreshAnswer,
  sessionAnswer,
  sessionPage,
  sessionState,
} from '../../../src/protocol/shapes/sessions.js';
import { threadRefreshAnswer, threadSandboxAnswer } from '../../../src/protocol/shapes/threads.js';
import { Audit } from '../../../src/server/store/audit.js';
import { Grants } from '../../../src/server/store/grants.js';
import { Tenants } from '../../../src/server/store/tenants.js';
import { ALICE, ask, ensure } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld } from './support/world.js';

const BOB = { sub: 'usr_bob' };
const SESSIONS = '/v1/sandbox/sessions';

describeOnBoth('sessions', (engine) => {
  it.concurrent('every face answers in its own shape about the same session', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const url = world.url();
    const mvp = await ensure(url, '..', { body: { unknown_field: { deep: [1] } } });
    expect(known(sessionAnswer, mvp.json)).not.toHaveProperty('binding');
    const full = await ask(url, 'POST', SESSIONS, {
      body: {
        scope: { type: 'thread', id: '..' },
        mode: 'attach_only',
        actor: { type: 'human', id: 'usr_1' },
        requested_capabilities: ['fs_read', 'fs_write', 'shell', 'exec'],
        provider_preference: 'auto',
      },
    });
    known(sessionAnswer, full.json);
    expect(full.json).toMatchObject({
      session_id: mvp.json.session_id,
      binding: { id: mvp.json.session_id, state: 'active', scope: { type: 'thread', id: '..' } },
      dataplane: { http_base_url: mvp.json.sandbox.http_base_url },
      credentials: {
        token_type: 'Bearer',
        granted_capabilities: ['fs_read', 'fs_write', 'shell', 'exec'],
      },
      policy: { idle_timeout_seconds: 900, hard_ttl_seconds: 28_800 },
    });
    const thread = await ask(url, 'GET', '/threads/%2E%2E/sandbox');
    known(threadSandboxAnswer, thread.json);
    expect(thread.json).toMatchObject({
      sandbox_id: mvp.json.sandbox.id,
      session_id: mvp.json.session_id,
      scopes: ['fs:rw', 'shell'],
      endpoints: { http: mvp.json.sandbox.http_base_url },
    });
    const path = `${SESSIONS}/${mvp.json.session_id}`;
    known(sessionState, (await ask(url, 'GET', path)).json);
    known(sessionPage, (await ask(url, 'GET', SESSIONS)).json);
    known(heartbeatAnswer, (await ask(url, 'POST', `${path}/heartbeat`, { body: {} })).json);
    known(heartbeatAnswer, (await ask(url, 'POST', '/threads/%2E%2E/sandbox/heartbeat')).json);
    const refreshed = await ask(url, 'POST', `${path}/refresh`, { body: {} });
    expect(known(refreshAnswer, refreshed.json)).not.toHaveProperty('credentials');
    const renewed = await ask(url, 'POST', `${path}/refresh-token`, {
      body: { current_token: refreshed.json.token, ttl: 10 },
    });
    known(refreshAnswer, renewed.json);
    expect(renewed.json.credentials.access_token).toBe(renewed.json.token);
    expect(renewed.json.adjustments).toEqual([{ field: 'ttl', requested: 10, granted: 60 }]);
    const byThread = await ask(url, 'POST', '/threads/%2E%2E/sandbox/refresh', {
      body: { current_token: thread.json.token },
    });
    expect(known(threadRefreshAnswer, byThread.json)).toBeDefined();
    const why = await ask(url, 'GET', `/v1/sandboxes/${mvp.json.sandbox.id}/why`);
    known(sandboxWhy, why.json);
    expect((await ask(url, 'DELETE', '/threads/%2E%2E/sandbox')).status).toBe(204);
    expect(await ask(url, 'GET', path)).toMatchObject({
      status: 404,
      json: { error: { code: 'BINDING_NOT_FOUND' } },
    });
  });

  it.concurrent('modes, hints and preferences decide what may be found and what may be made', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const url = world.url();
    const mode = (thread: string, body: object, as = ALICE) => ensure(url, thread, { body, as });
    expect(await mode('thr_a', { mode: 'get' })).toMatchObject({
      status: 404,
      json: { error: { code: 'SESSION_NOT_FOUND' } },
    });
    expect(await mode('thr_a', { mode: 'attach_only' })).toMatchObject({
      status: 404,
      json: { error: { code: 'BINDING_NOT_FOUND' } },
    });
    const made = await mode('thr_a', { mode: 'create_only' });
    expect(made.status).toBe(200);
    expect(await mode('thr_a', { mode: 'create_only' })).toMatchObject({
      status: 409,
      json: { error: { code: 'BINDING_CONFLICT' } },
    });
    for (const bad of ['ENSURE', 'delete', '', null, 7])
      expect(await mode('thr_a', { mode: bad })).toMatchObject({
        status: 400,
        json: { error: { code: 'INVALID_REQUEST', field: 'mode' } },
      });
    const hint = made.json.sandbox.id;
    const same = await mode('thr_a', { sandbox_hint: hint });
    expect(same.json.sandbox.id).toBe(hint);
    expect(await mode('thr_b', { sandbox_hint: hint })).toMatchObject({
      status: 409,
      json: { error: { code: 'BINDING_CONFLICT', field: 'sandbox_hint' } },
    });
    const thread = await ask(url, 'POST', '/threads/thr_b/sandbox', { body: { sandbox_id: hint } });
    expect(thread).toMatchObject({ status: 409, json: { error: { code: 'SESSION_CONFLICT' } } });
    // What is another's, or gone, or never was, is not told apart.
    const bobs = await mode('thr_bob', { sandbox_hint: hint }, BOB);
    expect(bobs.status).toBe(200);
    const gone = await mode('thr_c', { sandbox_hint: 'sb_never', provider_preference: 'e2b' });
    expect(gone).toMatchObject({ status: 200, json: { binding: { provider: 'folder' } } });
    await ask(url, 'DELETE', `${SESSIONS}/${made.json.session_id}`);
    expect((await mode('thr_b', { sandbox_hint: hint })).status).toBe(200);
    for (const [ttl, granted] of [
      [0, 60],
      [59.9, 60],
      [1e300, 900],
    ]) {
      const clamped = await mode('thr_c', { ttl });
      expect(clamped.json.adjustments).toEqual([{ field: 'ttl', requested: ttl, granted }]);
    }
    const less = await mode('thr_c', { requested_capabilities: ['fs:rw', 'time_travel'] });
    expect(less.json.adjustments).toEqual([
      { field: 'requested_capabilities', requested: 'time_travel', granted: null },
    ]);
  });

  it.concurrent("another's session does not exist, but for whom it was shared with, and administrators", async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const url = world.url();
    await new Tenants(world.db).put({
      id: 'other',
      isSandboxEnabled: true,
      environment: 'default-public',
      tokenMode: 'jwt',
      auditRetentionDays: 30,
    });
    const mine = await ensure(url, 'thr_mine');
    const path = `${SESSIONS}/${mine.json.session_id}`;
    const stranger = { sub: 'usr_eve', tenant: 'other' };
    for (const as of [BOB, stranger, { ...ALICE, threads: ['thr_else' as never] }]) {
      for (const [method, rest] of [
        ['GET', ''],
        ['POST', '/refresh'],
        ['POST', '/refresh-token'],
        ['POST', '/heartbeat'],
        ['DELETE', ''],
      ] as const) {
        const refused = await ask(url, method, `${path}${rest}`, { as, body: {} });
        const random = await ask(url, method, `${SESSIONS}/ssn_random${rest}`, { as, body: {} });
        expect(refused.status).toBe(404);
        expect(refused.json.error.code).toBe(random.json.error.code);
        expect(refused.json.error.message).toBe(random.json.error.message);
      }
      expect((await ask(url, 'GET', SESSIONS, { as })).json.items).toEqual([]);
      const look = await ensure(url, 'thr_mine', { as, body: { mode: 'get' } });
      expect(look).toMatchObject({ status: 404, json: { error: { code: 'SESSION_NOT_FOUND' } } });
    }
    for (const as of [BOB, { ...ALICE, threads: ['thr_else' as never] }]) {
      const refused = await ensure(url, 'thr_mine', { as });
      expect(refused).toMatchObject({ status: 403, json: { error: { code: 'FORBIDDEN' } } });
      const full = await ensure(url, 'thr_mine', { as, body: { mode: 'create_only' } });
      expect(full).toMatchObject({ status: 403, json: { error: { code: 'CAPABILITY_DENIED' } } });
    }
    // The same name in another tenant is another thread.
    const theirs = await ensure(url, 'thr_mine', { as: stranger });
    expect(theirs.status).toBe(200);
    expect(theirs.json.session_id).not.toBe(mine.json.session_id);
    const nowhere = await ensure(url, 'thr_x', { as: { sub: 'usr_x', tenant: 'unknown' } });
    expect(nowhere).toMatchObject({ status: 403, json: { error: { code: 'FORBIDDEN' } } });

    const grant = await new Grants(world.db).add({
      id: newId('grant', (bytes) => crypto.getRandomValues(bytes)),
      sessionId: mine.json.session_id,
      tenant: 'default',
      grantee: { type: 'user', id: BOB.sub },
      capabilities: ['fs:ro', 'shell:ro'],
      createdBy: ALICE.sub,
    });
    expect(grant).toBeDefined();
    const shared = await ask(url, 'POST', '/threads/thr_mine/sandbox', { as: BOB, body: {} });
    expect(shared).toMatchObject({ status: 200, json: { scopes: ['fs:ro', 'shell:ro'] } });
    expect((await ask(url, 'POST', `${path}/heartbeat`, { as: BOB })).status).toBe(200);
    expect(await ask(url, 'DELETE', path, { as: BOB })).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN' } },
    });

    const admin = {
      sub: 'usr_root',
      tenant: 'other',
      scopes: ['admin:sandbox', 'read:sandbox', 'write:sandbox'] as never,
    };
    expect((await ask(url, 'GET', path, { as: admin })).status).toBe(200);
    const { entries } = await new Audit(world.db).list({ event: 'admin.access' }, { limit: 10 });
    expect(entries).toMatchObject([{ subject: 'usr_root', sessionId: mine.json.session_id }]);
    expect((await ask(url, 'DELETE', path, { as: admin })).status).toBe(204);
  });

  it.concurrent('to make a sandbox takes write:sandbox; to use one that is there does not', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const reader = { ...ALICE, scopes: ['read:sandbox'] as never };
    expect(await ensure(world.url(), 'thr_r', { as: reader })).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN', scope: 'write:sandbox' } },
    });
    expect(world.provider.calls.filter((call) => call !== 'list')).toEqual([]);
    await ensure(world.url(), 'thr_r');
    const body = { requested_capabilities: ['fs_write'] };
    const used = await ensure(world.url(), 'thr_r', { as: reader, body });
    expect(used.json).toMatchObject({
      credentials: { granted_capabilities: ['fs_read'] },
      adjustments: [{ field: 'requested_capabilities', requested: 'fs_write', granted: 'fs_read' }],
    });
  });

  it.concurrent('a caller without any scope for it is refused by the name that its protocol has for that', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const made = await ensure(world.url(), 'thr_scope');
    const path = `${SESSIONS}/${made.json.session_id}`;
    const as = { ...ALICE, scopes: ['openid'] as never };
    const refused = (code: string) => ({ status: 403, json: { error: { code } } });
    const url = world.url();
    expect(await ensure(url, 'thr_scope', { as })).toMatchObject(refused('FORBIDDEN'));
    const full = { as, body: { scope: { type: 'thread', id: 'thr_scope' } } };
    expect(await ensure(url, 'thr_scope', full)).toMatchObject(refused('CAPABILITY_DENIED'));
    const refresh = (name: string) => ask(url, 'POST', `${path}/${name}`, { as, body: {} });
    expect(await refresh('refresh')).toMatchObject(refused('FORBIDDEN'));
    expect(await refresh('refresh-token')).toMatchObject(refused('CAPABILITY_DENIED'));
    expect(await ask(url, 'GET', path, { as })).toMatchObject(refused('CAPABILITY_DENIED'));
    expect(await ask(url, 'DELETE', path, { as })).toMatchObject(refused('FORBIDDEN'));
    expect((await ask(url, 'GET', path)).status).toBe(200);
  });

  it.concurrent('lists are in pages, and hold the caller’s own', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const url = world.url();
    const made = new Set<string>();
    for (let at = 0; at < 7; at++) made.add((await ensure(url, `thr_${at}`)).json.session_id);
    await ensure(url, 'thr_b', { as: BOB });
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await ask(url, 'GET', `${SESSIONS}?limit=3${cursor}`);
      seen.push(...page.json.items.map((item: { session_id: string }) => item.session_id));
      expect(page.json.items.length).toBeLessThanOrEqual(3);
      cursor = page.json.next_cursor === null ? '' : `&cursor=${page.json.next_cursor}`;
    } while (cursor !== '');
    expect(seen.length).toBe(7);
    expect(new Set(seen)).toEqual(made);
  });

  it.concurrent('what happens to a session is in the audit, once, with who and by which request', async () => {
    await using world = await openWorld({ storeUrl: await engine.storeUrl() });
    const headers = { 'X-Request-Id': 'req_mine' };
    const made = await ensure(world.url(), 'thr_audit', { headers });
    const path = `${SESSIONS}/${made.json.session_id}`;
    await ask(world.url(), 'DELETE', path, { headers: { 'X-Request-Id': 'req_gone' } });
    const { entries } = await new Audit(world.db).list({}, { limit: 100 });
    const place = {
      threadId: 'thr_audit',
      sandboxId: made.json.sandbox.id,
      subject: 'usr_alice',
      tenant: 'default',
    };
    const sessionId = made.json.session_id;
    expect(entries).toMatchObject([
      { event: 'session.created', requestId: 'req_mine', sessionId, ...place },
      { event: 'sandbox.state', details: { state: 'active' }, ...place },
      { event: 'token.issued', requestId: 'req_mine', sessionId, ...place },
      { event: 'session.released', requestId: 'req_gone', sessionId, ...place },
      {
        event: 'sandbox.state',
        requestId: 'req_gone',
        details: { state: 'terminated', reason: 'released' },
        ...place,
      },
    ]);
  });
});

function known<T>(schema: Parameters<typeof parseAnswer>[0], json: T): T {
  const parsed = parseAnswer(schema, json);
  if (!parsed.ok) throw parsed.error;
  return json;
}
