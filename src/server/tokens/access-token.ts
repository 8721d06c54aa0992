/** Decides whether an access token is genuine, ours and in force, without asking anybody: RFC 9068 by the letter. */

import { jwtVerify } from 'jose';
import type { Clock } from '../../base/clock.js';
import { errorCode } from '../../base/error-code.js';
import { type Logger, silentLogger } from '../../base/logger.js';
import type { Secret } from '../../base/secret.js';
import { accessClaims, parseClaims, TOKEN_HEADERS } from '../../protocol/claims.js';
import { AilsdError } from '../../protocol/errors.js';
import { ISSUED_AHEAD_SECONDS, LEEWAY_SECONDS } from '../../protocol/lifetimes.js';
import { type Principal, toPrincipal } from '../../protocol/principal.js';
import { type CompactJwt, readCompactJwt } from './compact-jwt.js';
import { JwksCache, type JwksSource } from './jwks-cache.js';

export interface AccessTokenVerifierParts {
  /** Compared to the letter: a trailing slash is another issuer. */
  readonly issuer: string;
  readonly audience: string;
  readonly jwks: JwksSource;
  readonly clock: Clock;
  readonly logger?: Logger | undefined;
}

/** Rejects with UNAUTHENTICATED, always in the same words; with BACKEND_UNAVAILABLE while no keys are known. */
export type AccessTokenVerifier = (token: Secret) => Promise<Principal>;

export function createAccessTokenVerifier(parts: AccessTokenVerifierParts): AccessTokenVerifier {
  const { issuer, audience, clock, jwks: source, logger = silentLogger } = parts;
  const keys = new JwksCache({ source, clock, logger });
  return async (token) => {
    const jwt = readCompactJwt(token.reveal());
    if (jwt === undefined) throw refused('not a compact JWT');
    const kid = acceptedKid(jwt);
    const key = await keys.key(kid);
    if (key === undefined) throw refused('no such key');
    const now = clock.now();
    const payload = await verified(() =>
      jwtVerify(token.reveal(), key, {
        algorithms: [TOKEN_HEADERS.access.alg],
        issuer,
        audience,
        clockTolerance: LEEWAY_SECONDS.access,
        currentDate: new Date(now),
      }),
    );
    const claims = parseClaims(accessClaims, payload);
    if (!claims.ok) throw refused(claims.error.internal ?? 'claims');
    if (claims.value.iat > now / 1000 + ISSUED_AHEAD_SECONDS) throw refused('issued in the future');
    return toPrincipal(claims.value);
  };
}

/** Everything the header must say, decided before any key is looked for. */
function acceptedKid({ header }: CompactJwt): string {
  const { alg, typ } = TOKEN_HEADERS.access;
  if (header['alg'] !== alg) throw refused('another algorithm');
  if (header['typ'] !== typ) throw refused('another type');
  for (const name of REFUSED_PARAMETERS) {
    if (Object.hasOwn(header, name)) throw refused(`the header names ${name}`);
  }
  const { kid } = header;
  if (typeof kid !== 'string' || kid === '' || kid.length > KID_MAX_CHARACTERS)
    throw refused('no key is named');
  return kid;
}

/** A token that brings its own key, sends us for one, or asks for rules of its own is not from our issuer. */
const REFUSED_PARAMETERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc'] as const;

const KID_MAX_CHARACTERS = 256;

async function verified(verify: () => Promise<{ readonly payload: unknown }>): Promise<unknown> {
  try {
    return (await verify()).payload;
  } catch (error) {
    // jose's codes name the check that failed; its messages may quote the token.
    const code = errorCode(error) ?? 'unreadable';
    throw refused(code);
  }
}

function refused(internal: string): AilsdError {
  return new AilsdError('UNAUTHENTICATED', 'the access token is not accepted', { internal });
}
