/** A session that is let go of while it is in use: a real shell and a real command in its sandbox, and callers that race. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Db } from '../../../src/server/store/db.js';
import { migrate } from '../../../src/server/store/migrations.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { proves } from '../../requirements.js';
import { temporaryFolder } from '../../support/cli.js';
import { DaemonProvider } from '../../support/daemon-provider.js';
import { eventually } from '../../support/eventually.js';
import { attach } from '../sandboxd/support/bare-client.js';
import { ask, ensure, type Reply, untilStarted } from './support/client.js';
import { openReplica, type Replica } from './support/replica.js';

const ROUNDS = process.env['AILSD_SOAK'] === '1' ? 500 : 12;
const LANES = 3;
const ASKED = { requested_capabilities: ['fs_write', 'shell', 'exec'] };
const REFUSED_WITHIN_MS = 2_000;
/** By which the commands of this test are told from everybody else's. */
const FOREVER = `86400.${process.pid}`;

const folder = temporaryFolder();
let db: Db;
let provider: DaemonProvider;
let replicas: readonly Replica[];

beforeAll(async () => {
  db = await openStore(join(folder.path, 'store.db'));
  await migrate(db);
  provider = await DaemonProvider.open();
  replicas = [await openReplica({ db, provider }), await openReplica({ db, provider })];
});
afterAll(async () => {
  for (const replica of replicas ?? []) await replica[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  await db?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const url = (turn: number): string => replicas[turn % replicas.length]?.url ?? '';

it(proves(
  'whatever goes on in a sandbox, a release ends it, and nothing is left',
  'BR-06',
), async () => {
  await Promise.all(Array.from({ length: LANES }, (_, lane) => race(lane)));
  await deletedWhileStarting();
  await expired();
  await eventually(async () => (await provider.list()).length === 0);
  await eventually(async () => (await commandsLeft()) === 0);
  const open = await db.query('SELECT id FROM sessions WHERE ended_at IS NULL');
  expect(open).toEqual([]);
}, 600_000);

async function race(lane: number): Promise<void> {
  for (let round = lane; round < ROUNDS; round += LANES) {
    const thread = `thr_live-${lane}`;
    const first = await untilStarted(() => ensure(url(round), thread, { body: ASKED }));
    expect(first.status).toBe(200);
    const { token, sandbox } = first.json;
    const path = `/v1/sandbox/sessions/${first.json.session_id}`;
    const refresh = () => ask(url(round + 1), 'POST', `${path}/refresh`, { body: {} });
    const shellUrl = `${sandbox.ws_base_url}/v1/shell/ws`;
    using shell = await attach(shellUrl, token, { shell_id: 'new', command: ['/bin/cat'] });
    const command = exec(first, ['sleep', FOREVER]);
    await eventually(async () => (await running(sandbox.http_base_url, token)) > 0);

    const [released, during, refreshed, beat, ran] = await Promise.all([
      ask(url(round), 'DELETE', path).then((reply) => ({ ...reply, atMs: performance.now() })),
      ensure(url(round + 1), thread),
      refresh(),
      ask(url(round + 1), 'POST', `${path}/heartbeat`),
      exec(first, ['true']),
    ]);
    expect(released.status).toBe(204);
    expect([200, 423, 503]).toContain(during.status);
    expectOneOf(refreshed, 'SESSION_NOT_FOUND');
    expectOneOf(beat, 'BINDING_NOT_FOUND');
    expect(ran).toBeDefined();

    // What was open ends, and what knocks is refused.
    await shell.closed();
    await command;
    await eventually(async () => (await knock(sandbox.http_base_url, token)) >= 400);
    expect(performance.now() - released.atMs).toBeLessThan(REFUSED_WITHIN_MS);
    for (let twice = 0; twice < 2; twice++)
      expect(await ask(url(round), 'DELETE', path)).toMatchObject({
        status: 404,
        json: { error: { code: 'SESSION_NOT_FOUND' } },
      });
    expect(await refresh()).toMatchObject({
      status: 404,
      json: { error: { code: 'SESSION_NOT_FOUND' } },
    });
    const after = await untilStarted(() => ensure(url(round + 1), thread, { body: ASKED }));
    expect(after.status).toBe(200);
    expect(after.json.sandbox.id).not.toBe(sandbox.id);
    expect(await exec(after, ['true'])).toBe(200);
    const last = `/v1/sandbox/sessions/${after.json.session_id}`;
    expect((await ask(url(round), 'DELETE', last)).status).toBe(204);
  }
}

async function deletedWhileStarting(): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const starting = ensure(url(round), 'thr_starting');
    let id: unknown;
    await eventually(async () => {
      const rows = await db.query('SELECT id FROM sessions WHERE ended_at IS NULL');
      id = rows[0]?.['id'];
      return id !== undefined;
    });
    expect((await ask(url(round + 1), 'DELETE', `/v1/sandbox/sessions/${id}`)).status).toBe(204);
    const reply = await starting;
    if (reply.status === 200 && reply.json.session_id !== id)
      await ask(url(0), 'DELETE', `/v1/sandbox/sessions/${reply.json.session_id}`);
  }
}

async function expired(): Promise<void> {
  const made = await untilStarted(() => ensure(url(0), 'thr_expired'));
  await db.run('UPDATE sandboxes SET hard_expires_at = 1 WHERE ended_at IS NULL');
  const path = `/v1/sandbox/sessions/${made.json.session_id}`;
  const refresh = () => ask(url(1), 'POST', `${path}/refresh`, { body: {} });
  await eventually(async () => (await refresh()).status === 410);
  expect((await refresh()).json.error.code).toBe('SESSION_EXPIRED');
}

/** The status; 0 where the line was cut. */
async function exec({ json }: Reply, argv: readonly string[]): Promise<number> {
  return fetch(`${json.sandbox.http_base_url}/v1/exec`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${json.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ argv }),
  })
    .then(async (reply) => {
      await reply.arrayBuffer();
      return reply.status;
    })
    .catch(() => 0);
}

async function running(http: string, token: string): Promise<number> {
  const reply = await fetch(`${http}/v1/commands`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const { items } = JSON.parse(await reply.text());
  return items?.length ?? 0;
}

async function knock(http: string, token: string): Promise<number> {
  const reply = await fetch(`${http}/v1/shells`, { headers: { Authorization: `Bearer ${token}` } });
  await reply.arrayBuffer();
  return reply.status;
}

async function commandsLeft(): Promise<number> {
  let left = 0;
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.split('\0').includes(FOREVER)) left += 1;
  }
  return left;
}

function expectOneOf(reply: Reply, code: string): void {
  if (reply.status === 200) return;
  expect(reply).toMatchObject({ status: 404, json: { error: { code } } });
}
