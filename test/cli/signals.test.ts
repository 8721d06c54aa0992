import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { ailsdInPty } from '../support/pty.js';

/** A D-Bus that accepts and never answers: `doctor` waits for it in a child, within a bound. */
async function silentBus(folder: string) {
  const path = join(folder, 'bus');
  let connections = 0;
  const server = createServer(() => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    env: { DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}`, TMPDIR: join(folder, 'tmp') },
    reached: () => connections > 0,
    [Symbol.dispose]: () => server.close(),
  };
}

function childrenOf(pid: number): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return (
        readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(pid)
      );
    } catch {
      return false;
    }
  });
}

describe('signals', () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    it(
      proves(
        `${signal} ends a running command with ${code}, its children and temporary files gone`,
        'CM-07',
      ),
      async () => {
        using folder = temporaryFolder();
        mkdirSync(join(folder.path, 'tmp'));
        using bus = await silentBus(folder.path);
        let children: string[] = [];
        const result = await ailsd(['doctor'], {
          env: bus.env,
          started: (pid) => {
            void eventually(bus.reached).then(() => {
              children = childrenOf(pid);
              process.kill(pid, signal);
            });
          },
        });
        expect(result).toMatchObject({ code, signal: null, stdout: '', stderr: '' });
        expect(children.length).toBeGreaterThan(0);
        await eventually(() => children.every((pid) => !readdirSync('/proc').includes(pid)));
        expect(readdirSync(join(folder.path, 'tmp'))).toEqual([]);
      },
    );
  }

  it(proves('Ctrl-C typed in a terminal ends with 130', 'CM-07'), async () => {
    using folder = temporaryFolder();
    mkdirSync(join(folder.path, 'tmp'));
    using bus = await silentBus(folder.path);
    using program = ailsdInPty(['doctor'], { env: bus.env });
    await eventually(bus.reached);
    program.type('\u0003');
    expect(await program.ended()).toBe(130);
  });
});
