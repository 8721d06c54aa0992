/** Takes the bearer token from a request's headers: one, of our scheme, of a token's form and size, or an error. */
import type { IncomingMessage } from 'node:http';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { BEARER_MAX_BYTES } from './limits.js';

export function bearerOf(request: IncomingMessage): Secret {
  const value = onlyAuthorization(request.rawHeaders);
  if (value === undefined) throw refused('the request carries no access token', 'no header');
  if (value.length > BEARER_MAX_BYTES + SCHEME_CHARACTERS) throw refused(REFUSED, 'too long');
  const token = BEARER.exec(value)?.[1];
  if (token === undefined) throw refused(REFUSED, 'not a bearer token');
  return new Secret(token);
}

/** Whether it tried at all: RFC 6750 section 3 wants no error named to a caller who did not. */
export function hasAuthorization({ headers }: IncomingMessage): boolean {
  return headers.authorization !== undefined;
}

const REFUSED = 'the access token is not accepted';
const SCHEME_CHARACTERS = 'Bearer '.length;

/** RFC 6750 section 2.1: the scheme in any case, one or more spaces, a `b64token`. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** Node keeps the first of several and says nothing, so the raw lines are looked at. */
function onlyAuthorization(rawHeaders: readonly string[]): string | undefined {
  let found: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length !== AUTHORIZATION.length || name.toLowerCase() !== AUTHORIZATION) continue;
    if (found !== undefined) throw refused(REFUSED, 'two Authorization headers');
    found = rawHeaders[at + 1] ?? '';
  }
  return found;
}

const AUTHORIZATION = 'authorization';

function refused(message: string, internal: string): AilsdError {
  return new AilsdError('UNAUTHENTICATED', message, { internal });
}
