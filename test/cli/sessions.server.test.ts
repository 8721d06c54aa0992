import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { startServer, type TestServer } from '../support/server.js';

const PROCESSES = 50;

/** A real server with real sandboxes, whose daemon ends with the test. */
async function realServer(): Promise<TestServer & { readonly places: string }> {
  const folder = temporaryFolder();
  const local = join(folder.path, 'local');
  const server = await startServer({ config: { local: { dir: local } } });
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await endDaemon(local);
    folder[Symbol.dispose]();
  });
  return Object.assign(server, { places: folder.path });
}

async function endDaemon(local: string): Promise<void> {
  const file = join(local, 'daemon.json');
  if (!existsSync(file)) return;
  const { pid } = JSON.parse(readFileSync(file, 'utf8'));
  process.kill(pid, 'SIGTERM');
  await eventually(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
}

/** Runs of `ailsd` as a service client, with an access token of its own and an own cache. */
async function as(
  server: TestServer & { readonly places: string },
  name: string,
  { clientId, clientSecret }: { readonly clientId: string; readonly clientSecret: string },
) {
  const base = { AILSD_URL: server.url, AILSD_CACHE_DIR: join(server.places, name) };
  const login = { ...base, AILSD_CLIENT_ID: clientId, AILSD_CLIENT_SECRET: clientSecret };
  const { stdout } = await ailsd(['token'], { env: login });
  const env = { ...base, AILSD_TOKEN: stdout.trim() };
  const json = async (...args: string[]) => {
    const result = await ailsd([...args, '--json'], { env });
    return {
      code: result.code,
      document: result.stdout === '' ? undefined : JSON.parse(result.stdout),
      error: result.stderr === '' ? undefined : JSON.parse(result.stderr).error,
    };
  };
  return { env, json, cache: join(server.places, name, 'sessions') };
}

describe('the commands at a real server', () => {
  it('from the first session to the audit of its end, shared in between', async () => {
    const server = await realServer();
    const ada = await as(server, 'ada', server.admin);
    expect((await ada.json('session', 'get', 'thr_demo')).code).toBe(3);

    const runs = await Promise.all(
      Array.from({ length: PROCESSES }, () => ada.json('session', 'ensure', 'thr_demo')),
    );
    expect(runs.filter(({ code }) => code !== 0)).toEqual([]);
    const [first] = runs;
    expect(new Set(runs.map(({ document }) => document.sandbox.id)).size).toBe(1);
    const listed = await ada.json('sandbox', 'list');
    expect(listed.document.items).toHaveLength(1);
    const kept = readdirSync(ada.cache).map((name) => readFileSync(join(ada.cache, name), 'utf8'));
    expect(kept).toHaveLength(1);
    for (const { document } of runs) expect(kept[0]).not.toContain(document.token);

    const why = await ada.json('sandbox', 'why', 'thr_demo');
    expect(why.document).toMatchObject({ state: 'active', kept_by: [{ by: 'lease' }] });
    const narrow = await ada.json('token', '--thread', 'thr_demo', '--cap', 'fs:ro', '--ttl', '60');
    expect(narrow.document).toMatchObject({ capabilities: ['fs:ro'] });

    const made = await server.operate('client-add', {
      name: 'Ben',
      kind: 'confidential',
      grants: ['client-credentials'],
      scopes: ['read:sandbox', 'attach:sandbox'],
    });
    const ben = await as(server, 'ben', {
      clientId: made['client_id'],
      clientSecret: made['client_secret'],
    });
    expect((await ben.json('session', 'get', 'thr_demo')).code).toBe(3);
    expect((await ben.json('session', 'ensure', 'thr_demo')).code).toBe(5);
    expect((await ben.json('admin', 'sandboxes', 'list')).code).toBe(5);
    const shared = await ada.json('share', 'add', made['client_id'], 'thr_demo');
    expect(shared.code).toBe(0);
    expect((await ben.json('session', 'get', 'thr_demo')).document).toMatchObject({
      sandbox: { id: first?.document.sandbox.id },
      credentials: { granted_capabilities: ['fs:ro', 'shell:ro'] },
    });
    expect((await ada.json('share', 'rm', shared.document.id, 'thr_demo')).code).toBe(0);
    expect((await ben.json('session', 'get', 'thr_demo')).code).toBe(3);

    const conflict = await ada.json('session', 'ensure', 'thr_demo', '--create-only');
    expect(conflict.code).toBe(6);
    await server.stop();
    expect((await ada.json('session', 'heartbeat', 'thr_demo')).code).toBe(7);
    await server.start();
    expect((await ada.json('session', 'heartbeat', 'thr_demo')).document).toMatchObject({
      session_id: first?.document.session_id,
      state: 'active',
    });
    expect((await ada.json('session', 'release', 'thr_demo')).code).toBe(0);
    expect((await ada.json('sandbox', 'list')).document.items).toEqual([]);

    const { stdout } = await ailsd(['admin', 'audit', '--export', 'jsonl'], { env: ada.env });
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).event);
    expect(events.filter((event) => event === 'session.created')).toHaveLength(1);
    expect(events.filter((event) => event === 'token.issued').length).toBeGreaterThan(PROCESSES);
    for (const { document } of runs) expect(stdout).not.toContain(document.token);
    expect(server.log()).not.toContain(first?.document.token);
  }, 90_000);
});
