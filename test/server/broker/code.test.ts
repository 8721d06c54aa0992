/** `execute_code`: what a call answers, the session of a turn, and the one row each call leaves. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseAnswer } from '../../../src/protocol/parse.js';
import { codeAnswer } from '../../../src/protocol/shapes/code.js';
import { eventually } from '../../support/eventually.js';
import { ask, ensure } from './support/client.js';
import { openCodeWorld } from './support/code-world.js';

describe('a call of code', () => {
  it('answers with what the code wrote and how it ended, in three languages', async () => {
    await using world = await openCodeWorld();
    const codes = {
      python: 'import sys\nprint(6 * 7)\nprint("oh", file=sys.stderr)',
      javascript: 'console.log(6 * 7); console.error("oh")',
      bash: 'echo $((6 * 7)); echo oh >&2; cat',
    };
    for (const [language, code] of Object.entries(codes)) {
      const { status, json } = await world.code({ language, code, turn_id: 't' });
      expect({ language, status, json }).toMatchObject({
        status: 200,
        json: { ok: true, stdout: '42\n', stderr: 'oh\n', exit_status: 'ok', stdout_bytes: 3 },
      });
      expect(parseAnswer(codeAnswer, json).ok).toBe(true);
      expect(json.duration_ms).toBeGreaterThan(0);
    }
  });

  it('tells failure, timeout and a dead interpreter apart, with what was written until then', async () => {
    await using world = await openCodeWorld();
    const failed = await world.code({ code: 'echo one; exit 7', turn_id: 't' });
    expect(failed.json).toMatchObject({
      ok: false,
      error: 'SandboxCodeError',
      exit_status: 'error',
      stdout: 'one\n',
    });
    const late = await world.code({ code: 'echo two; sleep 60', timeout_ms: 300, turn_id: 't' });
    expect(late.json).toMatchObject({
      ok: false,
      error: 'SandboxTimeout',
      exit_status: 'timeout',
      stdout: 'two\n',
    });
    const killed = await world.code({ code: 'kill -9 $$', turn_id: 't' });
    expect(killed.json).toMatchObject({ ok: false, exit_status: 'error' });
    const rows = await world.rows();
    expect(rows.map(({ exit_status }) => exit_status)).toEqual(['error', 'timeout', 'error']);
    const hash = createHash('sha256').update('echo one; exit 7').digest('hex');
    expect(rows[0]).toMatchObject({
      executed_code_hash: hash,
      stdout_bytes: 4,
      retention_days: 30,
    });
  });

  it('makes a session for the turn, shares it within the turn, and ends it with the turn', async () => {
    await using world = await openCodeWorld();
    const one = await world.code({ code: 'echo 1 > kept', turn_id: 'a' });
    const two = await world.code({ code: 'cat kept', turn_id: 'a' });
    expect(two.json).toMatchObject({ ok: true, stdout: '1\n', session_id: one.json.session_id });
    const other = await world.code({ code: 'cat kept', turn_id: 'b' });
    expect(other.json.ok).toBe(false);
    expect(other.json.session_id).not.toBe(one.json.session_id);
    const alone = await world.code({ code: 'echo alone' });
    expect(alone.json.ok).toBe(true);
    const open = 'SELECT id FROM sessions WHERE ended_at IS NULL';
    expect(await world.db.query(open)).toEqual([]);
    await eventually(async () => (await world.provider.list()).length === 0);
    expect(await world.rows()).toHaveLength(4);
  });

  it('works in the session a thread has, and leaves it', async () => {
    await using world = await openCodeWorld();
    const { json } = await ensure(world.url(), 'thr_code');
    const { json: answer } = await world.code({ code: 'pwd' });
    expect(answer).toMatchObject({ ok: true, session_id: json.session_id });
    const [open] = await world.db.query('SELECT id FROM sessions WHERE ended_at IS NULL');
    expect(open?.['id']).toBe(json.session_id);
  });

  it('ends a turn that nobody calls in any more', async () => {
    await using world = await openCodeWorld({ code: { idleSeconds: 1 } });
    await world.code({ code: 'true', turn_id: 'a' });
    const open = 'SELECT id FROM sessions WHERE ended_at IS NULL';
    expect(await world.db.query(open)).toHaveLength(1);
    await eventually(async () => (await world.db.query(open)).length === 0);
  });

  it('shows a call and all its output to its owner, and to nobody else', async () => {
    await using world = await openCodeWorld();
    const { json } = await world.code({ code: 'seq 1 100000' });
    expect(json.stdout_truncated).toBe(true);
    const path = `/v1/code/invocations/${json.invocation_id}`;
    const seen = await ask(world.url(), 'GET', path);
    expect(seen.json).toMatchObject({ id: json.invocation_id, agent_id: 'usr_alice' });
    const whole = await fetch(`${world.url()}${path}/output`, {
      headers: { authorization: `Bearer ${btoa('{"sub":"usr_alice"}')}` },
    });
    const text = await whole.text();
    expect(text.length).toBe(json.stdout_bytes);
    expect(text.endsWith('\n100000\n')).toBe(true);
    const list = await ask(world.url(), 'GET', '/v1/code/invocations');
    expect(list.json.items).toHaveLength(1);
    for (const as of [{ sub: 'usr_bob' }, { sub: 'usr_alice', tenant: 'other' }]) {
      expect((await ask(world.url(), 'GET', path, { as })).status).toBe(404);
      expect((await ask(world.url(), 'GET', `${path}/output`, { as })).status).toBe(404);
      expect((await ask(world.url(), 'GET', '/v1/code/invocations', { as })).json.items).toEqual(
        [],
      );
    }
  });

  it('is refused in a thread of somebody else, and without the right to run anything', async () => {
    await using world = await openCodeWorld();
    await ensure(world.url(), 'thr_code');
    expect((await world.code({ code: 'true' }, { as: { sub: 'usr_bob' } })).status).toBe(403);
    const as = { sub: 'usr_alice', scopes: ['read:sandbox'] as const };
    expect((await world.code({ code: 'true' }, { as })).status).toBe(403);
    expect(await world.rows()).toEqual([]);
  });
});
