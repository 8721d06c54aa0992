import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { describe, expect, it } from 'vitest';
import { ailsd } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { loginHome } from '../../support/stored-login.js';

/** A plain oidc-provider as its makers ship it: nothing of ours in it, opaque access tokens, no `interval`. */
async function startForeignIssuer() {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const url = `http://127.0.0.1:${address.port}`;
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'ailsd-cli',
        token_endpoint_auth_method: 'none',
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    cookies: { keys: ['for this test'] },
  });
  server.on('request', provider.callback());
  const codes: string[] = [];
  provider.on('device_authorization.success', (_, body) => codes.push(String(body['user_code'])));
  return {
    url,
    codes,
    /** What its pages do once bob has said yes. */
    async approve(userCode: string): Promise<void> {
      const code = await provider.DeviceCode.findByUserCode(userCode.replace(/\W/g, ''), {
        ignoreExpiration: true,
      });
      if (code === undefined) throw new Error('no such code');
      const grant = new provider.Grant({ accountId: 'bob', clientId: 'ailsd-cli' });
      grant.addOIDCScope('openid offline_access');
      const grantId = await grant.save();
      Object.assign(code, {
        accountId: 'bob',
        grantId,
        scope: 'openid offline_access',
        authTime: Math.floor(Date.now() / 1000),
        expiresWithSession: false,
      });
      await code.save();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('against an issuer that is not ours', () => {
  it('a device login completes, is renewed with a rotated token, and is revoked', async () => {
    await using issuer = await startForeignIssuer();
    using home = loginHome(issuer.url);
    const running = ailsd(['login', '--scope', 'openid offline_access', '--json'], {
      env: home.env,
    });
    await eventually(() => issuer.codes.length > 0);
    await issuer.approve(issuer.codes[0] ?? '');
    const { code, stdout, stderr } = await running;
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ account: 'bob', renewable: true });

    const first = home.read()?.credentials[0];
    home.expire();
    expect(await ailsd(['token'], { env: home.env })).toMatchObject({ code: 0 });
    const second = home.read()?.credentials[0];
    expect(second?.['account']).toBe('bob');
    expect(second?.['access_token']).not.toBe(first?.['access_token']);
    expect(second?.['refresh_token']).not.toBe(first?.['refresh_token']);

    const out = await ailsd(['logout', '--json'], { env: home.env });
    expect(JSON.parse(out.stdout).removed).toMatchObject([{ revoked: true }]);
  });
});
