/** Signing keys: what is stored, what the world sees, and for how long. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { Secret } from '../../../src/base/secret.js';
import { createAccessTokenVerifier } from '../../../src/server/tokens/access-token.js';
import {
  createSigningKey,
  publishedKeys,
  RETIRED_KEY_SECONDS,
} from '../../../src/server/tokens/signing-keys.js';
import { AUDIENCE, goodClaims, ISSUER, signRs256 } from './forge.js';

const BEGIN = Date.UTC(2026, 0, 15, 12);

describe('signing keys', () => {
  it('a new one is RSA of 2048 bits, named by its thumbprint, and prints as a secret', async () => {
    const key = await createSigningKey();
    const jwk = JSON.parse(key.material.reveal());
    expect(jwk).toMatchObject({ kty: 'RSA', kid: key.kid, alg: 'RS256', use: 'sig' });
    expect(createPrivateKey({ key: jwk, format: 'jwk' }).asymmetricKeyDetails?.modulusLength).toBe(
      2048,
    );
    expect(key.kid).toMatch(/^[\w-]{43}$/);
    expect(JSON.stringify(key)).not.toContain(jwk.d);
    expect((await createSigningKey()).kid).not.toBe(key.kid);
  });

  it('the published set has no private member, and a retired key stays while its tokens live', async () => {
    const [old, current] = [await createSigningKey(), await createSigningKey()];
    const keys = [
      { ...current, retiredAtMs: undefined },
      { ...old, retiredAtMs: BEGIN },
    ];
    const kidsAt = (seconds: number): string[] =>
      publishedKeys(keys, BEGIN + seconds * 1000).keys.map(({ kid }) => kid);
    expect(RETIRED_KEY_SECONDS).toBeGreaterThanOrEqual(900 + 30);
    expect(kidsAt(0)).toEqual([current.kid, old.kid]);
    expect(kidsAt(RETIRED_KEY_SECONDS)).toEqual([current.kid, old.kid]);
    expect(kidsAt(RETIRED_KEY_SECONDS + 1)).toEqual([current.kid]);
    for (const key of publishedKeys(keys, BEGIN).keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
      expect(createPublicKey({ key: { ...key }, format: 'jwk' }).type).toBe('public');
    }
  });

  it('a token signed with a stored key passes a verifier that reads the published set', async () => {
    const key = await createSigningKey();
    const clock = new ManualClock(BEGIN);
    const verify = createAccessTokenVerifier({
      issuer: ISSUER,
      audience: AUDIENCE,
      clock,
      jwks: { fetch: async () => publishedKeys([{ ...key, retiredAtMs: undefined }], BEGIN) },
    });
    const privateKey = createPrivateKey({ key: JSON.parse(key.material.reveal()), format: 'jwk' });
    const header = { alg: 'RS256', typ: 'at+jwt', kid: key.kid };
    const token = new Secret(signRs256(header, goodClaims(BEGIN), privateKey));
    expect(await verify(token)).toMatchObject({ sub: 'usr_0123456789abcdef', kind: 'user' });
  });

  it('a key in the store that cannot be read is told of without a word of it', () => {
    const broken = {
      kid: 'k',
      material: new Secret('{"kty":"RSA","d":"S3CRET'),
      retiredAtMs: undefined,
    };
    expect(() => publishedKeys([broken], BEGIN)).toThrow(/^(?!.*S3CRET)/);
  });
});
