import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { startFakeIssuer } from '../support/fake-issuer.js';
import { ailsdInPty } from '../support/pty.js';
import { loggedIn } from '../support/stored-login.js';

interface Check {
  readonly name: string;
  readonly state: string;
  readonly detail: string;
  readonly hint: string | null;
}

async function checks(
  env: Record<string, string> = {},
  args: string[] = [],
): Promise<Record<string, Check>> {
  const { stdout } = await ailsd(['doctor', '--json', ...args], { env });
  return Object.fromEntries(JSON.parse(stdout).checks.map((check: Check) => [check.name, check]));
}

describe('doctor', () => {
  it(
    proves('looks at Node, settings, clock, terminal, PTY, keychain and watches', 'CM-15'),
    async () => {
      const found = await checks();
      expect(Object.keys(found)).toEqual([
        'node',
        'settings',
        'server',
        'clock',
        'login',
        'terminal',
        'pty',
        'keychain',
        'watching',
      ]);
      expect(found['node']).toMatchObject({
        state: 'ok',
        detail: expect.stringContaining(process.versions.node),
      });
      expect(found['pty']).toMatchObject({ state: 'ok' });
      expect(found['clock']).toMatchObject({ state: 'ok' });
      expect(found['terminal']).toMatchObject({ state: 'skipped' });
      expect(found['watching']?.detail).toContain('changes of files are reported');
      expect(found['settings']).toMatchObject({
        state: 'warning',
        hint: 'run `ailsd config set url URL`',
      });
      expect(found['server']).toMatchObject({ state: 'skipped' });
      expect(found['login']).toMatchObject({ state: 'skipped' });
    },
  );

  /** Answers `/readyz` with this, and the rest as an issuer does. */
  async function serverSaying(status: number, headers: Record<string, string> = {}) {
    const issuer = await startFakeIssuer();
    issuer.script = ({ path }) =>
      path === '/readyz' ? { json: { status: 'x' }, status, headers } : undefined;
    return issuer;
  }

  it('asks the server: ready, clocks that agree, a login that works', async () => {
    await using issuer = await serverSaying(200);
    using home = await loggedIn(issuer);
    issuer.script = ({ path }) => (path === '/readyz' ? { json: {} } : undefined);
    const found = await checks(home.env);
    expect(found['server']).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining(`${issuer.url} is ready`),
    });
    expect(found['clock']).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining('as the server'),
    });
    expect(found['login']).toMatchObject({
      state: 'ok',
      detail: `ada, from ${home.folder}/credentials.json`,
    });
    expect(issuer.requests.filter(({ path }) => path === '/readyz')).toHaveLength(1);
  });

  it.each([
    [-3_600_000, /3\d{3} s ahead of the server/],
    [3_600_000, /3\d{3} s behind the server/],
  ])('a server whose clock is %d ms off is a finding, with what to do', async (offMs, says) => {
    const date = new Date(Date.now() + offMs).toUTCString();
    await using issuer = await serverSaying(200, { date });
    const env = { AILSD_URL: issuer.url, AILSD_CREDENTIAL_STORE: 'file' };
    const { clock, login } = await checks(env);
    expect(clock).toMatchObject({ state: 'failed', detail: expect.stringMatching(says) });
    expect(clock?.hint).toContain('set the clock');
    expect(login).toMatchObject({ state: 'warning', hint: 'run `ailsd login`' });
  });

  it('a server that is not ready, is none of ours, or is not there: told apart', async () => {
    await using busy = await serverSaying(503);
    await using other = await serverSaying(404);
    const at = async (url: string) =>
      (await checks({ AILSD_URL: url, AILSD_CREDENTIAL_STORE: 'file' }))['server'];
    expect(await at(busy.url)).toMatchObject({
      state: 'failed',
      hint: expect.stringContaining('store'),
    });
    expect(await at(other.url)).toMatchObject({ state: 'warning' });
    expect(await at('http://127.0.0.1:1')).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('127.0.0.1:1'),
      hint: expect.stringMatching(/\w/),
    });
    // Speaks, but not TLS.
    expect(await at(busy.url.replace('http:', 'https:'))).toMatchObject({ state: 'failed' });
  });

  it('a server that never answers is not waited for, and a login that was ended is a finding', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const began = performance.now();
      const { server } = await checks({ AILSD_URL: `http://127.0.0.1:${port}` });
      expect(server?.detail).toBe(`http://127.0.0.1:${port} did not answer within 2500 ms`);
      expect(server).toMatchObject({ state: 'failed', hint: expect.stringMatching(/\w/) });
      expect(performance.now() - began).toBeLessThan(5_000);
    } finally {
      silent.close();
    }
    await using issuer = await serverSaying(200);
    using home = await loggedIn(issuer);
    issuer.script = ({ path }) =>
      path === '/v1/whoami' || path === '/token'
        ? { json: { error: 'invalid_grant' }, status: path === '/token' ? 400 : 401 }
        : undefined;
    const { login } = await checks(home.env);
    expect(login).toMatchObject({ state: 'failed', hint: expect.stringContaining('ailsd login') });
  });

  it('is a page a person can read, with what to do below what is wrong', async () => {
    using program = ailsdInPty(['doctor'], { env: { NO_COLOR: '1' } });
    expect(await program.ended()).toBe(0);
    expect(program.screen()).toMatch(/^ok +node +node \d/);
    expect(program.screen()).toMatch(
      /warning +settings +profile default, no server\n +→ run `ailsd config set url URL`/,
    );
    expect(program.screen()).toMatch(/ok +terminal +xterm-256color, 80x24, no colour/);
  });

  it(
    proves(
      'a keychain that is absent, silent or refused is told apart and never waited for',
      'CM-15',
    ),
    async () => {
      expect((await checks())['keychain']).toMatchObject({
        state: 'warning',
        detail: 'no keychain: no D-Bus session',
      });
      expect((await checks({ AILSD_CREDENTIAL_STORE: 'file' }))['keychain']).toMatchObject({
        state: 'skipped',
      });

      using folder = temporaryFolder();
      const path = join(folder.path, 'bus');
      const nowhere = { DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` };
      expect((await checks(nowhere))['keychain']).toMatchObject({ state: 'warning' });
      const server = createServer(() => {}).listen(path);
      try {
        const began = performance.now();
        expect((await checks(nowhere))['keychain']).toMatchObject({
          detail: 'no keychain: it never answered',
        });
        expect(performance.now() - began).toBeLessThan(4_500);
      } finally {
        server.close();
      }
    },
  );

  it(
    proves('something that has to work and does not fails the whole with exit 1', 'CM-15'),
    async () => {
      const { code, stdout, stderr } = await ailsd(['doctor', '--json'], {
        env: { AILSD_CREDENTIAL_STORE: 'keyring' },
      });
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ ok: false });
      expect(JSON.parse(stderr)).toMatchObject({
        error: { code: 'UNHEALTHY', exit_code: 1, failed: ['keychain'] },
      });
    },
  );

  it('a broken settings file is a finding, not the end of the others', async () => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, 'config.json'), '{');
    const found = await checks({ AILSD_CONFIG_DIR: folder.path });
    expect(found['settings']).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('not valid JSON'),
    });
    expect(found['settings']?.hint).toContain('mend or move the file away');
    expect([found['server']?.state, found['login']?.state]).toEqual(['skipped', 'skipped']);
    expect(found['keychain']).toMatchObject({ state: 'warning' });
    expect(found['node']).toMatchObject({ state: 'ok' });
  });

  it('a temporary folder that cannot be written is a finding', async (context) => {
    if (process.getuid?.() !== 0) context.skip('skipped: no root to become somebody else');
    using folder = temporaryFolder();
    chmodSync(folder.path, 0o555);
    const { stdout } = await ailsd(['doctor', '--json'], {
      env: { TMPDIR: folder.path },
      uid: 4321,
    });
    const found = JSON.parse(stdout).checks.find((check: Check) => check.name === 'watching');
    expect(found).toMatchObject({
      state: 'warning',
      detail: 'no temporary folder (EACCES)',
      hint: 'set TMPDIR to a folder you can write to',
    });
  });
});
