import { generateKeyPairSync, webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as client from 'openid-client';
import { expect, it } from 'vitest';
import { ailsd, temporaryFolder } from '../support/cli.js';
import { startServer } from '../support/server.js';

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

it('a service added with its public keys gets a token by signing, and has no secret', async () => {
  await using server = await startServer();
  using folder = temporaryFolder();
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' };
  const file = join(folder.path, 'keys.json');
  const add = (keys: object) => {
    writeFileSync(file, JSON.stringify(keys));
    const args = ['server', 'client', 'add', 'Signer', '--jwks', file, '--scope', 'exec:sandbox'];
    return ailsd([...args, '--dir', server.dir, '--json']);
  };

  const added = await add({ keys: [jwk] });
  expect(added, added.stderr).toMatchObject({ code: 0 });
  const { client_id: id, client_secret: secret } = JSON.parse(added.stdout);
  expect(secret).toBeUndefined();

  const der = privateKey.export({ format: 'der', type: 'pkcs8' });
  const key = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
  const proof = client.PrivateKeyJwt({ key, kid: 'k1' });
  const options = { execute: [client.allowInsecureRequests] };
  const found = await client.discovery(new URL(server.url), id, undefined, proof, options);
  expect(await client.clientCredentialsGrant(found)).toMatchObject({ scope: 'exec:sandbox' });

  // A private key in the file, or no key at all, is refused and not kept.
  for (const keys of [{ keys: [privateKey.export({ format: 'jwk' })] }, { keys: [] }, {}]) {
    const { code, stdout } = await add(keys);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  }
});
