import { describe, expect, it } from 'vitest';
import { STATES } from '../../src/cli/sessions/options.js';
import { SANDBOX_STATES } from '../../src/protocol/shapes/sessions.js';
import { ailsd } from '../support/cli.js';
import { envelope } from '../support/fake-broker.js';
import { type AtBroker, atBroker, ESCAPED, HOSTILE } from './support/at-broker.js';

/** A thread with a sandbox, and that sandbox's id. */
async function withSandbox(at: AtBroker): Promise<string> {
  return (await at.json('session', 'ensure', 'thr_demo')).document.sandbox.id;
}

describe('sandbox', () => {
  it('list, info, start, stop, rename and rm, by thread and by id, in JSON and in text', async () => {
    await using at = await atBroker();
    const id = await withSandbox(at);
    const list = await at.json('sandbox', 'list', '--state', 'active', '--thread-id', 'thr_demo');
    expect(list.document).toMatchObject({ items: [{ id }], next_cursor: null });
    expect(Object.fromEntries(at.broker.requests.at(-1)?.query ?? [])).toEqual({
      state: 'active',
      thread_id: 'thr_demo',
    });
    expect((await at.run('sandbox', 'list')).stdout).toMatch(
      /^SANDBOX[\s\S]*sb_.* active +thr_demo/,
    );
    for (const verb of ['info', 'start', 'stop']) {
      for (const named of ['thr_demo', id]) {
        const { code, document } = await at.json('sandbox', verb, named);
        expect([verb, code, document]).toMatchObject([verb, 0, { id, thread_id: 'thr_demo' }]);
      }
      expect((await at.run('sandbox', verb, id)).stdout).toContain(`${id} is active`);
    }
    expect(at.broker.of('startSandbox')).toHaveLength(3);
    expect(at.broker.of('stopSandbox')).toHaveLength(3);
    const renamed = await at.json('sandbox', 'rename', 'thr_demo', 'Release notes');
    expect(renamed.document).toMatchObject({ id, name: 'Release notes' });
    expect(at.broker.of('renameSandbox')[0]?.json).toEqual({ name: 'Release notes' });
    const removed = await at.json('sandbox', 'rm', 'thr_demo');
    expect(removed.document).toEqual({ id, removed: true });
    expect((await at.json('sandbox', 'info', id)).error).toMatchObject({
      code: 'NOT_FOUND',
      exit_code: 3,
    });
    expect((await at.json('sandbox', 'info', 'thr_demo')).code).toBe(3);
  });

  it('without a word the thread that is set is meant', async () => {
    await using at = await atBroker();
    const id = await withSandbox(at);
    const env = { ...at.env, AILSD_THREAD: 'thr_demo' };
    const { stdout } = await ailsd(['sandbox', 'info', '--json'], { env });
    expect(JSON.parse(stdout).id).toBe(id);
    expect((await at.json('sandbox', 'info')).error).toMatchObject({ code: 'USAGE', exit_code: 2 });
  });

  it('a thread may be called like a sandbox, and another’s sandbox that was shared is found', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', 'sb_thread');
    expect((await at.json('sandbox', 'info', 'sb_thread')).document).toMatchObject({
      thread_id: 'sb_thread',
    });
    const id = await withSandbox(at);
    at.broker.script = ({ route }) =>
      route === 'listSandboxes' ? { status: 200, json: { items: [] } } : undefined;
    expect((await at.json('sandbox', 'info', 'thr_demo')).document).toMatchObject({ id });
  });

  it('why: who keeps it alive, until when, and what happens then', async () => {
    await using at = await atBroker();
    const id = await withSandbox(at);
    const why = {
      sandbox_id: id,
      thread_id: 'thr_demo',
      state: 'active',
      now: '2026-02-27T20:20:00Z',
      last_active_at: '2026-02-27T20:19:00Z',
      kept_by: [
        { by: 'lease', until: '2026-02-27T20:35:00Z' },
        { by: 'shells', count: 2 },
        { by: HOSTILE },
      ],
      activity_known: false,
      next: { at: '2026-02-27T20:35:00Z', state: 'suspended', because: 'idle_timeout' },
      expires_at: '2026-02-28T04:20:00Z',
      idle_timeout_seconds: 900,
    };
    at.broker.script = ({ route }) =>
      route === 'explainSandbox' ? { status: 200, json: why } : undefined;
    expect((await at.json('sandbox', 'why', 'thr_demo')).document).toEqual(why);
    const { stdout } = await at.run('sandbox', 'why', 'thr_demo');
    expect(stdout).toContain(`${id} of thr_demo is active`);
    expect(stdout).toMatch(/kept by +its lease: .* until 2026-02-27 20:35:00Z\n +2 shells/);
    expect(stdout).toContain(ESCAPED);
    expect(stdout).toContain('could not be found out');
    expect(stdout).toMatch(/then +suspended at 2026-02-27 20:35:00Z, after 900 s/);
    expect(stdout).toMatch(/ends +2026-02-28 04:20:00Z in any case/);
  });

  it('logs come as they are written, made safe; lines of JSON for programs', async () => {
    await using at = await atBroker();
    await withSandbox(at);
    const at0 = '2026-02-27T20:20:00Z';
    const chunks = [
      { at: at0, stream: 'stdout', data: `one ${HOSTILE}` },
      {
        at: at0,
        stream: 'stderr',
        data: Buffer.from('zwei\n').toString('base64'),
        encoding: 'base64',
      },
    ];
    at.broker.script = ({ route }) =>
      route === 'getSandboxLogs' ? { status: 200, lines: chunks } : undefined;
    const { stdout } = await at.run('sandbox', 'logs', 'thr_demo', '--tail', '5');
    expect(stdout).toBe(
      `2026-02-27 20:20:00Z  one a\\x1b[2J\\u202eb\n2026-02-27 20:20:00Z  zwei\n`,
    );
    expect(at.broker.requests.at(-1)?.query.get('tail')).toBe('5');
    expect((await at.json('sandbox', 'logs', 'thr_demo')).document.items).toEqual(chunks);
    const lines = await at.run('sandbox', 'logs', 'thr_demo', '-f', '-o', 'jsonl');
    expect(
      lines.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(chunks);
    expect(at.broker.requests.at(-1)?.query.get('follow')).toBe('1');
    at.broker.script = ({ route }) =>
      route === 'getSandboxLogs' ? envelope('BACKEND_UNAVAILABLE') : undefined;
    expect((await at.json('sandbox', 'logs', 'thr_demo')).error).toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
      exit_code: 7,
    });
  });

  it('hostile names do nothing to a terminal', async () => {
    await using at = await atBroker();
    const id = await withSandbox(at);
    const item = { id, name: HOSTILE, state: HOSTILE, thread_id: HOSTILE, owner: HOSTILE };
    at.broker.script = ({ route }) => {
      if (route === 'listSandboxes') return { status: 200, json: { items: [item] } };
      return route === 'getSandbox' ? { status: 200, json: item } : undefined;
    };
    for (const args of [
      ['sandbox', 'list'],
      ['sandbox', 'info', 'thr_demo'],
    ]) {
      const { stdout } = await at.run(...args);
      expect(stdout).toContain(ESCAPED);
      expect(stdout).not.toMatch(/[\u001b\u202e]/);
    }
  });

  it('knows the states of the protocol', () => {
    expect(STATES).toEqual(SANDBOX_STATES);
  });
});
