/** The issuer's signing keys as JWKs: how one is made, and which of them the world is shown. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import { Secret } from '../../base/secret.js';
import { TOKEN_HEADERS } from '../../protocol/claims.js';
import { AilsdError } from '../../protocol/errors.js';
import {
  ACCESS_TOKEN_SECONDS,
  ISSUED_AHEAD_SECONDS,
  LEEWAY_SECONDS,
} from '../../protocol/lifetimes.js';

/** What is stored: the private JWK as JSON, under the thumbprint of its public half (RFC 7638). */
export interface SigningKey {
  readonly kid: string;
  readonly material: Secret;
}

export interface StoredSigningKey extends SigningKey {
  /** Signs nothing more since; absent: in use. */
  readonly retiredAtMs: number | undefined;
}

/** What `/jwks` shows of a key. */
export interface PublicJwk {
  readonly kty: 'RSA';
  readonly n: string;
  readonly e: string;
  readonly kid: string;
  readonly alg: 'RS256';
  readonly use: 'sig';
}

const MODULUS_BITS = 2048;

/** How long after its retirement a key may still be needed: nothing it signed is valid any more. */
export const RETIRED_KEY_SECONDS =
  ACCESS_TOKEN_SECONDS + LEEWAY_SECONDS.access + ISSUED_AHEAD_SECONDS;

export async function createSigningKey(): Promise<SigningKey> {
  const { alg } = TOKEN_HEADERS.access;
  const pair = await generateKeyPair(alg, { modulusLength: MODULUS_BITS, extractable: true });
  const jwk = await exportJWK(pair.privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  return { kid, material: new Secret(JSON.stringify({ ...jwk, kid, alg, use: 'sig' })) };
}

/** The keys in use, and the retired ones while something they signed may live. */
export function publishedKeys(
  keys: readonly StoredSigningKey[],
  nowMs: number,
): { readonly keys: readonly PublicJwk[] } {
  const live = keys.filter(
    ({ retiredAtMs }) =>
      retiredAtMs === undefined || nowMs - retiredAtMs <= RETIRED_KEY_SECONDS * 1000,
  );
  return { keys: live.map(toPublicJwk) };
}

function toPublicJwk({ kid, material }: SigningKey): PublicJwk {
  const { kty, n, e } = parseJwk(material);
  if (kty !== 'RSA' || n === undefined || e === undefined)
    throw new AilsdError('INTERNAL', 'a signing key in the store is not an RSA key');
  // Named one by one: no private member can slip out.
  return { kty: 'RSA', n, e, kid, alg: 'RS256', use: 'sig' };
}

function parseJwk(material: Secret): JWK {
  try {
    const jwk: JWK = JSON.parse(material.reveal());
    return jwk;
  } catch {
    // The parser's own words would quote the key.
    throw new AilsdError('INTERNAL', 'a signing key in the store cannot be read');
  }
}
