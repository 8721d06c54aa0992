/** Broker and sandbox together: what the one ends, the other lets in no more, on connections that are open as on new ones. */
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SandboxId } from '../../../src/protocol/ids.js';
import { openSandboxKeys } from '../../../src/server/broker/tokens/mint.js';
import { Audit } from '../../../src/server/store/audit.js';
import type { Db } from '../../../src/server/store/db.js';
import { migrate } from '../../../src/server/store/migrations.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { proves } from '../../requirements.js';
import { temporaryFolder } from '../../support/cli.js';
import { DaemonProvider } from '../../support/daemon-provider.js';
import { attach, type BareClient, connect } from '../sandboxd/support/bare-client.js';
import { ALICE, ask, ensure, type Reply } from './support/client.js';
import { openReplica, type Replica } from './support/replica.js';

const BOB = { sub: 'usr_bob' };
const folder = temporaryFolder();
let db: Db;
let provider: DaemonProvider;
let replica: Replica;
let threads = 0;

beforeAll(async () => {
  db = await openStore(join(folder.path, 'store.db'));
  await migrate(db);
  provider = await DaemonProvider.open();
  replica = await openReplica({ db, provider });
});
beforeEach(() => {
  provider.clock.aheadMs = 0;
});
afterAll(async () => {
  await replica?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  await db?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

interface Started {
  readonly thread: string;
  readonly session: string;
  readonly sandbox: SandboxId;
  readonly http: string;
  readonly shell: string;
  readonly token: string;
}

async function started(body: object = {}): Promise<Started> {
  threads += 1;
  const thread = `thr_${threads}`;
  const { json, status } = await ensure(replica.url, thread, { body });
  expect(status).toBe(200);
  return {
    thread,
    session: `/v1/sandbox/sessions/${json.session_id}`,
    sandbox: json.sandbox.id,
    http: json.sandbox.http_base_url,
    shell: `${json.sandbox.ws_base_url}/v1/shell/ws`,
    token: json.token,
  };
}

const post = (path: string, body: object, as = ALICE): Promise<Reply> =>
  ask(replica.url, 'POST', path, { body, as });

/** How the sandbox answers a request with the token. */
async function knock({ http }: Started, token: string): Promise<string> {
  const reply = await fetch(`${http}/v1/shells`, { headers: { Authorization: `Bearer ${token}` } });
  const text = await reply.text();
  return reply.status === 200 ? '200' : `${reply.status} ${JSON.parse(text).error.code}`;
}

/** How a new WebSocket with the token ends, if it does. */
async function dial({ shell }: Started, token: string): Promise<string> {
  using client = await connect(shell);
  client.send({ type: 'auth', token });
  const admitted = client.frame('auth_ok').then(() => 'let in');
  const refused = client.closed().then(({ code, reason }) => `${code} ${reason}`);
  // Of the two, the one that does not come about is given up with the client.
  return await Promise.any([admitted, refused]);
}

it(
  proves('refreshing takes proof of possession, and retires the old token within 30 s', 'TK-04'),
  async () => {
    const own = await started();
    const other = await started();
    const refresh = (body: object, as = ALICE, thread = own.thread) =>
      post(`/threads/${thread}/sandbox/refresh`, body, as);

    const missing = await refresh({});
    expect([missing.status, missing.json.error.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(missing.json.error.field).toBe('current_token');

    await post(`${own.session}/grants`, {
      grantee: { type: 'user', id: BOB.sub },
      capabilities: ['fs:rw', 'shell'],
    });
    const bobs = (await ask(replica.url, 'GET', `/threads/${own.thread}/sandbox`, { as: BOB }))
      .json;
    expect(await knock(own, bobs.token)).toBe('200');
    const [head, payload, signature = ''] = own.token.split('.');
    const aged = await started();
    const old = await age(aged, 901);
    const bad: Record<string, Reply> = {
      'broken signature': await refresh({
        current_token: [head, payload, [...signature].reverse().join('')].join('.'),
      }),
      "another user's for the same sandbox": await refresh({ current_token: bobs.token }),
      "one's own, shown by another user": await refresh({ current_token: own.token }, BOB),
      "one's own for another sandbox": await refresh({ current_token: other.token }),
      'older than one lease': await refresh({ current_token: old }, ALICE, aged.thread),
    };
    for (const [name, { status, json }] of Object.entries(bad))
      expect([status, json.error.code], name).toEqual([403, 'FORBIDDEN']);

    using live = await attach(own.shell, own.token, { shell_id: 'new', command: ['/bin/cat'] });
    await live.frame('ready');
    const good = await refresh({ current_token: own.token });
    expect(good.status).toBe(200);
    const fresh: string = good.json.token;
    expect(jtiOf(fresh)).not.toBe(jtiOf(own.token));
    await delivered(own.sandbox);
    for (const token of [own.token, fresh]) expect(await knock(own, token)).toBe('200');
    expect(await dial(own, own.token)).toBe('let in');

    provider.clock.aheadMs = 30_001;
    expect(await live.closed()).toEqual({ code: 1008, reason: 'Invalid token' });
    expect(await knock(own, own.token)).toBe('401 UNAUTHENTICATED');
    expect(await dial(own, own.token)).toBe('1008 Invalid token');
    expect(await knock(own, fresh)).toBe('200');
    expect(await dial(own, fresh)).toBe('let in');

    const { entries } = await new Audit(db).list({ event: 'token.issued' }, { limit: 1_000 });
    const joined = entries.filter(({ jti }) => jti === jtiOf(fresh));
    expect(joined).toMatchObject([{ details: { replaces: jtiOf(own.token), aud: own.sandbox } }]);
  },
);

describe('what is ended at the broker', () => {
  const ends: Record<string, (started: Started, bobs: string) => Promise<Reply>> = {
    'a revoked jti': ({ session }, bobs) => post(`${session}/revoke`, { jti: jtiOf(bobs) }),
    'a new key': ({ session }) => post(`${session}/rotate-key`, {}),
    'a grant that is taken back': async ({ session }) => {
      const { json } = await ask(replica.url, 'GET', `${session}/grants`);
      return ask(replica.url, 'DELETE', `${session}/grants/${json.items[0].id}`);
    },
  };
  for (const [name, end] of Object.entries(ends))
    it(`${name} closes live connections within 2 s; the shell lives on for a fresh token`, async () => {
      const own = await started();
      const grant = { grantee: { type: 'user', id: BOB.sub }, capabilities: ['fs:rw', 'shell'] };
      await post(`${own.session}/grants`, grant);
      const guest = await ask(replica.url, 'GET', `/threads/${own.thread}/sandbox`, { as: BOB });
      const bobs: string = guest.json.token;
      const start = { shell_id: 'new', client_id: 'c1', command: ['/bin/cat'] };
      const clients: BareClient[] = [];
      let shell = '';
      for (let count = 0; count < 5; count++) {
        const client = await attach(own.shell, bobs, start);
        shell = (await client.frame('ready')).shell_id;
        clients.push(client);
      }
      const begin = performance.now();
      expect((await end(own, bobs)).status).toBe(204);
      for (const client of clients)
        expect(await client.closed()).toEqual({ code: 1008, reason: 'Invalid token' });
      expect(performance.now() - begin).toBeLessThan(2_000);
      expect(await knock(own, bobs)).toBe('401 UNAUTHENTICATED');
      expect(await dial(own, bobs)).toBe('1008 Invalid token');
      const again = (await ensure(replica.url, own.thread)).json.token;
      const shells = await fetch(`${own.http}/v1/shells`, {
        headers: { Authorization: `Bearer ${again}` },
      });
      const running = { id: shell, state: 'running' };
      const listed = JSON.parse(await shells.text());
      expect(listed.items).toContainEqual(expect.objectContaining(running));
    });
});

function jtiOf(token: string): string {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti;
}

/** The sandbox goes by all that is recorded. */
async function delivered(sandbox: SandboxId): Promise<void> {
  for (;;) {
    const [row] = await db.query(
      'SELECT id FROM sandboxes WHERE id = ? AND access_delivered = access_generation',
      [sandbox],
    );
    if (row !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The same token as it would be had it been issued that much earlier. */
async function age({ token, sandbox }: Started, seconds: number): Promise<string> {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  await db.run(
    'UPDATE issued_tokens SET issued_at = issued_at - ?, expires_at = expires_at - ? WHERE jti = ?',
    [seconds * 1000, seconds * 1000, claims.jti],
  );
  const older = { ...claims, iat: claims.iat - seconds, exp: claims.exp - seconds };
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(older)}`;
  const key = (await openSandboxKeys(db, (bytes) => bytes)).keyOf(sandbox, 1);
  return `${body}.${createHmac('sha256', key).update(body).digest('base64url')}`;
}
