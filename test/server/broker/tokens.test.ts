/** Tokens over their life: refreshed with proof, narrowed, revoked, outdated by a new key; and what the sandbox is told each time. */
import { createHash, createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import type { SandboxId } from '../../../src/protocol/ids.js';
import type { SandboxAccessFile } from '../../../src/protocol/shapes/sandboxd.js';
import { openSandboxKeys } from '../../../src/server/broker/tokens/mint.js';
import { Audit } from '../../../src/server/store/audit.js';
import { signSandboxAssertion } from '../../../src/server/tokens/sandbox-assertion.js';
import type { SandboxKeys } from '../../../src/server/tokens/sandbox-keys.js';
import { verifySandboxToken } from '../../../src/server/tokens/sandbox-token.js';
import { eventually } from '../../support/eventually.js';
import { ALICE, ask, ensure, type Reply } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { tokenOf } from './support/replica.js';
import { openWorld, type World } from './support/world.js';

const BOB = { sub: 'usr_bob' };
const AGENT = {
  sub: ALICE.sub,
  kind: 'agent',
  act: { sub: 'agent_1', client_id: 'planner' },
} as const;

describeOnBoth('tokens', (engine) => {
  let world: World;
  let keys: SandboxKeys;
  let threads = 0;

  beforeAll(async () => {
    world = await openWorld({ storeUrl: await engine.storeUrl() });
    keys = await openSandboxKeys(world.db, (bytes) => bytes);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const post = (path: string, body: object, as: object = ALICE): Promise<Reply> =>
    ask(world.url(), 'POST', path, { body, as: { ...ALICE, ...as } });
  const started = async (body: object = {}) => {
    threads += 1;
    const thread = `thr_${threads}`;
    const { json, status } = await ensure(world.url(), thread, { body });
    expect(status).toBe(200);
    const session = `/v1/sandbox/sessions/${json.session_id}`;
    return { thread, session, sandbox: json.sandbox.id as SandboxId, token: String(json.token) };
  };
  const accessOf = async (sandbox: SandboxId): Promise<SandboxAccessFile> => {
    const found = await world.provider.look(sandbox);
    if (found === undefined) throw new Error('the sandbox is not there');
    return found.access;
  };
  /** As the sandbox judges it, with what it was last told. */
  const isLetIn = async (
    sandbox: SandboxId,
    token: string,
    atMs = Date.now(),
  ): Promise<boolean> => {
    const { keys: known, ended } = await accessOf(sandbox);
    const bytes = known.map((key) => new Uint8Array(Buffer.from(key, 'base64url')));
    const verdict = verifySandboxToken(new Secret(token), bytes, {
      sandboxId: sandbox,
      nowMs: atMs,
    });
    if (verdict.kind !== 'valid') return false;
    return !ended.some(({ jti, from }) => jti === verdict.claims.jti && from <= atMs);
  };
  const audit = async (event: string, sandbox: string) =>
    (await new Audit(world.db).list({ event }, { limit: 1_000 })).entries.filter(
      ({ sandboxId }) => sandboxId === sandbox,
    );
  /** Moves a token's beginning and end into the past, and signs it so. */
  const age = async (token: string, seconds: number, sandbox: SandboxId): Promise<string> => {
    const claims = claimsOf(token);
    await world.db.run(
      'UPDATE issued_tokens SET issued_at = issued_at - ?, expires_at = expires_at - ? WHERE jti = ?',
      [seconds * 1000, seconds * 1000, claims.jti],
    );
    const older = { ...claims, iat: claims.iat - seconds, exp: claims.exp - seconds };
    return sign(older, keys.keyOf(sandbox, 1));
  };

  it('a token is for its sandbox, thread and subject, and its issue is in the audit by jti', async () => {
    const { token, sandbox, thread } = await started({ ttl: 300 });
    const claims = claimsOf(token);
    expect(claims).toMatchObject({
      sub: ALICE.sub,
      aud: sandbox,
      scope: 'fs:rw shell',
      thread_id: thread,
      room: thread,
    });
    expect(claims.exp - claims.iat).toBe(300);
    expect(await isLetIn(sandbox, token)).toBe(true);
    const [issued, ...more] = await audit('token.issued', sandbox);
    expect(more).toEqual([]);
    expect(issued).toMatchObject({
      jti: claims.jti,
      subject: ALICE.sub,
      threadId: thread,
      details: { aud: sandbox, scope: 'fs:rw shell' },
    });
  });

  describe('refresh', () => {
    const refresh = (thread: string, body: object, as: object = ALICE) =>
      post(`/threads/${thread}/sandbox/refresh`, body, as);

    it('without the current token is 400 naming it', async () => {
      const { thread } = await started();
      const reply = await refresh(thread, {});
      expect(reply.status).toBe(400);
      expect(reply.json.error).toMatchObject({ code: 'INVALID_REQUEST', field: 'current_token' });
    });

    it('with a token that proves nothing is 403, and each refusal is recorded', async () => {
      const own = await started();
      const other = await started();
      const bobs = await ensure(world.url(), 'thr_of_bob', { as: BOB });
      const grant = { grantee: { type: 'user', id: BOB.sub }, capabilities: ['fs:rw', 'shell'] };
      await post(`${own.session}/grants`, grant);
      const guest = await ask(world.url(), 'GET', `/threads/${own.thread}/sandbox`, { as: BOB });
      expect(guest.status).toBe(200);
      const agents = await ask(world.url(), 'GET', `/threads/${own.thread}/sandbox`, { as: AGENT });
      const expired = await started();
      const old = await age(expired.token, 901, expired.sandbox);
      const [head, payload, signature = ''] = own.token.split('.');
      const broken = [head, payload, [...signature].reverse().join('')].join('.');
      const bad: Record<string, [string, string]> = {
        'a broken signature': [own.thread, broken],
        nonsense: [own.thread, 'nonsense'],
        'an access token': [own.thread, tokenOf(ALICE)],
        "another user's for the same sandbox": [own.thread, guest.json.token],
        "an agent's of the same user": [own.thread, agents.json.token],
        "one's own for another sandbox": [own.thread, other.token],
        "another user's for another sandbox": [own.thread, bobs.json.token],
        'an opaque one nobody issued': [own.thread, `ailsd_opaque_${'A'.repeat(43)}`],
        'older than one lease': [expired.thread, old],
      };
      for (const [name, [thread, current_token]] of Object.entries(bad)) {
        const reply = await refresh(thread, { current_token });
        expect(reply.status, name).toBe(403);
        expect(reply.json.error.code, name).toBe('FORBIDDEN');
        expect(JSON.stringify(reply.json), name).not.toContain(current_token);
      }
      expect(await audit('token.refused', own.sandbox)).toHaveLength(8);
      expect(await audit('token.refused', expired.sandbox)).toMatchObject([
        { details: { reason: 'older than a lease' } },
      ]);
    });

    it('gives a new jti; the old token goes on for 30 s and no longer; the audit joins both', async () => {
      const { thread, token, sandbox } = await started({ requested_capabilities: ['fs:ro'] });
      const before = claimsOf(token);
      const reply = await refresh(thread, { current_token: token, sandbox_id: sandbox });
      expect(reply.status).toBe(200);
      const after = claimsOf(reply.json.token);
      expect(after.jti).not.toBe(before.jti);
      expect(after).toMatchObject({ sub: before.sub, aud: before.aud, scope: 'fs:ro' });
      const life = after.exp - after.iat;
      expect(Date.parse(reply.json.refresh_before)).toBe((after.exp - Math.floor(life / 3)) * 1000);
      await eventually(async () => (await accessOf(sandbox)).ended.length > 0);
      const [ended] = (await accessOf(sandbox)).ended;
      expect(ended?.jti).toBe(before.jti);
      expect((ended?.from ?? 0) - Date.now()).toBeGreaterThan(20_000);
      expect((ended?.from ?? 0) - Date.now()).toBeLessThanOrEqual(30_000);
      expect(await isLetIn(sandbox, token)).toBe(true);
      expect(await isLetIn(sandbox, token, Date.now() + 30_000)).toBe(false);
      expect(await isLetIn(sandbox, reply.json.token, Date.now() + 30_000)).toBe(true);
      const issued = await audit('token.issued', sandbox);
      expect(issued.at(-1)).toMatchObject({ jti: after.jti, details: { replaces: before.jti } });
    });

    it('may be repeated within the overlap by whoever lost the answer, and not after it', async () => {
      const { thread, token } = await started();
      const answers = await Promise.all(
        [1, 2, 3].map(() => refresh(thread, { current_token: token })),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      await world.db.run('UPDATE issued_tokens SET ends_at = ends_at - 30000 WHERE jti = ?', [
        claimsOf(token).jti,
      ]);
      expect((await refresh(thread, { current_token: token })).status).toBe(403);
    });

    it('of a token that has expired works while that is no older than a lease', async () => {
      const { thread, token, sandbox } = await started({ ttl: 60 });
      const old = await age(token, 800, sandbox);
      expect(await isLetIn(sandbox, old)).toBe(false);
      const reply = await refresh(thread, { current_token: old });
      expect(reply.status).toBe(200);
      expect(await isLetIn(sandbox, reply.json.token)).toBe(true);
      expect(claimsOf(reply.json.token).exp - claimsOf(reply.json.token).iat).toBe(60);
    });

    it('in the session face takes the one token the caller holds, and none of two', async () => {
      const { session, token, sandbox, thread } = await started();
      const reply = await post(`${session}/refresh`, {});
      expect(reply.status).toBe(200);
      const [issued] = (await audit('token.issued', sandbox)).slice(-1);
      expect(issued?.details?.['replaces']).toBe(claimsOf(token).jti);
      await ensure(world.url(), thread);
      const ambiguous = await post(`${session}/refresh-token`, { ttl: 5 });
      expect(ambiguous.json.credentials.access_token).toBe(ambiguous.json.token);
      expect(ambiguous.json.adjustments).toContainEqual({
        field: 'ttl',
        requested: 5,
        granted: 60,
      });
      const last = (await audit('token.issued', sandbox)).at(-1);
      expect(last?.details?.['replaces']).toBeUndefined();
    });

    it('is refused once the tenant is switched off, and that is recorded', async () => {
      const as = { tenant: 'closing', sub: 'usr_closing' };
      await world.db.run(
        "INSERT INTO tenants VALUES ('closing', 1, 'default-public', 'jwt', 30, 0)",
      );
      const made = await ensure(world.url(), 'thr_closing', { as });
      expect(made.status).toBe(200);
      await world.db.run("UPDATE tenants SET sandbox_enabled = 0 WHERE id = 'closing'");
      const current_token = made.json.token;
      for (const reply of [
        await refresh('thr_closing', { current_token }, as),
        await ensure(world.url(), 'thr_closing', { as }),
        await ensure(world.url(), 'thr_nobody', { as: { tenant: 'unknown', sub: 'usr_x' } }),
      ])
        expect([reply.status, reply.json.error.code]).toEqual([403, 'FORBIDDEN']);
      const refused = (await new Audit(world.db).list({ event: 'policy.refused' }, { limit: 9 }))
        .entries;
      expect(refused.map(({ tenant, details }) => [tenant, details?.['reason']])).toEqual([
        ['closing', 'switched off'],
        ['closing', 'switched off'],
        ['unknown', 'no policy'],
      ]);
    });
  });

  describe('downscope', () => {
    it('gives fewer scopes and no longer a life, says what it left out, and dies with its parent', async () => {
      const { session, token, sandbox } = await started({ ttl: 120 });
      const asked = { current_token: token, scopes: ['fs:ro', 'process'], ttl: 600 };
      const reply = await post(`${session}/downscope`, asked);
      expect(reply.status).toBe(200);
      expect(reply.json.scopes).toEqual(['fs:ro']);
      const copy = claimsOf(reply.json.token);
      expect(copy.scope).toBe('fs:ro');
      expect(copy.exp).toBeLessThanOrEqual(claimsOf(token).exp);
      expect(reply.json.adjustments).toEqual([
        { field: 'scopes', requested: 'process', granted: null },
        { field: 'ttl', requested: 600, granted: copy.exp - copy.iat },
      ]);
      const again = { current_token: reply.json.token, scopes: ['fs_read', 'fs_write'] };
      const narrower = await post(`${session}/downscope`, again);
      expect(claimsOf(narrower.json.token).scope).toBe('fs:ro');
      expect(narrower.json.scopes).toEqual(['fs_read']);
      const revoked = await post(`${session}/revoke`, { jti: claimsOf(token).jti });
      expect(revoked.status).toBe(204);
      for (const dead of [token, reply.json.token, narrower.json.token])
        expect(await isLetIn(sandbox, dead)).toBe(false);
    });

    it('to nothing that the token has is 403, and a refreshed copy still ends with its parent', async () => {
      const { session, thread, token } = await started({ ttl: 120 });
      const nothing = await post(`${session}/downscope`, {
        current_token: token,
        scopes: ['process'],
      });
      expect([nothing.status, nothing.json.error.code]).toEqual([403, 'FORBIDDEN']);
      const copy = await post(`${session}/downscope`, { current_token: token, scopes: ['fs:ro'] });
      const fresh = await post(`/threads/${thread}/sandbox/refresh`, {
        current_token: copy.json.token,
        ttl: 900,
      });
      expect(fresh.status).toBe(200);
      expect(claimsOf(fresh.json.token)).toMatchObject({
        scope: 'fs:ro',
        exp: claimsOf(token).exp,
      });
    });
  });

  describe('revocation', () => {
    it('of a jti reaches the sandbox before the answer, once, and another goes on', async () => {
      const { session, thread, token, sandbox } = await started();
      const other = (await ensure(world.url(), thread)).json.token;
      const { jti } = claimsOf(token);
      expect((await post(`${session}/revoke`, { jti })).status).toBe(204);
      expect(await isLetIn(sandbox, token)).toBe(false);
      expect(await isLetIn(sandbox, other)).toBe(true);
      expect((await post(`${session}/revoke`, { jti })).status).toBe(204);
      expect(await audit('token.revoked', sandbox)).toMatchObject([{ jti }]);
      const refused = await post(`/threads/${thread}/sandbox/refresh`, { current_token: token });
      expect(refused.status).toBe(403);
    });

    it("of a jti that is unknown, of another session or another's is the same 404", async () => {
      const mine = await started();
      const { jti } = claimsOf((await started()).token);
      const replies = await Promise.all([
        post(`${mine.session}/revoke`, { jti }),
        post(`${mine.session}/revoke`, { jti: 'tok_unknown' }),
      ]);
      const [known, unknown] = replies.map(({ status, json }) => [
        status,
        { ...json.error, request_id: '' },
      ]);
      expect(known).toEqual(unknown);
      expect(known?.[0]).toBe(404);
    });

    it('by a new key ends every token at once; a fresh one works', async () => {
      const { session, thread, token, sandbox } = await started();
      const before = await accessOf(sandbox);
      expect((await post(`${session}/rotate-key`, {})).status).toBe(204);
      const after = await accessOf(sandbox);
      expect(after.generation).toBeGreaterThan(before.generation);
      expect(after.keys).not.toEqual(before.keys);
      expect(await isLetIn(sandbox, token)).toBe(false);
      const fresh = await ensure(world.url(), thread);
      expect(await isLetIn(sandbox, fresh.json.token)).toBe(true);
      expect(
        (await post(`/threads/${thread}/sandbox/refresh`, { current_token: token })).status,
      ).toBe(403);
      expect(await audit('key.rotated', sandbox)).toHaveLength(1);
    });

    it('is committed while the provider is away, and delivered as soon as it is back', async () => {
      const { session, token, sandbox } = await started();
      const { plan } = world.provider;
      let attempts = 0;
      plan.before = async (verb, id) => {
        if (verb !== 'deliver' || id !== sandbox) return;
        attempts += 1;
        throw new Error('the provider is away');
      };
      try {
        expect((await post(`${session}/revoke`, { jti: claimsOf(token).jti })).status).toBe(204);
        expect(await isLetIn(sandbox, token)).toBe(true);
        await eventually(() => attempts >= 3);
      } finally {
        delete plan.before;
      }
      await eventually(async () => !(await isLetIn(sandbox, token)));
      await eventually(async () => {
        const [row] = await world.db.query(
          'SELECT access_generation - access_delivered AS behind FROM sandboxes WHERE id = ?',
          [sandbox],
        );
        return row?.['behind'] === 0;
      });
    });
  });

  describe('opaque tokens', () => {
    const as = { tenant: 'opaque', sub: 'usr_opaque' };
    const check = async (sandbox: SandboxId, token: string, key = keys.keyOf(sandbox, 1)) => {
      const nowMs = await world.db.now();
      const assertion = signSandboxAssertion(key, { sandboxId: sandbox, nowMs }).reveal();
      return ask(world.url(), 'GET', `/internal/tokens/${sha256(token)}`, {
        headers: { Authorization: `Bearer ${assertion}` },
      });
    };

    it('say nothing, are told apart by hash, and end at once', async () => {
      await world.db.run(
        "INSERT INTO tenants VALUES ('opaque', 1, 'default-public', 'opaque', 30, 0)",
      );
      const made = await ensure(world.url(), 'thr_opaque', { as });
      const sandbox: SandboxId = made.json.sandbox.id;
      const { token } = made.json;
      expect(token).toMatch(/^ailsd_opaque_[\w-]{43}$/);
      const access = await accessOf(sandbox);
      expect(access.opaque_check_url).toBe(`${world.url()}/internal/tokens`);
      const known = await check(sandbox, token);
      expect(known.status).toBe(200);
      expect(known.json).toMatchObject({
        active: true,
        sub: as.sub,
        aud: sandbox,
        scope: 'fs:rw shell',
        thread_id: 'thr_opaque',
      });
      const fresh = await post('/threads/thr_opaque/sandbox/refresh', { current_token: token }, as);
      expect(fresh.status).toBe(200);
      expect((await check(sandbox, token)).json.active).toBe(true);
      const session = `/v1/sandbox/sessions/${made.json.session_id}`;
      await post(`${session}/revoke`, { jti: known.json.jti }, as);
      expect((await check(sandbox, token)).json).toEqual({ active: false });
      expect((await check(sandbox, fresh.json.token)).json.active).toBe(true);
      await post(`${session}/rotate-key`, {}, as);
      expect((await check(sandbox, fresh.json.token)).json).toEqual({ active: false });
      const rows = JSON.stringify(await world.db.query('SELECT * FROM issued_tokens'));
      const audited = JSON.stringify(await world.db.query('SELECT * FROM audit'));
      for (const one of [token, fresh.json.token]) {
        expect(rows).not.toContain(one);
        expect(audited).not.toContain(one);
        expect(world.log.join('')).not.toContain(one);
      }
    });

    it('are told of only to the sandbox they are for, which must prove itself', async () => {
      const made = await ensure(world.url(), 'thr_opaque_2', { as });
      const other = await started();
      expect((await check(other.sandbox, made.json.token)).json).toEqual({ active: false });
      expect((await check(other.sandbox, 'unknown')).json).toEqual({ active: false });
      const sandbox: SandboxId = made.json.sandbox.id;
      const wrong = await check(sandbox, made.json.token, keys.keyOf(other.sandbox, 1));
      expect([wrong.status, wrong.json.error.code]).toEqual([401, 'UNAUTHENTICATED']);
      const path = `/internal/tokens/${sha256(made.json.token)}`;
      for (const bearer of [tokenOf(ALICE), other.token, made.json.token]) {
        const headers = { Authorization: `Bearer ${bearer}` };
        const reply = await ask(world.url(), 'GET', path, { headers });
        expect(reply.status).toBe(401);
      }
    });
  });

  it('no token, key or secret is in the log, the audit or any table but the one of secrets', async () => {
    const { session, token, sandbox } = await started();
    await post(`${session}/invites`, { endpoint: 'computer' });
    const [row] = await world.db.query(
      "SELECT material FROM server_secrets WHERE name = 'sandbox-master'",
    );
    const hidden = [
      token.split('.')[2] ?? '',
      String(row?.['material']),
      Buffer.from(keys.keyOf(sandbox, 1)).toString('base64url'),
    ];
    const tables = [
      'sandboxes',
      'sessions',
      'issued_tokens',
      'grants',
      'invites',
      'idempotency',
      'audit',
    ];
    let text = world.log.join('');
    for (const table of tables)
      text += JSON.stringify(await world.db.query(`SELECT * FROM ${table}`));
    for (const secret of hidden) expect(text).not.toContain(secret);
  });
});

function claimsOf(token: string) {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  const claims: { jti: string; iat: number; exp: number; scope: string; sub: string; aud: string } =
    JSON.parse(payload);
  return claims;
}

function sign(claims: object, key: Uint8Array): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${body}.${createHmac('sha256', key).update(body).digest('base64url')}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
