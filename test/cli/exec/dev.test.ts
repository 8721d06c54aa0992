import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ailsd, temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';

const home = temporaryFolder();
afterAll(() => home[Symbol.dispose]());

/** Processes that have the folder in their arguments or their surroundings. */
function left(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) return false;
    try {
      const seen = ['cmdline', 'environ'].map((file) =>
        readFileSync(`/proc/${pid}/${file}`, 'utf8'),
      );
      return seen.some((text) => text.includes(folder));
    } catch {
      return false;
    }
  });
}

describe('ailsd dev -- COMMAND', () => {
  const env = { HOME: home.path };

  it('without a terminal: its output, its input, its code, and nothing left', async () => {
    const script = 'echo hello; echo err >&2; cat; exit 7';
    const run = await ailsd(['dev', '-q', '--', 'sh', '-c', script], { env, input: 'in' });
    expect({ code: run.code, stdout: run.stdout }).toEqual({ code: 7, stdout: 'hello\nin' });
    expect(run.stderr).toContain('err\n');
    expect(await ailsd(['dev', '--', 'echo', 'hello'], { env })).toMatchObject({
      code: 0,
      stdout: 'hello\n',
    });
    await eventually(
      () => left(home.path).length === 0,
      () => `left: ${left(home.path).join(' ')}`,
    );
    expect(existsSync(join(home.path, '.cache', 'ailsd', 'dev', 'stack'))).toBe(false);
  }, 60_000);

  it('a second one at the same time is told where the first is, and ends with 6', async () => {
    const first = ailsd(['dev', '-q', '--', 'sh', '-c', 'sleep 3'], {
      env,
      input: '',
    });
    const running = join(home.path, '.cache', 'ailsd', 'dev', 'running.json');
    await eventually(() => existsSync(running));
    const second = await ailsd(['dev', '--', 'true'], { env });
    expect(second.code).toBe(6);
    expect(second.stderr).toContain('ALREADY_EXISTS');
    expect((await first).code).toBe(0);
  }, 60_000);
});
