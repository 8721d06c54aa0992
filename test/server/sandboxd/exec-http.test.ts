/** Commands over HTTP: run and waited for, left running, listed, read while they write, kept after everything else is gone. */
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAnswer } from '../../../src/protocol/parse.js';
import {
  commandPage,
  commandResult,
  commandState,
  logChunk,
} from '../../../src/protocol/shapes/commands.js';
import { eventually } from '../../support/eventually.js';
import { connectExec } from './support/exec-client.js';
import { type Served, serveSandbox } from './support/sandboxd.js';

let served: Served;
beforeAll(async () => {
  served = await serveSandbox();
});
afterAll(() => served[Symbol.asyncDispose]());

function call(path: string, init: RequestInit & { scope?: string } = {}, at = served) {
  const headers = { authorization: `Bearer ${at.token({ scope: init.scope ?? 'process' })}` };
  return fetch(`${at.http}${path}`, { ...init, headers });
}

function post(body: object, at = served, scope = 'process') {
  return call('/v1/exec', { method: 'POST', body: JSON.stringify(body), scope }, at);
}

/** By the shape that the protocol promises. */
async function known<S extends Parameters<typeof parseAnswer>[0]>(schema: S, answer: Response) {
  const parsed = parseAnswer(schema, await answer.json());
  if (!parsed.ok) throw parsed.error;
  return parsed.value;
}

async function result(body: object) {
  return known(commandResult, await post(body));
}

const sh = (script: string) => ['sh', '-c', script];

describe('run and wait', () => {
  it('answers with both outputs, the exit and who says so', async () => {
    const answer = await result({ argv: sh('cat; echo err >&2; exit 4'), stdin: 'in' });
    expect(answer).toMatchObject({
      state: 'ended',
      sandbox_id: served.id,
      outcome: { origin: 'remote', exit_code: 4, timed_out: false, oom: false },
      stdout: 'in',
      stdout_bytes: 2,
      stdout_truncated: false,
      stderr: 'err\n',
    });
    expect(answer.outcome.stdout_sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it('bytes that are no text go in and out as base64', async () => {
    const stdin = Buffer.from([0xff, 0, 0xfe]).toString('base64');
    const answer = await result({ argv: ['cat'], stdin, stdin_encoding: 'base64' });
    expect(answer).toMatchObject({ stdout: stdin, stdout_encoding: 'base64', stdout_bytes: 3 });
    expect((await post({ argv: ['cat'], stdin: '!', stdin_encoding: 'base64' })).status).toBe(400);
  });

  it('output past its limit is counted, and the answer says that it is not all', async () => {
    const answer = await result({ argv: ['seq', '1', '100000'], stdout_max_bytes: 10 });
    expect(answer).toMatchObject({ stdout: '1\n2\n3\n4\n5\n', stdout_truncated: true });
    expect(answer.stdout_bytes).toBe(588_895);
    const whole = await result({ argv: ['seq', '1', '400000'] });
    expect(whole).toMatchObject({ stdout_truncated: true, stdout_bytes: 2_688_895 });
    const log = await (await call(`/v1/commands/${whole.id}/logs`)).text();
    const text = log
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).data)
      .join('');
    expect(text.length).toBe(2_688_895);
  });

  it('environment and folder are as asked; what can not be is 400, by its field', async () => {
    const { stdout } = await result({
      argv: sh('pwd; echo "$A|$AILSD_THREAD|$AILSD_COMMAND_ID"'),
      env: { A: 'a  b' },
      command_id: 'cmd-env',
    });
    expect(stdout).toBe(`${join(served.folder, 'workspace')}\na  b|thr_test|cmd-env\n`);
    for (const [field, body] of [
      ['cwd', { argv: ['true'], cwd: 'nowhere' }],
      ['env', { argv: ['true'], env: { 'A=B': 'x' } }],
      ['env', { argv: ['true'], env: { 'A\nB': 'x' } }],
      ['env', { argv: ['true'], env: { A: 'x\0y' } }],
      ['argv', { argv: [] }],
      ['argv', { argv: ['a\0b'] }],
      ['argv', { argv: ['true', 'x'.repeat(128 * 1024)] }],
      ['argv', {}],
    ] as const) {
      const answer = await post(body);
      expect(answer.status, field).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: 'INVALID_REQUEST', field } });
    }
  });

  it('a command with an id of its own runs once, however often it is asked for', async () => {
    const body = { argv: sh('echo x >>ran; wc -l <ran'), command_id: 'cmd-mine' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => result(body)));
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(Array(8).fill('1'));
  });

  it('needs process to run and to end, and that or fs:ro to look', async () => {
    expect((await post({ argv: ['true'] }, served, 'fs:rw shell')).status).toBe(403);
    const { id } = await result({ argv: ['true'] });
    expect((await call(`/v1/commands/${id}`, { scope: 'fs:rw' })).status).toBe(200);
    expect((await call(`/v1/commands/${id}`, { scope: 'shell' })).status).toBe(403);
    expect((await call('/v1/commands', { scope: 'tunnel' })).status).toBe(403);
    const end = { method: 'DELETE', scope: 'fs:rw' };
    expect((await call(`/v1/commands/${id}`, end)).status).toBe(403);
    expect((await call('/v1/commands/cmd-unknown')).status).toBe(404);
  });

  it('no more run at a time than the sandbox allows', async () => {
    await using small = await serveSandbox({ commands: 2 });
    const body = { argv: ['sleep', '60'], background: true };
    expect((await post(body, small)).status).toBe(202);
    expect((await post(body, small)).status).toBe(202);
    const third = await post(body, small);
    expect(third.status).toBe(429);
    expect(third.headers.get('retry-after')).not.toBeNull();
  });
});

describe('left running', () => {
  it('is listed, the latest first, page by page', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++)
      ids.unshift((await known(commandState, await post({ argv: ['true'], background: true }))).id);
    const first = await known(commandPage, await call('/v1/commands?limit=3'));
    expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    const next = await call(`/v1/commands?limit=2&cursor=${first.next_cursor}`);
    expect((await known(commandPage, next)).items.map(({ id }) => id)).toEqual(ids.slice(3));
    expect((await call('/v1/commands?cursor=nothing')).status).toBe(400);
  });

  it('its log comes as it is written, both outputs in their order, until it ends', async () => {
    const script =
      'echo one; sleep 0.15; echo two >&2; while [ ! -e on ]; do sleep 0.02; done; echo three';
    const { id } = await known(commandState, await post({ argv: sh(script), background: true }));
    const answer = await call(`/v1/commands/${id}/logs?follow=1`);
    const chunks: { stream: string; offset: number; data: string }[] = [];
    const reading = (async () => {
      for await (const part of answer.body ?? []) {
        for (const line of Buffer.from(part).toString().split('\n').filter(Boolean)) {
          const parsed = parseAnswer(logChunk, JSON.parse(line));
          if (!parsed.ok) throw parsed.error;
          const { stream, offset = 0, data } = parsed.value;
          chunks.push({ stream, offset, data });
        }
      }
    })();
    await eventually(() => chunks.length === 2);
    expect((await known(commandState, await call(`/v1/commands/${id}`))).state).toBe('running');
    await writeFile(join(served.folder, 'workspace', 'on'), '');
    await reading;
    expect(chunks).toEqual([
      { stream: 'stdout', offset: 0, data: 'one\n' },
      { stream: 'stderr', offset: 0, data: 'two\n' },
      { stream: 'stdout', offset: 4, data: 'three\n' },
    ]);
    const read = async (query: string) =>
      (await (await call(`/v1/commands/${id}/logs?${query}`)).text())
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).data);
    expect(await read('tail=2')).toEqual(['two\n', 'three\n']);
    expect(await read('tail=1')).toEqual(['three\n']);
    expect(await read('tail=0')).toEqual([]);
    expect(await read('tail=9')).toEqual(['one\n', 'two\n', 'three\n']);
    expect(await read('stdout_offset=6&stderr_offset=4')).toEqual(['ree\n']);
  });
});

describe('after the daemon has gone', () => {
  it('outcomes and logs are found by their ids, and nothing runs again', async () => {
    const first = await serveSandbox();
    const log = join(first.folder, 'commands', 'commands.jsonl');
    const done = { argv: sh('echo kept; echo x >>ran; exit 5'), command_id: 'cmd-done' };
    await post({ ...done, background: true }, first);
    await eventually(async () => (await stateOf(first, 'cmd-done')).state === 'ended');
    await post({ argv: ['sleep', '60'], background: true, command_id: 'cmd-runs' }, first);
    await first.daemon[Symbol.asyncDispose]();
    // As a daemon leaves it that was killed between two commands, in the midst of a line.
    const begun = { id: 'cmd-lost', argv: ['sh'], started_at: Date.now() };
    await appendFile(log, `${JSON.stringify(begun)}\n{"id":"cmd-to`);
    await using again = await serveSandbox({ again: first });
    expect((await stateOf(again, 'cmd-done')).outcome).toMatchObject({
      origin: 'remote',
      exit_code: 5,
    });
    expect((await stateOf(again, 'cmd-runs')).outcome).toMatchObject({ origin: 'lease' });
    const lost = await stateOf(again, 'cmd-lost');
    expect(lost).toMatchObject({ state: 'ended', outcome: { origin: 'ailsd', timed_out: false } });
    expect(lost.outcome).not.toHaveProperty('exit_code');
    const text = await (await call('/v1/commands/cmd-done/logs', {}, again)).text();
    expect(JSON.parse(text)).toMatchObject({ stream: 'stdout', data: 'kept\n' });
    const repeated = await post(done, again);
    expect(await repeated.json()).toMatchObject({ stdout: 'kept\n', outcome: { exit_code: 5 } });
    const url = `${again.ws}/v1/exec/ws`;
    using client = await connectExec(url, again.token({ scope: 'process' }));
    client.send({ type: 'start', argv: ['cat', 'ran'], command_id: 'cmd-lost' });
    expect(await client.frame('exit')).toMatchObject({ origin: 'ailsd' });
    client.restart();
    client.send({ type: 'start', argv: ['cat', 'ran'] });
    await client.frame('exit');
    expect(client.text()).toBe('x\n');
  });
});

async function stateOf(at: Served, id: string) {
  return known(commandState, await call(`/v1/commands/${id}`, {}, at));
}
