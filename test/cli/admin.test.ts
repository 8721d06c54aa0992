import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { type BrokerAnswer, envelope } from '../support/fake-broker.js';
import { type AtBroker, atBroker, ESCAPED, HOSTILE } from './support/at-broker.js';

/** Answers each route with what is said here. */
function answering(at: AtBroker, answers: Readonly<Record<string, BrokerAnswer>>): void {
  at.broker.script = ({ route }) => answers[route];
}

describe('admin sandboxes', () => {
  it('list filters, kill ends; what is not allowed is 5', async () => {
    await using at = await atBroker();
    const item = { id: 'sb_1', tenant: 'acme', owner: HOSTILE, state: 'active' };
    answering(at, {
      listAllSandboxes: { status: 200, json: { items: [item], next_cursor: 'more' } },
      killSandbox: { status: 204 },
    });
    const filters = ['--tenant', 'acme', '--owner', 'ada', '--state', 'idle', '--limit', '7'];
    const list = await at.json('admin', 'sandboxes', 'list', ...filters);
    expect(list.document).toEqual({ items: [item], next_cursor: 'more' });
    expect(Object.fromEntries(at.broker.requests[0]?.query ?? [])).toEqual({
      tenant: 'acme',
      owner: 'ada',
      state: 'idle',
      limit: '7',
    });
    const { stdout } = await at.run('admin', 'sandboxes', 'list');
    expect(stdout).toMatch(/^SANDBOX +TENANT/);
    expect(stdout).toContain(ESCAPED);
    const killed = await at.json('admin', 'sandboxes', 'kill', 'sb_1');
    expect(killed.document).toEqual({ id: 'sb_1', killed: true });
    expect(at.broker.requests.at(-1)).toMatchObject({
      method: 'DELETE',
      path: '/admin/sandboxes/sb_1',
    });
    answering(at, { killSandbox: envelope('CAPABILITY_DENIED') });
    expect((await at.json('admin', 'sandboxes', 'kill', 'sb_1')).code).toBe(5);
  });
});

describe('admin tenant', () => {
  it('get and set: what is not named stays', async () => {
    await using at = await atBroker();
    const policy = {
      id: 'acme',
      sandbox_enabled: true,
      environment: 'internal-only',
      token_mode: 'opaque',
      audit_retention_days: 90,
    };
    answering(at, {
      getTenant: { status: 200, json: policy },
      setTenant: { status: 200, json: policy },
    });
    expect((await at.json('admin', 'tenant', 'get', 'acme')).document).toEqual(policy);
    expect((await at.run('admin', 'tenant', 'get', 'acme')).stdout).toMatch(/sandboxes +yes/);
    await at.json('admin', 'tenant', 'set', 'acme', '--enable', '--environment', 'internal-only');
    expect(at.broker.requests.at(-1)).toMatchObject({
      method: 'PATCH',
      json: { sandbox_enabled: true, environment: 'internal-only' },
    });
    await at.json('admin', 'tenant', 'set', 'acme', '--disable', '--audit-retention-days', '90');
    expect(at.broker.requests.at(-1)?.json).toEqual({
      sandbox_enabled: false,
      audit_retention_days: 90,
    });
    const asked = at.broker.requests.length;
    expect((await at.json('admin', 'tenant', 'set', 'acme')).error).toMatchObject({
      code: 'USAGE',
    });
    const both = await at.json('admin', 'tenant', 'set', 'acme', '--enable', '--disable');
    expect(both.error).toMatchObject({ code: 'USAGE', exit_code: 2 });
    expect(at.broker.requests).toHaveLength(asked);
  });
});

describe('admin client', () => {
  const policy = {
    client_id: 'agent-7',
    sidecar: null,
    environment: { PROXY: 'http://secret@proxy' },
    capability_ceiling: ['fs:ro'],
  };

  it('list and get; values of the environment are for programs only', async () => {
    await using at = await atBroker();
    answering(at, {
      listClients: { status: 200, json: { items: [policy] } },
      getClient: { status: 200, json: policy },
      deleteClient: { status: 204 },
    });
    expect((await at.json('admin', 'client', 'list')).document.items).toEqual([policy]);
    expect((await at.json('admin', 'client', 'get', 'agent-7')).document).toEqual(policy);
    for (const args of [['list'], ['get', 'agent-7']]) {
      const { stdout } = await at.run('admin', 'client', ...args);
      expect(stdout).toContain('PROXY');
      expect(stdout).not.toContain('secret');
    }
    expect((await at.json('admin', 'client', 'rm', 'agent-7')).document).toEqual({
      client_id: 'agent-7',
      removed: true,
    });
  });

  it('set puts what is said on top of what is there, or a whole file in its place', async () => {
    await using at = await atBroker();
    using folder = temporaryFolder();
    answering(at, {
      getClient: { status: 200, json: policy },
      setClient: { status: 200, json: policy },
    });
    const sent = async (...args: string[]) => {
      expect(await at.json('admin', 'client', 'set', 'agent-7', ...args)).toMatchObject({
        code: 0,
      });
      return at.broker.of('setClient').at(-1)?.json;
    };
    expect(await sent('--env', 'A=b=c')).toEqual({
      sidecar: null,
      environment: { PROXY: 'http://secret@proxy', A: 'b=c' },
      capability_ceiling: ['fs:ro'],
    });
    expect(await sent('--ceiling', 'fs:rw,shell')).toMatchObject({
      capability_ceiling: ['fs:rw', 'shell'],
    });
    expect(await sent('--no-ceiling')).toMatchObject({ capability_ceiling: null });
    const sidecar = { image: 'i', audience: 'a', scopes: ['s'] };
    const options = ['--sidecar-image', 'i', '--sidecar-audience', 'a', '--sidecar-scope', 's'];
    expect(await sent(...options)).toMatchObject({ sidecar });
    const half = await at.json('admin', 'client', 'set', 'agent-7', '--sidecar-image', 'i');
    expect(half.error).toMatchObject({ code: 'USAGE' });
    const file = join(folder.path, 'policy.json');
    writeFileSync(file, JSON.stringify({ environment: { X: '1' } }));
    expect(await sent('--from', file)).toEqual({
      sidecar: null,
      environment: { X: '1' },
      capability_ceiling: null,
    });
    answering(at, {
      getClient: envelope('NOT_FOUND'),
      setClient: { status: 200, json: policy },
    });
    expect(await sent('--ceiling', 'shell')).toEqual({
      sidecar: null,
      environment: {},
      capability_ceiling: ['shell'],
    });
  });
});

describe('admin trust', () => {
  it('list, add and rm', async () => {
    await using at = await atBroker();
    const trust = {
      id: 'trust_1',
      issuer: 'https://ci.example',
      audience: 'ailsd',
      claims: { repository: 'acme/app' },
      subject: 'ci',
      tenant: 'default',
      scopes: ['exec:sandbox'],
      created_at: '2026-02-27T20:20:00Z',
    };
    answering(at, {
      listWorkloadTrust: { status: 200, json: { items: [trust] } },
      addWorkloadTrust: { status: 201, json: trust },
      deleteWorkloadTrust: { status: 204 },
    });
    expect((await at.json('admin', 'trust', 'list')).document.items).toEqual([trust]);
    expect((await at.run('admin', 'trust', 'list')).stdout).toContain('https://ci.example');
    const options = ['--issuer', 'https://ci.example', '--audience', 'ailsd'];
    const rest = ['--claim', 'repository=acme/app', '--subject', 'ci', '--scope', 'exec:sandbox'];
    const added = await at.run('admin', 'trust', 'add', ...options, ...rest);
    expect(added).toMatchObject({ code: 0, stdout: 'trust_1\n' });
    const { id: _, created_at: __, ...sent } = trust;
    expect(at.broker.of('addWorkloadTrust')[0]?.json).toEqual(sent);
    expect((await at.json('admin', 'trust', 'add', ...options)).error).toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('--claim'),
    });
    expect((await at.json('admin', 'trust', 'rm', 'trust_1')).document).toEqual({
      id: 'trust_1',
      removed: true,
    });
  });
});

describe('admin audit', () => {
  const event = {
    id: 'evt_1',
    at: '2026-02-27T20:20:00Z',
    event: 'token.issued',
    sub: HOSTILE,
    jti: 'tok_1',
    details: { scope: 'shell' },
  };

  it('filters, by time and by how long ago; pages like every list', async () => {
    await using at = await atBroker();
    answering(at, { readAudit: { status: 200, json: { items: [event], next_cursor: null } } });
    const filters = ['--since', '2026-02-27', '--event', 'token.issued', '--sub', 'ada'];
    const more = ['--thread-id', 'thr_demo', '--session-id', 'ssn_1', '--tenant', 'acme'];
    const { document } = await at.json('admin', 'audit', ...filters, ...more);
    expect(document.items).toEqual([event]);
    expect(Object.fromEntries(at.broker.requests[0]?.query ?? [])).toEqual({
      since: '2026-02-27T00:00:00.000Z',
      event: 'token.issued',
      sub: 'ada',
      thread_id: 'thr_demo',
      session_id: 'ssn_1',
      tenant: 'acme',
    });
    const { stdout } = await at.run('admin', 'audit', '--since', '2h');
    const since = Date.parse(at.broker.requests.at(-1)?.query.get('since') ?? '');
    expect(Math.abs(Date.now() - 7_200_000 - since)).toBeLessThan(20_000);
    expect(stdout).toContain('token.issued');
    expect(stdout).toContain(ESCAPED);
    expect((await at.json('admin', 'audit', '--since', 'then')).error.code).toBe('USAGE');
    // The thread that is set is what other commands mean; nobody asked to filter by it.
    await ailsd(['admin', 'audit'], { env: { ...at.env, AILSD_THREAD: 'thr_set' } });
    expect(at.broker.requests.at(-1)?.query.get('thread_id')).toBe(null);
  });

  it('--export jsonl prints every event on a line of its own, as it comes', async () => {
    await using at = await atBroker();
    const events = Array.from({ length: 5_000 }, (_, index) => ({ ...event, id: `evt_${index}` }));
    answering(at, { readAudit: { status: 200, lines: events } });
    const { code, stdout } = await at.run(
      'admin',
      'audit',
      '--export',
      'jsonl',
      '--tenant',
      'acme',
    );
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(5_000);
    expect(JSON.parse(lines[4_999] ?? '')).toEqual(events[4_999]);
    expect(Object.fromEntries(at.broker.requests[0]?.query ?? [])).toEqual({
      tenant: 'acme',
      format: 'jsonl',
    });
  });
});
