/** Sandbox tokens: made by the broker, judged by the sandbox on its own, both with the sandbox's key. No clock of its own. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Secret } from '../../base/secret.js';
import { type Capability, parseCapabilities } from '../../protocol/capabilities.js';
import {
  parseClaims,
  type SandboxClaims,
  sandboxClaims,
  TOKEN_HEADERS,
} from '../../protocol/claims.js';
import type { SandboxId, ThreadId } from '../../protocol/ids.js';
import { ISSUED_AHEAD_SECONDS, LEEWAY_SECONDS } from '../../protocol/lifetimes.js';
import { readCompactJwt } from './compact-jwt.js';

export type SandboxVerdict =
  | {
      readonly kind: 'valid';
      readonly claims: SandboxClaims;
      readonly capabilities: readonly Capability[];
    }
  /** Genuine in everything but its time, which is over. */
  | { readonly kind: 'expired'; readonly claims: SandboxClaims }
  | { readonly kind: 'invalid' };

export interface SandboxTokenBounds {
  /** Whom the token must be for. */
  readonly sandboxId: SandboxId;
  readonly nowMs: number;
  /** Where it is known: a token that names another thread is not one of ours. */
  readonly threadId?: ThreadId | undefined;
}

export function signSandboxToken(key: Uint8Array, claims: SandboxClaims): Secret {
  const body = `${HEADER}.${encode(claims)}`;
  return new Secret(`${body}.${signature(body, key).toString('base64url')}`);
}

/** Any of the keys will do. Everything about the token is decided here but whether it was revoked. */
export function verifySandboxToken(
  token: Secret,
  keys: readonly Uint8Array[],
  { sandboxId, nowMs, threadId }: SandboxTokenBounds,
): SandboxVerdict {
  const payload = readSigned(token.reveal(), keys);
  if (payload === undefined) return INVALID;
  const parsed = parseClaims(sandboxClaims, payload);
  if (!parsed.ok) return INVALID;
  const claims = parsed.value;
  const now = nowMs / 1000;
  if (claims.aud !== sandboxId) return INVALID;
  if (threadId !== undefined && claims.thread_id !== threadId) return INVALID;
  if (claims.iat > now + ISSUED_AHEAD_SECONDS) return INVALID;
  if (claims.nbf !== undefined && claims.nbf > now + LEEWAY_SECONDS.sandbox) return INVALID;
  if (claims.exp + LEEWAY_SECONDS.sandbox <= now) return { kind: 'expired', claims };
  const capabilities = parseCapabilities(claims.scope);
  return capabilities === undefined ? INVALID : { kind: 'valid', claims, capabilities };
}

const INVALID: SandboxVerdict = { kind: 'invalid' };

/** The payload, if the outside is exactly ours and one of the keys signed it. */
function readSigned(text: string, keys: readonly Uint8Array[]): unknown {
  if (text.length > TOKEN_MAX_CHARACTERS) return undefined;
  const jwt = readCompactJwt(text);
  if (jwt === undefined || !isOurHeader(jwt.header)) return undefined;
  const cut = text.lastIndexOf('.');
  const given = Buffer.from(text.slice(cut + 1), 'base64url');
  const body = text.slice(0, cut);
  // Each key is tried, right or not: the time says nothing about which it was.
  let isSigned = false;
  for (const key of keys) {
    const made = signature(body, key);
    isSigned = (made.length === given.length && timingSafeEqual(made, given)) || isSigned;
  }
  if (!isSigned) return undefined;
  try {
    return JSON.parse(Buffer.from(body.slice(body.indexOf('.') + 1), 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Ours have some 500 characters; the longest names and a chain of agents make it a few thousand. */
const TOKEN_MAX_CHARACTERS = 8_192;

/** These two and nothing besides: a token that names a key, or asks for rules of its own, is not from our broker. */
function isOurHeader(header: Readonly<Record<string, unknown>>): boolean {
  const { alg, typ } = TOKEN_HEADERS.sandbox;
  return header['alg'] === alg && header['typ'] === typ && Object.keys(header).length === 2;
}

const HEADER = encode(TOKEN_HEADERS.sandbox);

function signature(body: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(body).digest();
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
