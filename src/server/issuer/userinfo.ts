/** Who the bearer of an access token is (OpenID Connect Core section 5.3), for tokens of our own form. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AilsdError } from '../../protocol/errors.js';
import { bearerOf } from '../http/bearer.js';
import type { Db } from '../store/db.js';
import type { AccessTokens } from './access-tokens.js';
import { findEnabledUser, userClaims } from './accounts.js';

export async function answerUserinfo(
  request: IncomingMessage,
  response: ServerResponse,
  { tokens, db }: { readonly tokens: AccessTokens; readonly db: Db },
): Promise<void> {
  const claims = await bearerClaims(request, tokens);
  if (claims === undefined) return send(response, 401, { error: 'invalid_token' });
  const user = claims.principal === 'service' ? undefined : await findEnabledUser(db, claims.sub);
  const who = user === undefined ? { sub: claims.sub, tenant: claims.tenant } : userClaims(user);
  send(response, 200, who);
}

async function bearerClaims(request: IncomingMessage, tokens: AccessTokens) {
  try {
    const checked = await tokens.check(bearerOf(request).reveal());
    return checked.kind === 'active' ? checked.claims : undefined;
  } catch (error) {
    if (error instanceof AilsdError && error.code === 'UNAUTHENTICATED') return undefined;
    throw error;
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer error="invalid_token"');
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(body));
}
