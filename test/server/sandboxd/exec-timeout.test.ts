/** A command that takes too long, or is told to end: it goes, and with it everything it started. */
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import type { Frame } from './support/bare-client.js';
import { connectExec } from './support/exec-client.js';
import { type Served, serveSandbox } from './support/sandboxd.js';

/** Each prints the ids of its processes' marks by way of `sleep` times that nobody else uses. */
const TREES = {
  'a child in the background': 'sleep 300.11 & wait',
  'a double fork with a session of its own':
    '(setsid nohup sh -c "sleep 300.12" >/dev/null 2>&1 &) ; sleep 300.13',
  'a child that ignores SIGTERM': `trap '' TERM; sh -c 'trap "" TERM; sleep 300.14'; sleep 300.15`,
  'a grandchild that holds the output and would write a file':
    '(sh -c "sleep 3; echo late >late" &) ; sleep 300.16',
} as const;

describe.each(['none', 'namespaces'] as const)('with isolation %s', (kind) => {
  let served: Served;
  beforeAll(async () => {
    served = await serveSandbox({ isolation: kind });
  });
  afterAll(() => served[Symbol.asyncDispose]());

  it(proves('a timeout ends the whole tree, and the answer says so', 'EX-01'), async () => {
    const began = performance.now();
    await Promise.all(
      Object.entries(TREES).map(async ([name, script]) => {
        const url = `${served.ws}/v1/exec/ws`;
        using client = await connectExec(url, served.token({ scope: 'process' }));
        client.send({ type: 'start', argv: ['sh', '-c', script], timeout_ms: 1_000 });
        const exit = await client.frame('exit');
        expect(exit, name).toMatchObject({ timed_out: true, origin: 'ailsd', oom: false });
        expect(performance.now() - began, name).toBeLessThan(3_000);
        expect(performance.now() - began, name).toBeGreaterThan(990);
      }),
    );
    const late = began + 4_000 - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(late, 2_000)));
    expect(await sleepers()).toEqual([]);
    await expect(access(join(served.folder, 'workspace', 'late'))).rejects.toThrow('ENOENT');
  });

  it('a command that is ended over HTTP has ended when the answer comes', async () => {
    const headers = { authorization: `Bearer ${served.token({ scope: 'process' })}` };
    const argv = ['sh', '-c', 'trap "" TERM; sleep 300.17 & sleep 300.18'];
    const body = JSON.stringify({ argv, background: true });
    const begun = await fetch(`${served.http}/v1/exec`, { method: 'POST', headers, body });
    expect(begun.status).toBe(202);
    const { id }: Frame = await begun.json();
    expect(served.daemon.view(served.id)?.running_commands).toBe(1);
    const at = `${served.http}/v1/commands/${id}`;
    expect((await fetch(at, { method: 'DELETE', headers })).status).toBe(204);
    const { state, outcome }: Frame = await (await fetch(at, { headers })).json();
    expect(state).toBe('ended');
    expect(outcome).toMatchObject({ origin: 'ailsd', timed_out: false });
    expect((await fetch(at, { method: 'DELETE', headers })).status).toBe(204);
    await eventually(async () => (await sleepers()).length === 0);
    expect(served.daemon.view(served.id)?.running_commands).toBe(0);
  });
});

/** What is left of the commands above, anywhere on the host. */
async function sleepers(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
    if (/sleep 300\.1\d |sleep 3; echo late/.test(line.replaceAll('\0', ' '))) found.push(line);
  }
  return found;
}
