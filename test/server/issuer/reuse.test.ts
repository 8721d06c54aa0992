import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { Audit } from '../../../src/server/store/audit.js';
import { proves } from '../../requirements.js';
import { ailsd, BIN, cleanEnvironment, runProgram } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { type LoginHome, loginHome } from '../../support/stored-login.js';
import { introspect, login, refresh, signedIn } from './support/oauth.js';
import type { Person } from './support/person.js';
import { createWorld, type World } from './support/world.js';

/** `ailsd login` in one process, ada with her browser in another. */
async function loginByCli(home: LoginHome, ada: Person): Promise<void> {
  const child = spawn(process.execPath, [BIN, 'login', '--json'], {
    env: cleanEnvironment(home.env),
  });
  let talk = '';
  child.stderr.on('data', (chunk: Buffer) => {
    talk += chunk.toString();
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  try {
    await eventually(() => talk.includes('\n'));
    await ada.decide(JSON.parse(talk).user_code, 'approve');
    expect(await ended, talk).toBe(0);
  } finally {
    child.kill('SIGKILL');
  }
}

function stored(home: LoginHome, name: string): string {
  return String(home.read()?.credentials[0]?.[name]);
}

function tokenRequests({ requests }: World): number {
  return requests.filter((request) => request === 'POST /token').length;
}

it(
  proves('a copied refresh token ends its family, at the issuer and at the command line', 'OA-08'),
  async () => {
    await using world = await createWorld();
    using home = loginHome(world.url);
    const ada = await signedIn(world.url);
    await loginByCli(home, ada);
    const other = await login(world, { person: ada });
    const copied = stored(home, 'refresh_token');
    const firstAccess = stored(home, 'access_token');
    home.expire();
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const second = stored(home, 'refresh_token');
    const secondAccess = stored(home, 'access_token');
    expect(second).not.toBe(copied);
    for (const token of [firstAccess, secondAccess])
      expect((await introspect(world.url, token)).body.active).toBe(true);

    const form = [
      '-d',
      'grant_type=refresh_token',
      '-d',
      'client_id=ailsd-cli',
      '-d',
      `refresh_token=${copied}`,
    ];
    const curl = await runProgram('curl', [
      '-sS',
      '-w',
      ' %{http_code}',
      `${world.url}/token`,
      ...form,
    ]);
    expect(curl.stdout).toMatch(/"error":"invalid_grant".* 400$/);
    expect(await refresh(world.url, second)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    for (const token of [firstAccess, secondAccess])
      expect((await introspect(world.url, token)).body).toEqual({ active: false });

    home.expire();
    const before = tokenRequests(world);
    const { code, stderr } = await ailsd(['token'], { env: home.env });
    expect(code).toBe(4);
    expect(stderr).toContain('LOGIN_REVOKED');
    expect(home.read()?.credentials ?? []).toEqual([]);
    expect(tokenRequests(world)).toBeLessThanOrEqual(before + 1);

    const { entries } = await new Audit(world.db).list({ event: 'refresh_reuse' }, { limit: 10 });
    expect(entries).toMatchObject([{ subject: 'usr_ada', clientId: 'ailsd-cli' }]);
    expect((await introspect(world.url, other.access_token)).body.active).toBe(true);
    expect((await refresh(world.url, other.refresh_token)).status).toBe(200);
  },
);
