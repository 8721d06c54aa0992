/** What an issuer's token endpoint gave, in our words: secrets as secrets, times as points in time, scopes as a list. */
import { Secret } from '../../base/secret.js';
import type { TokenAnswer } from '../../protocol/shapes/issuer.js';
import type { Credential } from '../credentials/credential.js';
import { claimsOf, type ReadableClaims, scopeWords } from './claims.js';

export interface Tokens {
  readonly accessToken: Secret;
  /** By this machine's clock, milliseconds since 1970. */
  readonly accessExpiresAtMs: number;
  readonly obtainedAtMs: number;
  /** What was granted, which may be less than what was asked for. */
  readonly scopes: readonly string[];
  readonly refreshToken: Secret | undefined;
  /** When the login ends, by this machine's clock; absent where the issuer does not say. */
  readonly loginExpiresAtMs: number | undefined;
  /** What the token says about whom it is for; nothing where it is not a JWT. */
  readonly claims: ReadableClaims | undefined;
}

/** An issuer that does not say how long a token lives means a short time. */
const UNSAID_LIFE_SECONDS = 300;

/** `asked` is what an answer without `scope` grants (RFC 6749 section 5.1). */
export function toTokens(answer: TokenAnswer, asked: readonly string[], nowMs: number): Tokens {
  const { access_token, refresh_token, id_token, scope, expires_in } = answer;
  const claims = claimsOf(access_token) ?? claimsOf(id_token ?? '');
  const obtainedAtMs = Math.round(nowMs);
  const lifeSeconds = expires_in ?? lifeOf(claims, nowMs);
  return {
    accessToken: new Secret(access_token),
    obtainedAtMs,
    accessExpiresAtMs: obtainedAtMs + Math.round(lifeSeconds * 1000),
    scopes: scope === undefined ? asked : scopeWords(scope),
    refreshToken: refresh_token === undefined ? undefined : new Secret(refresh_token),
    loginExpiresAtMs: loginEnd(answer, obtainedAtMs),
    claims,
  };
}

/** Some issuers write 0 for no end at all. */
function loginEnd(answer: TokenAnswer, nowMs: number): number | undefined {
  const { refresh_token, refresh_token_expires_in: seconds } = answer;
  if (refresh_token === undefined || seconds === undefined) return undefined;
  return seconds > 0 && seconds <= LONGEST_LOGIN_SECONDS
    ? nowMs + Math.round(seconds * 1000)
    : undefined;
}

/** A hundred years. */
const LONGEST_LOGIN_SECONDS = 3_155_760_000;

/** The login these tokens make. */
export function toCredential(tokens: Tokens, issuer: string, clientId: string): Credential {
  const { claims, refreshToken, accessToken, accessExpiresAtMs, obtainedAtMs, scopes } = tokens;
  const { tenant, threads } = claims ?? {};
  const { loginExpiresAtMs } = tokens;
  return {
    issuer,
    clientId,
    account: claims?.sub ?? UNNAMED_ACCOUNT,
    scopes,
    accessToken,
    accessExpiresAtMs,
    obtainedAtMs,
    ...(tenant === undefined ? {} : { tenant }),
    ...(threads === undefined ? {} : { threads }),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(loginExpiresAtMs === undefined ? {} : { loginExpiresAtMs }),
  };
}

/** Whose login it is when the token does not say: an issuer with opaque tokens and no ID token. */
const UNNAMED_ACCOUNT = 'unnamed';

/** By the token's own two times, so that a clock that is wrong here does not count. */
function lifeOf(claims: ReadableClaims | undefined, nowMs: number): number {
  const { expiresAtMs, issuedAtMs = nowMs } = claims ?? {};
  if (expiresAtMs === undefined || expiresAtMs <= issuedAtMs) return UNSAID_LIFE_SECONDS;
  return (expiresAtMs - issuedAtMs) / 1000;
}
