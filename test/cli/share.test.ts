import { describe, expect, it } from 'vitest';
import { envelope } from '../support/fake-broker.js';
import { atBroker, ESCAPED, HOSTILE } from './support/at-broker.js';

describe('share', () => {
  it('add lets somebody in, by default to watch; list and rm, in JSON and in text', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', 'thr_demo');
    const added = await at.json('share', 'add', 'ben', 'thr_demo');
    expect(added.document).toMatchObject({ id: expect.stringMatching(/^grant_/) });
    expect(at.broker.of('createGrant')[0]?.json).toEqual({
      grantee: { type: 'user', id: 'ben' },
      capabilities: ['fs:ro', 'shell:ro'],
    });
    const before = Date.now();
    const options = ['--agent', '--cap', 'process', '--for', '2h'];
    const { stdout } = await at.run('share', 'add', 'agent-7', 'thr_demo', ...options);
    expect(stdout).toMatch(/^agent agent-7 has process, until .* in thr_demo \(grant_/);
    const { json } = at.broker.of('createGrant')[1] ?? {};
    expect(json).toMatchObject({ grantee: { type: 'agent', id: 'agent-7' } });
    expect(Date.parse(json.expires_at) - before).toBeGreaterThanOrEqual(7_200_000);
    expect((await at.json('share', 'list', 'thr_demo')).document.items).toHaveLength(2);
    expect((await at.run('share', 'list', 'thr_demo')).stdout).toMatch(/GRANT +WHO[\s\S]*user ben/);
    const id = added.document.id;
    expect((await at.json('share', 'rm', id, 'thr_demo')).document).toEqual({ id, removed: true });
    expect(at.broker.of('deleteGrant')[0]?.path).toContain(`/grants/${id}`);
    at.broker.script = ({ route }) => (route === 'createGrant' ? envelope('FORBIDDEN') : undefined);
    expect((await at.json('share', 'add', 'ben', 'thr_demo')).code).toBe(5);
    expect((await at.json('share', 'list', 'thr_other')).code).toBe(3);
  });

  it('hostile names do nothing to a terminal', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', 'thr_demo');
    const item = { id: 'grant_1', grantee: { type: 'user', id: HOSTILE }, created_by: HOSTILE };
    at.broker.script = ({ route }) =>
      route === 'listGrants' ? { status: 200, json: { items: [item] } } : undefined;
    const { stdout } = await at.run('share', 'list', 'thr_demo');
    expect(stdout).toContain(ESCAPED);
    expect(stdout).not.toMatch(/[\u001b\u202e]/);
  });

  it('an invite is printed as the parts of its address, on stdout and nowhere else', async () => {
    await using at = await atBroker();
    await at.run('session', 'ensure', 'thr_demo');
    const json = await at.json('share', 'invite', 'thr_demo');
    expect(json.document).toMatchObject({
      endpoint: 'computer',
      url: expect.stringMatching(/^ws:.*\/computer$/),
      token: expect.stringMatching(/^inv/),
      room: 'thr_demo',
      elevated: false,
    });
    const { stdout, stderr } = await at.run('share', 'invite', 'thr_demo', '--debug');
    const token = /token +(\S+)/.exec(stdout)?.[1] ?? 'none';
    expect(token).toMatch(/^inv/);
    expect(stderr).not.toContain(token);
    expect(stdout).toMatch(/room +thr_demo/);
    const code = await at.json('share', 'invite', 'thr_demo', '--endpoint', 'execute');
    expect(code.document).not.toHaveProperty('room');
    expect(at.broker.of('createInvite').at(-1)?.json).toEqual({ endpoint: 'execute' });
    await at.run('share', 'invite', 'thr_demo', '--room', '*', '--elevated');
    expect(at.broker.of('createInvite').at(-1)?.json).toEqual({
      endpoint: 'computer',
      room: '*',
      elevated: true,
    });
  });
});
