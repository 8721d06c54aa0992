/** Turns a request into its caller: the bearer token, verified, with one of the scopes the route asks for. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Principal } from '../../protocol/principal.js';
import { formatScopes, holdsAnyScope, type Scope } from '../../protocol/scopes.js';
import { bearerOf } from './bearer.js';
import type { Exchange } from './exchange.js';

/** Rejects with UNAUTHENTICATED, or with BACKEND_UNAVAILABLE where nothing can be told yet. */
export type VerifyToken = (token: Secret) => Promise<Principal>;

export async function authenticate(
  exchange: Exchange,
  verify: VerifyToken,
  needed: readonly Scope[] | undefined,
): Promise<Principal> {
  const principal = await verify(bearerOf(exchange.request));
  const { sub, tenant, clientId, jti } = principal;
  exchange.note({ sub, tenant, client_id: clientId, jti });
  if (needed !== undefined) requireScope(principal, needed);
  return principal;
}

/** One of them is enough. */
export function requireScope(principal: Principal, needed: readonly Scope[]): void {
  if (holdsAnyScope(principal.scopes, needed)) return;
  const scope = formatScopes(needed);
  throw new AilsdError('CAPABILITY_DENIED', `this needs one of the scopes ${scope}`, {
    details: { scope },
  });
}
