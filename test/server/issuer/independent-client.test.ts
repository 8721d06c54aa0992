import { generateKeyPairSync, type KeyObject, webcrypto } from 'node:crypto';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../src/protocol/shapes/issuer.js';
import { hashClientSecret } from '../../../src/server/tokens/client-secret.js';
import { claimsOf, post, signedIn } from './support/oauth.js';
import type { Person } from './support/person.js';
import { AGENT, AUDIENCE, createWorld, type World } from './support/world.js';

/** A client that knows OAuth and nothing of ours: it finds everything by discovery. */
let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld();
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

function discover(
  clientId: string,
  proof?: string | client.ClientAuth,
): Promise<client.Configuration> {
  const secret = typeof proof === 'string' ? proof : undefined;
  const auth =
    typeof proof === 'function' ? proof : secret === undefined ? client.None() : undefined;
  return client.discovery(new URL(world.url), clientId, secret, auth, {
    execute: [client.allowInsecureRequests],
  });
}

async function keyPair(): Promise<{
  readonly privateKey: webcrypto.CryptoKey;
  readonly jwk: object;
}> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const key = await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign']);
  return {
    privateKey: key,
    jwk: { ...publicKeyOf(publicKey), kid: 'k1', use: 'sig', alg: 'RS256' },
  };
}

function publicKeyOf(key: KeyObject): object {
  return key.export({ format: 'jwk' });
}

describe('an OAuth client that is not ours', () => {
  it('logs in by the device flow, refreshes, asks who it is, and revokes', async () => {
    const config = await discover(CLI_CLIENT_ID);
    const begun = await client.initiateDeviceAuthorization(config, {
      scope: 'openid profile read:sandbox exec:sandbox',
    });
    expect(begun).toMatchObject({ interval: 5, expires_in: 600 });
    await ada.decide(begun.user_code, 'approve');
    // The first poll may come at any time; this client would wait an interval before it.
    const tokens = await client.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0.01 });
    expect(tokens).toMatchObject({ token_type: 'bearer', scope: 'read:sandbox exec:sandbox' });
    expect(tokens.claims()).toMatchObject({
      iss: world.url,
      aud: CLI_CLIENT_ID,
      sub: 'usr_ada',
      name: 'ada',
    });

    const fresh = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
    expect(claimsOf(fresh.access_token)).toMatchObject({ sub: 'usr_ada', aud: AUDIENCE });
    const who = await client.fetchUserInfo(config, fresh.access_token, 'usr_ada');
    expect(who).toMatchObject({ sub: 'usr_ada', name: 'ada' });
    expect((await client.tokenIntrospection(config, fresh.access_token)).active).toBe(true);
    await client.tokenRevocation(config, fresh.refresh_token ?? '');
    expect((await client.tokenIntrospection(config, fresh.access_token)).active).toBe(false);
    await expect(client.refreshTokenGrant(config, fresh.refresh_token ?? '')).rejects.toMatchObject(
      { error: 'invalid_grant' },
    );
  });

  it('is told denied and pending in the words it knows', async () => {
    const config = await discover(CLI_CLIENT_ID);
    const begun = await client.initiateDeviceAuthorization(config, { scope: 'read:sandbox' });
    await ada.decide(begun.user_code, 'deny');
    const polled = client.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0.01 });
    await expect(polled).rejects.toMatchObject({ error: 'access_denied' });
  });

  it('gets a service token by its secret, in a header or in the form', async () => {
    for (const auth of [
      client.ClientSecretPost(AGENT.secret),
      client.ClientSecretBasic(AGENT.secret),
    ]) {
      const config = await discover(AGENT.clientId, auth);
      const tokens = await client.clientCredentialsGrant(config, {
        scope: 'read:sandbox exec:sandbox',
      });
      expect(claimsOf(tokens.access_token)).toMatchObject({
        sub: AGENT.clientId,
        client_id: AGENT.clientId,
        principal: 'service',
        tenant: 'default',
        scope: 'read:sandbox exec:sandbox',
        aud: AUDIENCE,
      });
      expect(tokens.refresh_token).toBeUndefined();
    }
    const wrong = await discover(AGENT.clientId, client.ClientSecretPost('wrong'));
    await expect(client.clientCredentialsGrant(wrong)).rejects.toMatchObject({
      error: 'invalid_client',
    });
  });

  it('gets one by a signed assertion, once for each, also beside a secret', async () => {
    const { privateKey, jwk } = await keyPair();
    const grants = [GRANT_TYPES.clientCredentials];
    await world.addClient({ clientId: 'signing', jwks: { keys: [jwk] }, grants });
    await world.addClient({
      clientId: 'both',
      jwks: { keys: [jwk] },
      secretHash: hashClientSecret(new Secret('both-secret')),
      grants,
    });
    for (const clientId of ['signing', 'both']) {
      const config = await discover(clientId, client.PrivateKeyJwt({ key: privateKey, kid: 'k1' }));
      const tokens = await client.clientCredentialsGrant(config, { scope: 'read:sandbox' });
      expect(claimsOf(tokens.access_token)).toMatchObject({
        sub: clientId,
        principal: 'service',
        scope: 'read:sandbox',
      });
    }
    const secret = await discover('both', client.ClientSecretPost('both-secret'));
    expect((await client.clientCredentialsGrant(secret)).access_token).toBeDefined();

    const stranger = await keyPair();
    const forged = await discover(
      'signing',
      client.PrivateKeyJwt({ key: stranger.privateKey, kid: 'k1' }),
    );
    await expect(client.clientCredentialsGrant(forged)).rejects.toMatchObject({
      error: 'invalid_client',
    });
  });

  it('a service gets the scopes it asks for and its row allows, and all of them if it does not say', async () => {
    const config = await discover(AGENT.clientId, client.ClientSecretPost(AGENT.secret));
    const more = await client.clientCredentialsGrant(config, {
      scope: 'read:sandbox admin:sandbox fly:moon',
    });
    expect(claimsOf(more.access_token).scope).toBe('read:sandbox');
    const none = await client.clientCredentialsGrant(config);
    expect(claimsOf(none.access_token).scope).toBe(
      'read:sandbox write:sandbox exec:sandbox attach:sandbox',
    );
  });

  it('exchanges a token for an agent', async () => {
    const config = await discover(CLI_CLIENT_ID);
    const begun = await client.initiateDeviceAuthorization(config, {
      scope: 'read:sandbox exec:sandbox',
    });
    await ada.decide(begun.user_code, 'approve');
    const subject = await client.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0.01 });
    const agent = await discover(AGENT.clientId, client.ClientSecretPost(AGENT.secret));
    const exchanged = await client.genericGrantRequest(agent, GRANT_TYPES.tokenExchange, {
      subject_token: subject.access_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      scope: 'read:sandbox',
    });
    expect(claimsOf(exchanged.access_token)).toMatchObject({
      sub: 'usr_ada',
      principal: 'agent',
      act: { sub: AGENT.clientId },
    });
  });

  it('a grant its row does not name is refused', async () => {
    const refused = await post(`${world.url}/token`, {
      client_id: AGENT.clientId,
      client_secret: AGENT.secret,
      grant_type: 'refresh_token',
      refresh_token: 'x',
    });
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(
      await post(`${world.url}/token`, {
        client_id: CLI_CLIENT_ID,
        grant_type: 'client_credentials',
      }),
    ).toMatchObject({ status: 400 });
    expect(
      (
        await post(`${world.url}/device/code`, {
          client_id: AGENT.clientId,
          client_secret: AGENT.secret,
        })
      ).status,
    ).toBe(400);
  });
});
