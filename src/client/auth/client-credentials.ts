/** A service gets a token with its own secret (RFC 6749 section 4.4): nothing to renew, it simply asks again. */
import { AilsdError } from '../../protocol/errors.js';
import { GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import { refusalText } from './grant-outcome.js';
import type { Issuer } from './issuer.js';
import type { Tokens } from './tokens.js';

/** `scopes` may be empty: the service then gets what its entry at the issuer allows. */
export async function clientCredentials(
  issuer: Issuer,
  scopes: readonly string[],
  signal?: AbortSignal,
): Promise<Tokens> {
  const parameters: Record<string, string> = scopes.length === 0 ? {} : { scope: scopes.join(' ') };
  const outcome = await issuer.grant(GRANT_TYPES.clientCredentials, parameters, { scopes, signal });
  if (outcome.kind === 'granted') return outcome.tokens;
  if (outcome.kind === 'failed') throw outcome.failure;
  throw new AilsdError(
    'LOGIN_FAILED',
    `the server does not accept the client ${issuer.clientId} (${refusalText(outcome)})`,
    {
      details: { oauth_error: outcome.error },
      hint: 'check AILSD_CLIENT_ID and AILSD_CLIENT_SECRET',
    },
  );
}
