import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ailsd, temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { startServer, type TestServer } from '../../support/server.js';

const folder = temporaryFolder();
const local = join(folder.path, 'local');
let server: TestServer;
let env: Record<string, string>;

beforeAll(async () => {
  server = await startServer({ config: { local: { dir: local } } });
  env = {
    AILSD_URL: server.url,
    AILSD_CLIENT_ID: server.admin.clientId,
    AILSD_CLIENT_SECRET: server.admin.clientSecret,
    AILSD_CACHE_DIR: join(folder.path, 'cache'),
  };
});
afterAll(async () => {
  const { pid } = JSON.parse(readFileSync(join(local, 'daemon.json'), 'utf8'));
  await server[Symbol.asyncDispose]();
  process.kill(pid, 'SIGTERM');
  await eventually(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
  folder[Symbol.dispose]();
});

describe('ailsd run', () => {
  it('gets a sandbox, runs, ends with its code, and leaves no sandbox', async () => {
    const run = await ailsd(['run', '--', 'sh', '-c', 'echo hi; cat; exit 3'], {
      env,
      input: 'in',
    });
    expect(run).toMatchObject({ code: 3, stdout: 'hi\nin' });
    const { stdout } = await ailsd(['sandbox', 'list', '--json'], { env });
    const alive = JSON.parse(stdout).items.filter(
      ({ state }: { state: string }) => state === 'active',
    );
    expect(alive).toEqual([]);
  });

  it('as JSON, a summary of all steps; also with a sandbox that is kept', async () => {
    const args = [
      'run',
      '--json',
      '--thread',
      'thr_kept',
      '--keep',
      '--',
      'sh',
      '-c',
      'echo x; exit 4',
    ];
    const { code, stdout } = await ailsd(args, { env });
    expect(code).toBe(4);
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({
      thread_id: 'thr_kept',
      exit_code: 4,
      released: false,
      command: { stdout: 'x\n', exit_code: 4 },
    });
    expect(summary.steps.map(({ name }: { name: string }) => name)).toEqual(['ensure', 'exec']);
    const again = await ailsd(['exec', 'thr_kept', '--', 'echo', 'again'], { env });
    expect(again).toMatchObject({ code: 0, stdout: 'again\n' });
  });

  it('left by one machine, waited for by another', async () => {
    const { stdout } = await ailsd(
      ['exec', 'thr_kept', '-d', '--', 'sh', '-c', 'sleep 0.3; exit 6'],
      {
        env: { ...env, HOME: join(folder.path, 'one') },
      },
    );
    const other = { ...env, AILSD_CACHE_DIR: join(folder.path, 'other') };
    const waited = await ailsd(['job', 'wait', 'thr_kept', stdout.trim()], { env: other });
    expect(waited.code).toBe(6);
  });

  it('a server that is not there is our failure', async () => {
    const away = { ...env, AILSD_URL: 'http://127.0.0.1:9' };
    expect((await ailsd(['run', '--', 'true'], { env: away })).code).toBe(125);
  });
});
