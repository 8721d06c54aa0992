/** Variables of the client's choosing: for its own program, and for nobody on the way to it. */
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectExec } from './support/exec-client.js';
import { serveSandbox } from './support/sandboxd.js';

describe.each(['none', 'namespaces'] as const)('with isolation %s', (isolation) => {
  it('such variables reach the user’s process only', async () => {
    await using served = await serveSandbox({ isolation });
    const url = `${served.ws}/v1/exec/ws`;
    using client = await connectExec(url, served.token({ scope: 'process' }));
    const run = async (argv: readonly string[], env: Record<string, string>) => {
      client.restart();
      client.send({ type: 'start', argv, env });
      return client.frame('exit');
    };
    await run(['true'], {});
    const inside = isolation === 'none' ? join(served.folder, 'workspace') : '/workspace';
    const mark = join(served.folder, 'workspace', 'mark');
    await writeFile(join(served.folder, 'workspace', 'rc'), `echo here >>${inside}/mark\n`);
    // A library that is not there is complained about by each program that is given it.
    expect(await run(['/bin/true'], { LD_PRELOAD: '/no/such.so' })).toMatchObject({ exit_code: 0 });
    expect(client.text('stderr').match(/no\/such\.so/g)).toHaveLength(1);
    const shells = { BASH_ENV: `${inside}/rc`, ENV: `${inside}/rc`, NODE_OPTIONS: '--no-such' };
    expect(await run(['/bin/true'], { ...shells, PATH: '/nowhere' })).toMatchObject({
      exit_code: 0,
    });
    await expect(access(mark)).rejects.toThrow('ENOENT');
    await run(['/bin/bash', '-c', ':'], shells);
    await access(mark);
    expect(await run(['true'], { PATH: '/nowhere' })).toMatchObject({ exit_code: 127 });
    await run(['/usr/bin/env'], { 'odd.name-1': 'x y\nz', PATH: '/a' });
    expect(client.text()).toContain('odd.name-1=x y\nz\n');
    expect(client.text()).toContain('PATH=/a\n');
    expect(client.text()).not.toContain(process.env['HOME'] ?? '\0');
  });
});
