/** Checks signatures of JWTs (RFC 7515, 7519) with keys that are given; what a token says about its own key is not followed. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { type Fields, fieldsIn } from './fields.js';

export interface UncheckedJwt {
  readonly header: Fields;
  readonly payload: Fields;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Longer is no token of anybody's. */
const MAX_CHARACTERS = 16_384;

/** `undefined` when it does not even look like one. */
export function decodeJwt(token: string): UncheckedJwt | undefined {
  if (token.length > MAX_CHARACTERS || !COMPACT.test(token)) return undefined;
  const [head = '', body = '', signature = ''] = token.split('.');
  const header = toFields(head);
  const payload = toFields(body);
  if (header === undefined || payload === undefined) return undefined;
  return {
    header,
    payload,
    signed: Buffer.from(`${head}.${body}`),
    signature: Buffer.from(signature, 'base64url'),
  };
}

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

function toFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.fromEntries(Object.entries(value));
  } catch {
    return undefined;
  }
}

/** Only asymmetric ones: with HS256 a published key would be the secret. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'ES256',
  'ES384',
  'EdDSA',
] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** Whether the key signed it, by one of these algorithms and with nothing in the header that must be understood. */
export function isSignedBy(
  { header, signed, signature }: UncheckedJwt,
  key: KeyObject,
  algorithms: readonly SignatureAlgorithm[],
): boolean {
  const algorithm = algorithms.find((one) => one === header['alg']);
  // RFC 7515 section 4.1.11: what is critical and not understood makes the token invalid.
  if (algorithm === undefined || 'crit' in header || !fits(algorithm, key)) return false;
  const { hash, options } = METHODS[algorithm];
  try {
    return verify(hash, signed, { key, ...options }, signature);
  } catch {
    return false;
  }
}

const PSS = {
  padding: 6 /* RSA_PKCS1_PSS_PADDING */,
  saltLength: -1 /* as long as the digest */,
} as const;
const P1363 = { dsaEncoding: 'ieee-p1363' } as const;

const METHODS = {
  RS256: { hash: 'sha256', options: {}, type: 'rsa', curve: undefined },
  RS384: { hash: 'sha384', options: {}, type: 'rsa', curve: undefined },
  RS512: { hash: 'sha512', options: {}, type: 'rsa', curve: undefined },
  PS256: { hash: 'sha256', options: PSS, type: 'rsa', curve: undefined },
  ES256: { hash: 'sha256', options: P1363, type: 'ec', curve: 'prime256v1' },
  ES384: { hash: 'sha384', options: P1363, type: 'ec', curve: 'secp384r1' },
  EdDSA: { hash: null, options: {}, type: 'ed25519', curve: undefined },
} as const satisfies Record<SignatureAlgorithm, object>;

function fits(algorithm: SignatureAlgorithm, key: KeyObject): boolean {
  const { type, curve } = METHODS[algorithm];
  if (key.type !== 'public' || key.asymmetricKeyType !== type) return false;
  const details = key.asymmetricKeyDetails;
  if (type === 'rsa') return (details?.modulusLength ?? 0) >= 2048;
  return curve === undefined || details?.namedCurve === curve;
}

/** The signature keys of a published set, by `kid`; one without a `kid` stands under the empty text. */
export function toVerificationKeys(jwks: Fields): ReadonlyMap<string, KeyObject> {
  const keys = new Map<string, KeyObject>();
  const list = Array.isArray(jwks['keys']) ? jwks['keys'].slice(0, MAX_KEYS) : [];
  for (const jwk of list.map(fieldsIn)) {
    const { kid, use } = jwk;
    const key = use === undefined || use === 'sig' ? toKey(jwk) : undefined;
    if (key !== undefined) keys.set(typeof kid === 'string' ? kid : '', key);
  }
  return keys;
}

const MAX_KEYS = 64;

/** Of a symmetric key, or of anything odd, there is no public half. */
function toKey(jwk: Fields): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...jwk }, format: 'jwk' });
  } catch {
    return undefined;
  }
}
