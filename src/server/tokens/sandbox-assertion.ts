/** How a sandbox proves to the broker which one it is: a short-lived statement signed with its key, good for nothing else. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Secret } from '../../base/secret.js';
import type { SandboxId } from '../../protocol/ids.js';
import { ID_PATTERN } from '../../protocol/ids.js';
import { readCompactJwt } from './compact-jwt.js';

/** Made anew for each request. */
export const ASSERTION_SECONDS = 30;
/** How far the two clocks may be apart. */
const SKEW_SECONDS = 30;

/** Its type and audience keep it from being taken for a token, and a token from being taken for it. */
const HEADER = { alg: 'HS256', typ: 'ailsd-sandbox+jwt' } as const;
const AUDIENCE = 'ailsd-broker';

export function signSandboxAssertion(
  key: Uint8Array,
  { sandboxId, nowMs }: { readonly sandboxId: SandboxId; readonly nowMs: number },
): Secret {
  const iat = Math.floor(nowMs / 1000);
  const claims = { iss: sandboxId, aud: AUDIENCE, iat, exp: iat + ASSERTION_SECONDS };
  const body = `${encode(HEADER)}.${encode(claims)}`;
  return new Secret(`${body}.${signature(body, key).toString('base64url')}`);
}

/** Which sandbox it says it is of: only to know whose key to check it with. */
export function sandboxOfAssertion(assertion: Secret): SandboxId | undefined {
  return readClaims(assertion.reveal())?.iss;
}

export function isSandboxAssertion(
  assertion: Secret,
  key: Uint8Array,
  { sandboxId, nowMs }: { readonly sandboxId: SandboxId; readonly nowMs: number },
): boolean {
  const text = assertion.reveal();
  const claims = readClaims(text);
  if (claims === undefined || claims.iss !== sandboxId) return false;
  const cut = text.lastIndexOf('.');
  const given = Buffer.from(text.slice(cut + 1), 'base64url');
  const made = signature(text.slice(0, cut), key);
  if (given.length !== made.length || !timingSafeEqual(given, made)) return false;
  const now = nowMs / 1000;
  const isShort = claims.exp > claims.iat && claims.exp - claims.iat <= ASSERTION_SECONDS;
  return isShort && claims.iat <= now + SKEW_SECONDS && claims.exp + SKEW_SECONDS > now;
}

interface Claims {
  readonly iss: SandboxId;
  readonly iat: number;
  readonly exp: number;
}

const MAX_CHARACTERS = 2_048;

function readClaims(text: string): Claims | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const header = readCompactJwt(text)?.header;
  if (header?.['alg'] !== HEADER.alg || header['typ'] !== HEADER.typ) return undefined;
  if (Object.keys(header).length !== 2) return undefined;
  let payload: unknown;
  try {
    payload = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { iss, aud, iat, exp }: { [K in 'iss' | 'aud' | 'iat' | 'exp']?: unknown } = payload;
  if (aud !== AUDIENCE || !isSandboxId(iss)) return undefined;
  if (typeof iat !== 'number' || typeof exp !== 'number') return undefined;
  return { iss, iat, exp };
}

function isSandboxId(value: unknown): value is SandboxId {
  return typeof value === 'string' && ID_PATTERN.test(value);
}

function signature(body: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(body).digest();
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
