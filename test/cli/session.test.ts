import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ErrorCode, errorRow } from '../../src/protocol/errors.js';
import { parse } from '../../src/protocol/parse.js';
import { sessionAnswer } from '../../src/protocol/shapes/sessions.js';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { envelope } from '../support/fake-broker.js';
import { ailsdInPty } from '../support/pty.js';
import { atBroker, ESCAPED, HOSTILE } from './support/at-broker.js';

const PROCESSES = 50;
function kept(folder: string): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
}

describe('session get and ensure', () => {
  it('ensure makes one, get finds it: the wire’s names with --json, and no token in the text', async () => {
    await using at = await atBroker();
    expect((await at.json('session', 'get', 'thr_demo')).error).toMatchObject({
      code: 'BINDING_NOT_FOUND',
      exit_code: 3,
      hint: expect.stringContaining('ailsd session ensure'),
    });
    const { code, document } = await at.json('session', 'ensure', 'thr_demo');
    expect(code).toBe(0);
    expect(document).toMatchObject({
      session_id: expect.stringMatching(/^ssn_/),
      thread_id: 'thr_demo',
      sandbox: { id: expect.stringMatching(/^sb_/), provider: 'local' },
      token: at.broker.tokens.at(-1),
      expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
      binding: { state: 'active', scope: { type: 'thread', id: 'thr_demo' } },
      credentials: { token_type: 'Bearer', granted_capabilities: ['fs:rw', 'shell'] },
      policy: { idle_timeout_seconds: 900, hard_ttl_seconds: 28_800 },
    });
    expect(parse(sessionAnswer, document, 'INTERNAL', '').ok).toBe(true);
    const { stdout, stderr } = await at.run('session', 'get', 'thr_demo', '--debug');
    expect(stdout).toContain('thr_demo is active');
    expect(stdout).toContain(document.sandbox.id);
    for (const token of at.broker.tokens) expect(stdout + stderr).not.toContain(token);
    expect((await at.json('session', 'get', 'thr_demo')).document.session_id).toBe(
      document.session_id,
    );
    expect(at.broker.made).toBe(1);
  });

  it('the thread is named by argument, AILSD_THREAD or .ailsd.json, in this order', async () => {
    await using at = await atBroker();
    using project = temporaryFolder();
    writeFileSync(join(project.path, '.ailsd.json'), '{"thread":"thr_project"}');
    const threadOf = async (args: string[], env: Record<string, string> = {}) => {
      const options = { env: { ...at.env, ...env }, cwd: project.path };
      return JSON.parse((await ailsd(['session', 'ensure', '--json', ...args], options)).stdout)
        .thread_id;
    };
    expect(await threadOf([])).toBe('thr_project');
    expect(await threadOf([], { AILSD_THREAD: 'thr_variable' })).toBe('thr_variable');
    expect(await threadOf(['thr_x'], { AILSD_THREAD: 'thr_variable' })).toBe('thr_x');
    expect(await threadOf(['--', '-rf'])).toBe('-rf');
    expect(await threadOf(['..'])).toBe('..');
    expect((await at.json('session', 'get')).error).toMatchObject({ code: 'USAGE', exit_code: 2 });
    expect((await at.json('session', 'get', 'a/b')).error).toMatchObject({ code: 'USAGE' });
  });

  it('what is remembered is one 0600 file, without any token, and is used as a hint', async () => {
    await using at = await atBroker();
    const { document } = await at.json('session', 'ensure', 'thr_demo');
    await at.run('session', 'ensure', 'thr_demo');
    expect(at.broker.of('negotiateSession').at(-1)?.json.sandbox_hint).toBe(document.sandbox.id);
    const [name = '', ...more] = readdirSync(at.cache);
    expect(more).toEqual([]);
    expect(statSync(join(at.cache, name)).mode & 0o777).toBe(0o600);
    const text = kept(at.cache);
    expect(text).toContain(document.sandbox.id);
    for (const token of [...at.broker.tokens, at.env['AILSD_TOKEN']]) {
      expect(text).not.toContain(token);
    }
  });

  it('is kept where caches are kept; a home that is not there is not made for it', async () => {
    await using at = await atBroker();
    using folder = temporaryFolder();
    const ensure = (env: Record<string, string>) =>
      ailsd(['session', 'ensure', 'thr_demo'], { env: { ...at.broker.env, ...env } });
    const home = join(folder.path, 'home');
    expect(await ensure({ HOME: home })).toMatchObject({ code: 0 });
    expect(existsSync(home)).toBe(false);
    await ensure({ HOME: folder.path });
    expect(readdirSync(join(folder.path, '.cache', 'ailsd', 'sessions'))).toHaveLength(1);
    await ensure({ HOME: folder.path, XDG_CACHE_HOME: join(folder.path, 'xdg') });
    expect(readdirSync(join(folder.path, 'xdg', 'ailsd', 'sessions'))).toHaveLength(1);
  });

  it(`${PROCESSES} processes at once get one session, and what they remember is whole`, async () => {
    await using at = await atBroker({ startMs: 500 });
    const runs = await Promise.all(
      Array.from({ length: PROCESSES }, () => at.json('session', 'ensure', 'thr_demo')),
    );
    expect(runs.filter(({ code }) => code !== 0)).toEqual([]);
    expect(new Set(runs.map(({ document }) => document.session_id)).size).toBe(1);
    expect(new Set(runs.map(({ document }) => document.token)).size).toBe(PROCESSES);
    expect(at.broker.made).toBe(1);
    expect(readdirSync(at.cache)).toHaveLength(1);
    expect(JSON.parse(kept(at.cache)).session_id).toBe(runs[0]?.document.session_id);
  }, 60_000);

  it('capabilities, time and the rest reach the server; what it changed is told', async () => {
    await using at = await atBroker();
    const options = ['--cap', 'fs_read,shell:ro', '--cap', 'process', '--ttl', '5s', '--agent'];
    const more = ['--template', 'py', '--provider', 'local', '--hint', 'sb_x', '--create-only'];
    const { stderr, code } = await at.run('session', 'ensure', 'thr_demo', ...options, ...more);
    expect(code).toBe(0);
    expect(stderr).toContain('ttl: 5 was asked for, 60 was granted');
    expect(at.broker.of('negotiateSession')[0]?.json).toMatchObject({
      mode: 'create_only',
      requested_capabilities: ['fs:ro', 'shell:ro', 'process'],
      actor: { type: 'agent' },
      sandbox_hint: 'sb_x',
      provider_preference: 'local',
      template: 'py',
      ttl: 5,
    });
    expect((await at.json('session', 'ensure', 'thr_demo', '--create-only')).error).toMatchObject({
      code: 'BINDING_CONFLICT',
      exit_code: 6,
    });
    expect((await at.json('session', 'get', 'thr_demo', '--cap', 'fs:rx')).error).toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('fs:r'),
    });
  });

  const refusals: [ErrorCode, number][] = [
    ['BINDING_NOT_FOUND', 3],
    ['SESSION_EXPIRED', 3],
    ['UNAUTHENTICATED', 4],
    ['CAPABILITY_DENIED', 5],
    ['FORBIDDEN', 5],
    ['BINDING_CONFLICT', 6],
    ['BACKEND_UNAVAILABLE', 7],
    ['RATE_LIMITED', 8],
    ['QUOTA_EXCEEDED', 8],
  ];
  it.each(refusals)(
    '%s: exit %i, with a hint and what the server said, escaped',
    async (code, exit) => {
      await using at = await atBroker();
      at.broker.script = () => envelope(code, HOSTILE);
      const result = await at.json('session', 'ensure', 'thr_demo');
      expect([result.code, result.error.code]).toEqual([exit, code]);
      expect(result.error.hint).not.toBe('');
      expect(errorRow(code).exit).toBe(exit);
      const { stderr, code: status } = await at.run('session', 'ensure', 'thr_demo');
      expect(status).toBe(exit);
      expect(stderr).toContain(`ailsd: ${code}:`);
      expect(stderr).toMatch(/hint: \S/);
      expect(stderr).not.toContain('\u001b');
      expect(stderr).not.toContain('\u202e');
    },
  );

  it('a sandbox that starts is waited for as long as was said, and not at all with --no-wait', async () => {
    await using at = await atBroker({ startMs: 30_000 });
    expect((await at.json('session', 'ensure', 'thr_demo', '--no-wait')).error).toMatchObject({
      code: 'SANDBOX_STARTING',
      exit_code: 7,
      retryable: true,
    });
    expect((await at.json('session', 'ensure', 'thr_demo', '--timeout', '1s')).error).toMatchObject(
      {
        code: 'TIMEOUT',
        exit_code: 9,
      },
    );
  });

  it('on a terminal a spinner shows what is waited for; Ctrl-C ends it and leaves no trace of it', async () => {
    await using at = await atBroker({ startMs: 60_000 });
    using program = ailsdInPty(['session', 'ensure', 'thr_demo'], { env: at.env });
    await program.shows('waiting for the sandbox of thr_demo to start');
    program.type('\u0003');
    expect(await program.ended()).toBe(130);
    expect(program.screen()).not.toContain('waiting for the sandbox');
    expect(program.raw().lastIndexOf('\u001b[?25h')).toBeGreaterThan(
      program.raw().lastIndexOf('\u001b[?25l'),
    );
  });

  it('a server that cannot be reached: 7', async () => {
    const env = { AILSD_URL: 'http://127.0.0.1:1', AILSD_TOKEN: 'x' };
    const { code, stderr } = await ailsd(['session', 'get', 'thr_demo', '--json'], { env });
    expect([code, JSON.parse(stderr).error.code]).toEqual([7, 'UNREACHABLE']);
  });
});

describe('access negotiated elsewhere', () => {
  const access = (expires = Date.now() + 900_000) => ({
    session_id: 'ssn_local_1',
    thread_id: 'thr_123',
    sandbox: {
      id: 'sb_123',
      provider: 'langsmith',
      http_base_url: 'https://dp.example.com/v1',
      ws_base_url: 'wss://dp.example.com/v1',
    },
    token: 'provider_token',
    expires_at: new Date(expires).toISOString(),
  });

  it('by variable, file or standard input, bare or inside a configuration: no server, no login', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'access.json');
    const wrapped = JSON.stringify({ config: { configurable: { sandbox: access() } } });
    writeFileSync(file, wrapped);
    const runs = await Promise.all([
      ailsd(['session', 'get', '--json'], { env: { AILSD_SANDBOX: JSON.stringify(access()) } }),
      ailsd(['session', 'get', '--json'], { env: { AILSD_SANDBOX: file } }),
      ailsd(['session', 'ensure', 'thr_123', '--sandbox', file, '--json']),
      ailsd(['session', 'get', '--sandbox', '-', '--json'], { input: wrapped }),
    ]);
    for (const { code, stdout, stderr } of runs) {
      expect([code, stderr]).toEqual([0, '']);
      expect(JSON.parse(stdout)).toMatchObject({
        session_id: 'ssn_local_1',
        token: 'provider_token',
      });
    }
    const { stdout } = await ailsd(['session', 'get'], { env: { AILSD_SANDBOX: file } });
    expect(stdout).toContain('cannot be renewed');
    expect(stdout).not.toContain('provider_token');
  });

  it('what `session get --json` prints is such access', async () => {
    await using at = await atBroker();
    const { stdout } = await at.run('session', 'ensure', 'thr_demo', '--json');
    const { code, stdout: again } = await ailsd(['session', 'get', '--json'], {
      env: { AILSD_SANDBOX: stdout },
    });
    expect(code).toBe(0);
    expect(JSON.parse(again).token).toBe(JSON.parse(stdout).token);
  });

  it('over: 4, and says that it cannot be renewed; broken: 2; on the command line: refused, and not repeated', async () => {
    const over = JSON.stringify(access(Date.now() - 60_000));
    const ended = await ailsd(['session', 'get', '--json'], { env: { AILSD_SANDBOX: over } });
    expect([ended.code, JSON.parse(ended.stderr).error]).toMatchObject([
      4,
      { code: 'TOKEN_EXPIRED', message: expect.stringContaining('cannot be renewed') },
    ]);
    const env = { AILSD_SANDBOX: '{"token":"secret' };
    const broken = await ailsd(['session', 'get'], { env });
    expect([broken.code, broken.stderr.includes('secret')]).toEqual([2, false]);
    const shown = await ailsd(['session', 'get', '--sandbox', JSON.stringify(access())]);
    expect([shown.code, shown.stderr.includes('provider_token')]).toEqual([2, false]);
    const other = await ailsd(['session', 'get', 'thr_x'], {
      env: { AILSD_SANDBOX: JSON.stringify(access()) },
    });
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('another thread')]);
  });
});

describe('session list, info, heartbeat and release', () => {
  it('each in JSON and in text', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', 'thr_demo');
    const list = await at.json('session', 'list');
    expect(list.document).toMatchObject({ items: [{ thread_id: 'thr_demo' }], next_cursor: null });
    expect((await at.run('session', 'list')).stdout).toMatch(
      /^THREAD +STATE[\s\S]*thr_demo +active/,
    );
    const info = await at.json('session', 'info', 'thr_demo');
    expect(info.document).toMatchObject({ thread_id: 'thr_demo', binding: { state: 'active' } });
    expect((await at.run('session', 'info', 'thr_demo')).stdout).toContain('thr_demo is active');
    const beat = await at.json('session', 'heartbeat', 'thr_demo');
    expect(beat.document).toMatchObject({ state: 'active', lease_expires_at: expect.any(String) });
    expect((await at.run('session', 'heartbeat', 'thr_demo')).stdout).toContain('is kept until');
    // Looking and keeping cost no token.
    expect(at.broker.tokens).toHaveLength(1);
    const released = await at.json('session', 'release', 'thr_demo');
    expect(released.document).toMatchObject({ thread_id: 'thr_demo', released: true });
    expect(readdirSync(at.cache)).toEqual([]);
    expect((await at.json('session', 'release', 'thr_demo')).code).toBe(3);
    expect((await at.json('session', 'info', 'thr_demo')).code).toBe(3);
  });

  it('lists go by pages, and hostile names do nothing to a terminal', async () => {
    await using at = await atBroker();
    const page = (from: number): object[] =>
      Array.from({ length: 2 }, (_, index) => ({ thread_id: `${HOSTILE}${from + index}` }));
    at.broker.script = ({ route, query }) => {
      if (route !== 'listSessions') return undefined;
      const from = Number(query.get('cursor') ?? 0);
      const next_cursor = from < 4 ? String(from + 2) : null;
      return { status: 200, json: { items: page(from), next_cursor } };
    };
    const first = await at.json('session', 'list', '--limit', '2');
    expect(first.document.next_cursor).toBe('2');
    expect(at.broker.requests.at(-1)?.query.get('limit')).toBe('2');
    const second = await at.json('session', 'list', '--cursor', '2');
    expect(second.document.items[0].thread_id).toBe(`${HOSTILE}2`);
    const all = await at.json('session', 'list', '--all');
    expect(all.document).toMatchObject({ next_cursor: null });
    expect(all.document.items).toHaveLength(6);
    const { stdout, stderr } = await at.run('session', 'list');
    expect(stderr).toContain('--cursor 2');
    expect(stdout).not.toMatch(/[\u001b\u202e]/);
    expect(stdout).toContain(`${ESCAPED}0`);
    const lines = await at.run('session', 'list', '--all', '-o', 'jsonl');
    expect(lines.stdout.trimEnd().split('\n')).toHaveLength(6);
  });

  it('a list is no wider than the terminal it is printed on', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', `thr_${'long'.repeat(20)}`);
    using program = ailsdInPty(['session', 'list'], {
      env: { ...at.env, NO_COLOR: '1' },
      columns: 70,
    });
    expect(await program.ended()).toBe(0);
    await eventually(() => program.raw().includes('SESSION'));
    const longest = Math.max(
      ...program
        .raw()
        .split('\r\n')
        .map((line) => line.length),
    );
    expect(longest).toBeLessThanOrEqual(70);
    expect(program.raw()).toContain('…');
  });
});
