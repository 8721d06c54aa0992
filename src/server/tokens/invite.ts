/** Invites to `/execute` and `/computer` (S0): HS256 with the secret that all who make them share. Single use is the store's. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Secret } from '../../base/secret.js';
import {
  type ComputerInvite,
  computerInvite,
  type ExecuteInvite,
  executeInvite,
  parseClaims,
  TOKEN_HEADERS,
} from '../../protocol/claims.js';
import { INVITE_SECONDS, ISSUED_AHEAD_SECONDS } from '../../protocol/lifetimes.js';
import { readCompactJwt } from './compact-jwt.js';

export type InviteEndpoint = 'execute' | 'computer';

export interface InviteClaims {
  readonly execute: ExecuteInvite;
  readonly computer: ComputerInvite;
}

export type InviteVerdict<E extends InviteEndpoint> =
  | { readonly kind: 'valid'; readonly claims: InviteClaims[E]; readonly hash: string }
  /** Genuine in everything but its time, which is over. */
  | { readonly kind: 'expired'; readonly sub: string }
  | { readonly kind: 'invalid' };

export function signInvite(secret: Secret, claims: ExecuteInvite | ComputerInvite): Secret {
  const body = `${encode(TOKEN_HEADERS.invite)}.${encode(claims)}`;
  return new Secret(`${body}.${signature(body, secret).toString('base64url')}`);
}

/** One for the other endpoint is invalid at this one. */
export function verifyInvite<E extends InviteEndpoint>(
  invite: Secret,
  secret: Secret,
  { endpoint, nowMs }: { readonly endpoint: E; readonly nowMs: number },
): InviteVerdict<E> {
  const text = invite.reveal();
  const payload = readSigned(text, secret);
  const claims = payload === undefined ? undefined : READERS[endpoint](payload);
  if (claims === undefined) return INVALID;
  const now = nowMs / 1000;
  const { iat, exp, nbf, sub, jti } = claims;
  if (iat !== undefined && iat > now + ISSUED_AHEAD_SECONDS) return INVALID;
  // Without `iat` how long it lives is seen from how far away its end is.
  if (iat === undefined && exp > now + INVITE_SECONDS) return INVALID;
  if (nbf !== undefined && nbf > now) return INVALID;
  if (exp <= now) return { kind: 'expired', sub };
  return { kind: 'valid', claims, hash: hashInvite(jti ?? text) };
}

/** By which the store knows an invite: of its `jti`, or of all of it where it has none. */
export function hashInvite(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

const INVALID = { kind: 'invalid' } as const;

type Readers = {
  readonly [E in InviteEndpoint]: (payload: unknown) => InviteClaims[E] | undefined;
};

const READERS: Readers = {
  execute: (payload) => {
    const parsed = parseClaims(executeInvite, payload);
    return parsed.ok ? parsed.value : undefined;
  },
  computer: (payload) => {
    const parsed = parseClaims(computerInvite, payload);
    return parsed.ok ? parsed.value : undefined;
  },
};

const MAX_CHARACTERS = 4_096;

function readSigned(text: string, secret: Secret): unknown {
  if (text.length > MAX_CHARACTERS) return undefined;
  const header = readCompactJwt(text)?.header;
  const { alg, typ } = TOKEN_HEADERS.invite;
  if (header?.['alg'] !== alg || header['typ'] !== typ) return undefined;
  if (Object.keys(header).length !== 2) return undefined;
  const cut = text.lastIndexOf('.');
  const body = text.slice(0, cut);
  const given = Buffer.from(text.slice(cut + 1), 'base64url');
  const made = signature(body, secret);
  if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined;
  try {
    return JSON.parse(Buffer.from(body.slice(body.indexOf('.') + 1), 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

function signature(body: string, secret: Secret): Buffer {
  return createHmac('sha256', secret.reveal()).update(body).digest();
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
