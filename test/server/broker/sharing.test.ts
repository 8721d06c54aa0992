/** What owners share and take back: grants, invites and snapshots; and that to everybody else there is nothing to share. */
import { webcrypto } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { Secret } from '../../../src/base/secret.js';
import type { SandboxId, SnapshotId } from '../../../src/protocol/ids.js';
import { takeInvite } from '../../../src/server/broker/sharing/take-invite.js';
import { tidyOnce } from '../../../src/server/broker/sharing/tidy.js';
import { createMint, openSandboxKeys } from '../../../src/server/broker/tokens/mint.js';
import { Audit } from '../../../src/server/store/audit.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { Sessions } from '../../../src/server/store/sessions.js';
import { signInvite } from '../../../src/server/tokens/invite.js';
import { eventually } from '../../support/eventually.js';
import { ALICE, ask, ensure, type Reply } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld, type World } from './support/world.js';

const BOB = { sub: 'usr_bob' };
const EVE = { sub: 'usr_eve' };
const ADMIN = {
  sub: 'usr_root',
  scopes: ['admin:sandbox', 'exec:sandbox', 'attach:sandbox', 'write:sandbox'],
};
const times = (n: number) => Array.from({ length: n }, (_, index) => index);

describeOnBoth('sharing', (engine) => {
  let world: World;
  let threads = 0;

  beforeAll(async () => {
    world = await openWorld({ storeUrl: await engine.storeUrl(), replicas: engine.mostReplicas });
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  // biome-ignore lint/suspicious/noExplicitAny: a principal as a test wants it, wrong ones included
  type As = any;
  const call = (method: string, path: string, body?: object, as: As = ALICE): Promise<Reply> =>
    ask(world.url(threads), method, path, { as, ...(body && { body }) });
  const started = async (as: As = ALICE) => {
    threads += 1;
    const thread = `thr_${threads}`;
    const { json, status } = await ensure(world.url(threads), thread, { as });
    expect(status).toBe(200);
    const session = `/v1/sandbox/sessions/${json.session_id}`;
    return { thread, session, sandbox: json.sandbox.id as SandboxId, token: String(json.token) };
  };
  const share = (session: string, grant: object, as: As = ALICE) =>
    call('POST', `${session}/grants`, { capabilities: ['fs:rw', 'shell'], ...grant }, as);
  const toBob = { grantee: { type: 'user', id: BOB.sub } };
  const negotiate = (thread: string, as: As, body: object = {}) =>
    call('POST', '/v1/sandbox/sessions', { thread_id: thread, mode: 'ensure', ...body }, as);
  const endedAt = async (sandbox: SandboxId): Promise<readonly string[]> =>
    (await world.provider.look(sandbox))?.access.ended.map(({ jti }) => String(jti)) ?? [];
  const events = async (event: string, sandbox: string) =>
    (await new Audit(world.db).list({ event }, { limit: 1_000 })).entries.filter(
      ({ sandboxId }) => sandboxId === sandbox,
    );

  describe('a grant', () => {
    it('lets somebody negotiate a token of their own, with no more than it gives', async () => {
      const { thread, session, sandbox } = await started();
      expect((await negotiate(thread, BOB)).status).toBe(403);
      const made = await share(session, { ...toBob, capabilities: ['fs:ro', 'shell:ro'] });
      expect(made.status).toBe(201);
      expect(made.json).toMatchObject({
        ...toBob,
        capabilities: ['fs:ro', 'shell:ro'],
        created_by: ALICE.sub,
      });
      const guest = await negotiate(thread, BOB, {
        requested_capabilities: ['fs:rw', 'shell', 'process'],
      });
      expect(guest.status).toBe(200);
      expect(claimsOf(guest.json.token)).toMatchObject({
        sub: BOB.sub,
        aud: sandbox,
        scope: 'fs:ro shell:ro',
      });
      expect(guest.json.adjustments).toEqual([
        { field: 'requested_capabilities', requested: 'fs:rw', granted: 'fs:ro' },
        { field: 'requested_capabilities', requested: 'shell', granted: 'shell:ro' },
        { field: 'requested_capabilities', requested: 'process', granted: null },
      ]);
      expect((await negotiate(thread, EVE)).status).toBe(403);
      expect((await negotiate(thread, { ...BOB, tenant: 'other' })).status).toBe(403);
      const [created] = await events('grant.created', sandbox);
      expect(created).toMatchObject({ subject: ALICE.sub, details: { grantee: BOB.sub } });
    });

    it('to an agent lets that agent in, whomever it acts for, and nobody else', async () => {
      const { thread, session } = await started();
      await share(session, {
        grantee: { type: 'agent', id: 'agent_7' },
        capabilities: ['fs:rw', 'process', 'tunnel'],
      });
      const agent = (sub: string, act: string) => ({ sub, kind: 'agent', act: { sub: act } });
      const admitted = await negotiate(thread, agent(BOB.sub, 'agent_7'));
      expect(claimsOf(admitted.json.token)).toMatchObject({
        sub: BOB.sub,
        scope: 'fs:rw process',
        act: { sub: 'agent_7' },
      });
      expect((await negotiate(thread, agent(BOB.sub, 'agent_8'))).status).toBe(403);
      expect((await negotiate(thread, { sub: 'agent_7' })).status).toBe(403);
      expect((await negotiate(thread, BOB)).status).toBe(403);
      const service = { sub: 'agent_7', kind: 'service' };
      expect((await negotiate(thread, service)).status).toBe(200);
    });

    it('gives no more than its maker has: scopes, the client of the maker, and being an agent', async () => {
      const { session } = await started();
      const reader = { ...ALICE, scopes: ['write:sandbox'] };
      const all = ['fs:rw', 'shell', 'process', 'snapshot', 'tunnel'];
      const narrow = await share(session, { ...toBob, capabilities: all }, reader);
      expect(narrow.json.capabilities).toEqual(['fs:rw', 'snapshot']);
      const none = await share(session, { ...toBob, capabilities: ['shell'] }, reader);
      expect([none.status, none.json.error.code]).toEqual([403, 'FORBIDDEN']);
      const agent = { ...ALICE, kind: 'agent', act: { sub: 'agent_1' } };
      const byAgent = await share(session, { ...toBob, capabilities: all }, agent);
      expect(byAgent.json.capabilities).toEqual(['fs:rw', 'shell', 'process', 'snapshot']);
    });

    it('taken back ends its tokens and their copies at the sandbox, and nobody gets in by it again', async () => {
      const { thread, session, sandbox } = await started();
      const { json: grant } = await share(session, toBob);
      const { json: guest } = await negotiate(thread, BOB);
      const { json: copy } = await call(
        'POST',
        `${session}/downscope`,
        { current_token: guest.token, scopes: ['fs:ro'] },
        BOB,
      );
      const owner = (await negotiate(thread, ALICE)).json.token;
      const gone = await call('DELETE', `${session}/grants/${grant.id}`);
      expect(gone.status).toBe(204);
      const ended = await endedAt(sandbox);
      expect([...ended].sort()).toEqual(
        [claimsOf(guest.token).jti, claimsOf(copy.token).jti].sort(),
      );
      expect(ended).not.toContain(claimsOf(owner).jti);
      expect((await negotiate(thread, BOB)).status).toBe(403);
      const refresh = await call(
        'POST',
        `/threads/${thread}/sandbox/refresh`,
        { current_token: guest.token },
        BOB,
      );
      expect(refresh.status).toBe(404);
      const again = await call('DELETE', `${session}/grants/${grant.id}`);
      expect([again.status, again.json.error.code]).toEqual([404, 'NOT_FOUND']);
      expect(await events('grant.deleted', sandbox)).toMatchObject([{ details: { ended: 2 } }]);
    });

    it('taken back while its guest negotiates 20 times leaves no token in force', async () => {
      const { thread, session, sandbox } = await started();
      const { json: grant } = await share(session, toBob);
      const negotiating = times(20).map(() => negotiate(thread, BOB));
      const removing = call('DELETE', `${session}/grants/${grant.id}`);
      const [replies, removed] = [await Promise.all(negotiating), await removing];
      expect(removed.status).toBe(204);
      const issued = replies
        .filter(({ status }) => status === 200)
        .map(({ json }) => claimsOf(json.token).jti);
      expect(replies.every(({ status }) => status === 200 || status === 403)).toBe(true);
      const ended = await endedAt(sandbox);
      expect(issued.filter((jti) => !ended.includes(jti))).toEqual([]);
    });

    it('is not taken back in the middle of an issue, and nothing is issued by one that was', async () => {
      const { session, thread, sandbox } = await started();
      const { json: grant } = await share(session, toBob);
      const held = await new Sessions(world.db).find(grant.session_id);
      if (held === undefined) throw new Error('the session is there');
      const keys = await openSandboxKeys(world.db, (bytes) => bytes);
      const mint = createMint({ keys, random: (bytes) => webcrypto.getRandomValues(bytes) });
      const request = {
        ...held,
        principal: {
          ...BOB,
          kind: 'user',
          tenant: 'default',
          clientId: 'c',
          scopes: [],
          expiresAt: 0,
          jti: 'a',
        },
        capabilities: ['fs:ro'],
        ttlSeconds: 60,
        tokenMode: 'jwt',
        grantId: grant.id,
      } as const;
      let removing: Promise<Reply> | undefined;
      const { jti } = await world.db.transaction(async (tx) => {
        const minted = await mint(tx, request);
        removing = call('DELETE', `${session}/grants/${grant.id}`);
        // Were the grant not held, it would be gone by the time another request has been answered.
        await call('GET', `/threads/${thread}/sandbox/none`);
        await call('GET', `/threads/${thread}/sandbox/none`);
        return minted;
      });
      expect((await removing)?.status).toBe(204);
      expect(await endedAt(sandbox)).toEqual([jti]);
      const late = world.db.transaction((tx) => mint(tx, request));
      await expect(late).rejects.toMatchObject({ code: 'FORBIDDEN' });
    });

    it('that expires takes its tokens with it, and is shown no more', async () => {
      const { thread, session } = await started();
      const past = await share(session, {
        ...toBob,
        expires_at: new Date(Date.now() - 1_000).toISOString(),
      });
      expect(past.json.error).toMatchObject({ code: 'INVALID_REQUEST', field: 'expires_at' });
      const expiresAtMs = Date.now() + 4_000;
      await share(session, { ...toBob, expires_at: new Date(expiresAtMs).toISOString() });
      const guest = await negotiate(thread, BOB);
      expect(guest.status).toBe(200);
      const claims = claimsOf(guest.json.token);
      expect(claims.exp * 1000).toBeLessThanOrEqual(expiresAtMs);
      const fresh = await call(
        'POST',
        `/threads/${thread}/sandbox/refresh`,
        { current_token: guest.json.token },
        BOB,
      );
      if (fresh.status === 200) expect(claimsOf(fresh.json.token).exp).toBe(claims.exp);
      await eventually(async () => (await negotiate(thread, BOB)).status === 403);
      expect(Date.now()).toBeGreaterThanOrEqual(claims.exp * 1000);
      await eventually(
        async () => (await call('GET', `${session}/grants`)).json.items.length === 0,
      );
      expect((await call('GET', session, undefined, BOB)).status).toBe(404);
    });

    it('for somebody who has one takes its place: less ends what it gave, more lets it go on', async () => {
      const { thread, session, sandbox } = await started();
      await share(session, toBob);
      const first = (await negotiate(thread, BOB)).json.token;
      await share(session, { ...toBob, capabilities: ['fs:rw', 'shell', 'process'] });
      expect(await endedAt(sandbox)).toEqual([]);
      const { json: less } = await share(session, { ...toBob, capabilities: ['fs:ro'] });
      expect(await endedAt(sandbox)).toEqual([claimsOf(first).jti]);
      expect((await call('GET', `${session}/grants`)).json.items).toMatchObject([{ id: less.id }]);
      const many = await Promise.all(times(8).map(() => share(session, toBob)));
      expect(many.filter(({ status }) => status === 201).length).toBeGreaterThanOrEqual(1);
      expect(many.every(({ status }) => status === 201 || status === 503)).toBe(true);
      expect((await call('GET', `${session}/grants`)).json.items).toHaveLength(1);
    });

    it('is listed in pages, and a guest sees and gives back only its own', async () => {
      const { session } = await started();
      for (const index of times(5))
        await share(session, { grantee: { type: 'user', id: `usr_${index}` } });
      const { json: own } = await share(session, toBob);
      const seen: string[] = [];
      let cursor = '';
      do {
        const { json } = await call(
          'GET',
          `${session}/grants?limit=2${cursor && `&cursor=${cursor}`}`,
        );
        seen.push(...json.items.map(({ id }: { id: string }) => id));
        cursor = json.next_cursor ?? '';
      } while (cursor !== '');
      expect(new Set(seen).size).toBe(6);
      expect((await call('GET', `${session}/grants`, undefined, BOB)).json.items).toMatchObject([
        { id: own.id },
      ]);
      const others = seen.find((id) => id !== own.id);
      expect((await call('DELETE', `${session}/grants/${others}`, undefined, BOB)).status).toBe(
        404,
      );
      for (const [path, body] of [
        ['grants', { ...toBob, capabilities: ['fs:ro'] }],
        ['rotate-key', {}],
      ] as const)
        expect((await call('POST', `${session}/${path}`, body, BOB)).status).toBe(403);
      const alices = (await call('POST', `${session}/refresh`, {})).json.token;
      expect(
        (await call('POST', `${session}/revoke`, { jti: claimsOf(alices).jti }, BOB)).status,
      ).toBe(404);
      expect((await call('DELETE', `${session}/grants/${own.id}`, undefined, BOB)).status).toBe(
        204,
      );
    });
  });

  it("to others, of the tenant or not, a session's sharing routes answer as for an id nobody has", async () => {
    const { session, token } = await started();
    const { json: grant } = await share(session, toBob);
    const routes: [string, string, object?][] = [
      ['POST', 'grants', { ...toBob, capabilities: ['fs:ro'] }],
      ['GET', 'grants'],
      ['DELETE', `grants/${grant.id}`],
      ['POST', 'downscope', { current_token: token, scopes: ['fs:ro'] }],
      ['POST', 'rotate-key', {}],
      ['POST', 'revoke', { jti: claimsOf(token).jti }],
      ['POST', 'invites', { endpoint: 'computer' }],
      ['POST', 'snapshots', {}],
      ['GET', 'snapshots'],
      ['POST', 'snapshots/snap_1/restore', {}],
    ];
    const shown = ({ status, json, headers }: Reply) => {
      const { 'x-request-id': _id, date: _date, 'content-length': _length, ...rest } = headers;
      return { status, rest, error: { ...json.error, request_id: '' } };
    };
    for (const as of [EVE, { ...ALICE, tenant: 'other' }, { ...ALICE, threads: ['thr_else'] }]) {
      for (const [method, path, body] of routes) {
        const real = await call(method, `${session}/${path}`, body, as);
        const none = await call(method, `/v1/sandbox/sessions/ssn_nobody/${path}`, body, as);
        expect(shown(real), `${method} ${path}`).toEqual(shown(none));
        expect([real.status, real.json.error.code], path).toEqual([404, 'SESSION_NOT_FOUND']);
      }
    }
    expect((await call('GET', `${session}/grants`)).json.items).toHaveLength(1);
    const bypass = await call('POST', `${session}/rotate-key`, {}, { ...ADMIN, tenant: 'other' });
    expect(bypass.status).toBe(204);
    const recorded = await new Audit(world.db).list(
      { event: 'admin.access', subject: ADMIN.sub },
      { limit: 9 },
    );
    expect(recorded.entries.length).toBeGreaterThan(0);
  });

  describe('an invite', () => {
    const secretOf = async (): Promise<Secret> => {
      const [row] = await world.db.query(
        "SELECT material FROM server_secrets WHERE name = 'sandbox-auth-secret'",
      );
      return new Secret(String(row?.['material']));
    };
    const take = async (token: string | undefined, more: object = {}) =>
      takeInvite(
        { db: world.db, secret: await secretOf() },
        {
          endpoint: 'computer' as const,
          token: token === undefined ? undefined : new Secret(token),
          requestId: 'req_1',
          ...more,
        },
      );

    it('used 20 times at once over several connections is used once', async () => {
      const handles = await Promise.all(times(4).map(() => openStore(world.storeUrl)));
      try {
        const secret = await secretOf();
        for (const round of times(5)) {
          const { session, thread, sandbox } = await started();
          const endpoint = round % 2 === 0 ? 'computer' : 'execute';
          const { json, status } = await call('POST', `${session}/invites`, { endpoint });
          expect(status).toBe(201);
          expect(json.url).toBe(`${world.url(threads).replace('http', 'ws')}/${endpoint}`);
          const outcomes = await Promise.all(
            times(20).map((index) => {
              const db = handles[index % handles.length] ?? world.db;
              const shown = {
                endpoint,
                token: new Secret(json.token),
                rooms: [thread],
                requestId: `req_${index}`,
              } as const;
              return takeInvite({ db, secret }, shown);
            }),
          );
          expect(outcomes.filter(({ kind }) => kind === 'taken')).toHaveLength(1);
          expect(
            outcomes.filter((one) => one.kind === 'refused' && one.code === 'UNAUTHENTICATED'),
          ).toHaveLength(19);
          const used = await events('invite.issued', sandbox);
          expect(used).toMatchObject([{ subject: ALICE.sub }]);
        }
      } finally {
        for (const handle of handles) await handle[Symbol.asyncDispose]();
      }
    });

    it('names the run or the user, never who the bearer says they are, and leads back to its session', async () => {
      const { session, thread } = await started();
      const execute = (await call('POST', `${session}/invites`, { endpoint: 'execute' })).json;
      expect(claimsOf(execute.token)).toMatchObject({
        sub: expect.stringMatching(/^run_/),
        scopes: 'execution',
      });
      const taken = await take(execute.token, { endpoint: 'execute' });
      expect(taken).toMatchObject({
        kind: 'taken',
        origin: { issuedTo: ALICE.sub },
        isElevated: false,
      });
      const computer = (await call('POST', `${session}/invites`, { endpoint: 'computer' })).json;
      expect(claimsOf(computer.token)).toMatchObject({ sub: ALICE.sub, room: thread });
      expect(claimsOf(computer.token).exp - claimsOf(computer.token).iat).toBe(60);
      expect(await take(computer.token, { rooms: [thread], isElevated: true })).toMatchObject({
        kind: 'taken',
        room: thread,
        isElevated: false,
      });
    });

    it('is refused by the name of what is wrong, and a wrong room is recorded with the user and spends nothing', async () => {
      const { session, thread } = await started();
      const { token } = (await call('POST', `${session}/invites`, { endpoint: 'computer' })).json;
      expect(await take(undefined)).toEqual({ kind: 'refused', code: 'TOKEN_MISSING' });
      expect(await take('')).toEqual({ kind: 'refused', code: 'TOKEN_MISSING' });
      expect(await take('nonsense')).toEqual({ kind: 'refused', code: 'UNAUTHENTICATED' });
      const iat = Math.floor(Date.now() / 1000) - 61;
      const old = signInvite(await secretOf(), {
        sub: ALICE.sub,
        room: thread as never,
        iat,
        exp: iat + 60,
      });
      expect(await take(old.reveal(), { rooms: [thread] })).toEqual({
        kind: 'refused',
        code: 'TOKEN_EXPIRED',
      });
      for (const rooms of [
        undefined,
        [],
        ['thr_else'],
        ['*'],
        [thread, thread],
        [thread, '*'],
        [''],
        [`${thread} `],
      ])
        expect(await take(token, { rooms }), String(rooms)).toEqual({
          kind: 'refused',
          code: 'ROOM_FORBIDDEN',
        });
      const recorded = await new Audit(world.db).list(
        { event: 'invite.refused', subject: ALICE.sub },
        { limit: 99 },
      );
      expect(recorded.entries.filter(({ jti }) => jti === claimsOf(token).jti)).toHaveLength(8);
      expect((await take(token, { rooms: [thread] })).kind).toBe('taken');
    });

    it('for every room or with elevation is for administrators; one takes what it leads to', async () => {
      const { session, thread } = await started();
      const invite = (body: object, as: As = ALICE) => call('POST', `${session}/invites`, body, as);
      const computer = { endpoint: 'computer' };
      for (const [body, as] of [
        [{ ...computer, room: '*' }, ALICE],
        [{ ...computer, elevated: true }, ALICE],
        [computer, { ...ALICE, scopes: ['exec:sandbox'] }],
        [{ endpoint: 'execute' }, { ...ALICE, scopes: ['attach:sandbox'] }],
      ] as const) {
        const reply = await invite(body, as);
        expect([reply.status, reply.json.error.code], JSON.stringify(body)).toEqual([
          403,
          'FORBIDDEN',
        ]);
      }
      for (const body of [
        { ...computer, room: 'thr_else' },
        { endpoint: 'execute', room: thread },
        { endpoint: 'other' },
      ])
        expect((await invite(body)).json.error.code).toBe('INVALID_REQUEST');
      const { json } = await invite({ ...computer, room: '*', elevated: true }, ADMIN);
      expect(claimsOf(json.token)).toMatchObject({ sub: ADMIN.sub, room: '*', elevated: true });
      expect(await take(json.token, { rooms: ['thr_any'], isElevated: true })).toMatchObject({
        kind: 'taken',
        room: 'thr_any',
        isElevated: true,
      });
      await share(session, { ...toBob, capabilities: ['fs:rw', 'shell:ro'] });
      expect((await invite(computer, BOB)).status).toBe(403);
      await share(session, { ...toBob, capabilities: ['shell'] });
      expect((await invite(computer, BOB)).status).toBe(201);
      await world.db.run(
        "INSERT INTO sandbox_client_config VALUES ('narrow', NULL, '{}', '[\"fs:rw\"]', 0)",
      );
      expect((await invite(computer, { ...ALICE, clientId: 'narrow' })).status).toBe(403);
    });
  });

  describe('a snapshot', () => {
    it('of a provider that keeps none is 409', async () => {
      const { session } = await started();
      const reply = await call('POST', `${session}/snapshots`, {});
      expect([reply.status, reply.json.error.code]).toEqual([409, 'SESSION_CONFLICT']);
    });

    it('is kept, listed and restored, once for each key, and removed when its session is over', async () => {
      const held = new Map<SnapshotId, string>();
      const asked: string[] = [];
      let fail: Error | undefined;
      const { provider } = world;
      Object.assign(provider, {
        flags: { ...provider.flags, snapshots: true },
        snapshots: {
          async take(id: SandboxId, snapshot: SnapshotId) {
            asked.push(`take ${snapshot}`);
            if (fail !== undefined) throw fail;
            held.set(snapshot, id);
            return { sizeBytes: 7 };
          },
          async restore(_: SandboxId, snapshot: SnapshotId) {
            asked.push(`restore ${snapshot}`);
          },
          async remove(snapshot: SnapshotId) {
            held.delete(snapshot);
          },
        },
      });
      const { session, sandbox } = await started();
      const headers = { 'Idempotency-Key': 'once' };
      const take = (body: object) =>
        ask(world.url(threads), 'POST', `${session}/snapshots`, { body, headers });
      fail = new Error('out of order');
      expect((await take({ name: 'first' })).status).toBe(503);
      fail = undefined;
      const made = await take({ name: 'first' });
      expect(made.status).toBe(201);
      expect(made.json).toMatchObject({ name: 'first', size_bytes: 7, sandbox_id: sandbox });
      expect((await take({ name: 'first' })).json).toEqual(made.json);
      expect((await take({ name: 'second' })).status).toBe(409);
      expect(held.size).toBe(1);
      const { json: other } = await call('POST', `${session}/snapshots`, {});
      const list = (await call('GET', `${session}/snapshots`)).json.items;
      expect(list.map(({ id }: { id: string }) => id).sort()).toEqual(
        [made.json.id, other.id].sort(),
      );
      const restored = await call('POST', `${session}/snapshots/${other.id}/restore`, {});
      expect([restored.status, restored.json.id]).toEqual([200, other.id]);
      expect(asked).toContain(`restore ${other.id}`);
      const nothing = await call('POST', `${session}/snapshots/snap_x/restore`, {});
      expect([nothing.status, nothing.json.error.code]).toEqual([404, 'NOT_FOUND']);
      const elsewhere = (await started()).session;
      const foreign = await call('POST', `${elsewhere}/snapshots/${other.id}/restore`, {});
      expect(foreign.status).toBe(404);
      await share(session, toBob);
      expect((await call('POST', `${session}/snapshots`, {}, BOB)).status).toBe(403);
      await share(session, { ...toBob, capabilities: ['snapshot'] });
      expect((await call('POST', `${session}/snapshots`, {}, BOB)).status).toBe(201);
      expect(await events('snapshot.created', sandbox)).toHaveLength(3);
      expect(await events('snapshot.restored', sandbox)).toHaveLength(1);
      await call('DELETE', session);
      const parts = {
        db: world.db,
        providers: [provider],
        clock: systemClock,
        logger: silentLogger,
      };
      await tidyOnce({ ...parts, random: (bytes) => bytes });
      expect(held.size).toBe(0);
    });
  });
});

// biome-ignore lint/suspicious/noExplicitAny: a test looks into claims as any client would
function claimsOf(token: string): any {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}
