import { describe, expect, it } from 'vitest';
import { ailsd } from '../support/cli.js';
import { type Answer, startFakeIssuer } from '../support/fake-issuer.js';
import { loggedIn, quickly } from '../support/stored-login.js';

describe('logout', () => {
  it('ends the login at the server and removes it here', async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const token = home.read()?.credentials[0]?.['refresh_token'];
    const { code, stdout } = await ailsd(['logout', '--json'], { env: home.env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).removed).toEqual([
      { server: issuer.url, account: 'ada', client_id: 'ailsd-cli', revoked: true },
    ]);
    expect(home.read()).toBe(undefined);
    const revoked = issuer.requests
      .filter(({ path }) => path === '/revoke')
      .map(({ form }) => form);
    expect(revoked).toEqual([{ client_id: 'ailsd-cli', token, token_type_hint: 'refresh_token' }]);
    expect(issuer.currentRefreshToken()).toBe(undefined);
  });

  const away: [string, Answer][] = [
    ['cut', 'cut'],
    ['broken', { body: 'no', status: 500, type: 'text/plain' }],
    ['unwilling', { json: { error: 'unsupported_token_type' }, status: 400 }],
  ];
  it.each(away)(
    'a server that is %s is told of, and the login is removed all the same',
    async (_, answer) => {
      await using issuer = await startFakeIssuer();
      using home = await loggedIn(issuer);
      issuer.script = ({ path }) => (path === '/revoke' ? answer : undefined);
      const { code, stdout, stderr } = await ailsd(['logout'], { env: home.env });
      expect([code, stdout]).toEqual([0, `Logged out of ${issuer.url} (ada)\n`]);
      expect(stderr).toContain('was not told');
      expect(home.read()).toBe(undefined);
    },
  );

  it('nobody logged in: nothing to do, exit 0, nothing asked', async () => {
    await using issuer = await startFakeIssuer();
    const { code, stdout } = await ailsd(['logout', '--json'], { env: { AILSD_URL: issuer.url } });
    expect([code, JSON.parse(stdout)]).toEqual([0, { removed: [] }]);
    expect(issuer.requests).toHaveLength(0);
  });

  it('--all ends every login at every server; without it the others stay', async () => {
    await using issuer = await startFakeIssuer();
    await using other = await startFakeIssuer({ account: 'bob' });
    using home = await loggedIn(issuer);
    other.script = quickly(other);
    const elsewhere = { ...home.env, AILSD_URL: other.url };
    expect(await ailsd(['login'], { env: elsewhere })).toMatchObject({ code: 0 });
    expect(await ailsd(['logout'], { env: home.env })).toMatchObject({ code: 0 });
    expect(home.read()?.credentials.map((one) => one['account'])).toEqual(['bob']);
    issuer.script = quickly(issuer);
    expect(await ailsd(['login'], { env: home.env })).toMatchObject({ code: 0 });
    const { stdout } = await ailsd(['logout', '--all', '--json'], { env: home.env });
    expect(JSON.parse(stdout).removed).toHaveLength(2);
    expect(home.read()).toBe(undefined);
  });

  it('a variable that is still set is mentioned', async () => {
    await using issuer = await startFakeIssuer();
    const { code, stderr } = await ailsd(['logout'], {
      env: { AILSD_URL: issuer.url, AILSD_TOKEN: 'a.b.c' },
    });
    expect(code).toBe(0);
    expect(stderr).toContain('AILSD_TOKEN is still set');
  });
});
