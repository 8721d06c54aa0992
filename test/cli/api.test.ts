import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ErrorCode, errorRow } from '../../src/protocol/errors.js';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { envelope } from '../support/fake-broker.js';
import { atBroker, HOSTILE } from './support/at-broker.js';

describe('api', () => {
  it('sends the method, path, query and body with the login, and prints the answer', async () => {
    await using at = await atBroker();
    using folder = temporaryFolder();
    const file = join(folder.path, 'body.json');
    writeFileSync(file, '{"from":"file"}');
    at.broker.script = ({ json }) => ({ status: 200, json: { got: json ?? null, odd: HOSTILE } });
    const got = async (args: string[], input = '') => {
      const { code, stdout } = await ailsd(['api', ...args], { env: at.env, input });
      expect(code).toBe(0);
      expect(stdout).not.toContain('\u001b');
      return JSON.parse(stdout);
    };
    expect(await got(['GET', '/x?a=1&b=%2F'])).toEqual({ got: null, odd: HOSTILE });
    expect(at.broker.requests[0]).toMatchObject({ method: 'GET', path: '/x' });
    expect(at.broker.requests[0]?.query.get('b')).toBe('/');
    expect(at.broker.requests[0]?.headers.authorization).toBe(`Bearer ${at.env['AILSD_TOKEN']}`);
    expect((await got(['post', '/x', '--data', '{"a":1}'])).got).toEqual({ a: 1 });
    expect((await got(['PUT', '/x', '-d', `@${file}`])).got).toEqual({ from: 'file' });
    expect((await got(['PATCH', '/x', '-d', '-'], '{"from":"stdin"}')).got).toEqual({
      from: 'stdin',
    });
    await got(['GET', '/x', '--header', 'X-Request-Id: req_mine']);
    expect(at.broker.requests.at(-1)?.headers['x-request-id']).toBe('req_mine');
  });

  it.each<ErrorCode>([
    'NOT_FOUND',
    'FORBIDDEN',
    'ALREADY_EXISTS',
    'BACKEND_UNAVAILABLE',
    'RATE_LIMITED',
  ])('%s ends with its own exit code, and the envelope is on stderr', async (code) => {
    await using at = await atBroker();
    at.broker.script = () => envelope(code, 'because', { field: 'x' });
    const result = await at.json('api', 'GET', '/x');
    expect(result.code).toBe(errorRow(code).exit);
    expect(result.error).toMatchObject({
      code,
      message: 'because',
      field: 'x',
      request_id: 'req_1',
    });
    expect(result.document).toBe(undefined);
  });

  it('an answer without a body, and one that is not JSON', async () => {
    await using at = await atBroker();
    at.broker.script = () => ({ status: 204 });
    expect((await at.json('api', 'DELETE', '/x')).document).toEqual({ status: 204 });
    expect((await at.run('api', 'DELETE', '/x')).stdout).toBe('');
    at.broker.script = () => ({ status: 200, lines: [{ a: 1 }, { a: 2 }] });
    expect((await at.json('api', 'GET', '/x')).document.items).toEqual([{ a: 1 }, { a: 2 }]);
    const headers = { 'content-type': 'text/plain' };
    at.broker.script = () => ({ status: 200, json: HOSTILE, headers });
    expect((await at.run('api', 'GET', '/x')).stdout).not.toContain('\u202e');
  });

  it('the token goes nowhere else: no other host, no folded path, no header of ours replaced', async () => {
    await using at = await atBroker();
    const refused = [
      ['GET', 'http://127.0.0.1:1/x'],
      ['GET', '//127.0.0.1:1/x'],
      ['GET', '/a/../x'],
      ['GET', '/a/%2E%2e/x'],
      ['GET', '/a b'],
      ['BREW', '/x'],
      ['POST', '/x', '--data', '{'],
      ['GET', '/x', '--header', 'Authorization: Bearer other'],
    ];
    for (const args of refused) {
      const { code, error } = await at.json('api', ...args);
      expect([args, code]).toEqual([args, 2]);
      expect(error.hint).not.toBe('');
    }
    expect(at.broker.requests).toEqual([]);
  });
});

describe('token --thread', () => {
  it('is a token for that sandbox alone, narrowed; never makes one', async () => {
    await using at = await atBroker();
    expect((await at.json('token', '--thread', 'thr_demo')).code).toBe(3);
    expect(at.broker.made).toBe(0);
    await at.run('session', 'ensure', 'thr_demo');
    const options = ['--thread', 'thr_demo', '--cap', 'fs:ro', '--cap', 'shell:ro', '--ttl', '5m'];
    const { stdout, stderr } = await at.run('token', ...options);
    expect(stdout).toBe(`${at.broker.tokens.at(-1)}\n`);
    expect(stderr).toBe('');
    expect(at.broker.requests.at(-1)?.json).toMatchObject({
      mode: 'get',
      requested_capabilities: ['fs:ro', 'shell:ro'],
      ttl: 300,
    });
    expect((await at.json('token', ...options)).document).toMatchObject({
      access_token: at.broker.tokens.at(-1),
      thread_id: 'thr_demo',
      capabilities: ['fs:ro', 'shell:ro'],
    });
    expect((await at.json('token', '--thread', 'thr_demo', '--cap', 'x')).error).toMatchObject({
      code: 'USAGE',
    });
    expect((await at.json('token', '--thread', 'thr_demo', '--ttl', 'x')).error).toMatchObject({
      code: 'USAGE',
    });
  });

  it('AILSD_THREAD alone does not turn `ailsd token` into another command', async () => {
    await using at = await atBroker();
    const env = { ...at.env, AILSD_THREAD: 'thr_demo' };
    const { stdout } = await ailsd(['token'], { env });
    expect(stdout).toBe(`${at.env['AILSD_TOKEN']}\n`);
    await at.run('session', 'ensure', 'thr_demo');
    const narrowed = await ailsd(['token', '--cap', 'fs:ro'], { env });
    expect(narrowed.stdout).toBe(`${at.broker.tokens.at(-1)}\n`);
  });
});
