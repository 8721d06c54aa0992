/** Who a verified access token speaks for, in our own words. Free of zod. */
import type { AccessClaims, Act } from './claims.js';
import type { ThreadId } from './ids.js';
import { parseScopes, type Scope } from './scopes.js';

export interface Principal {
  /** Whom things belong to; for an agent, who delegated to it. */
  readonly sub: string;
  readonly kind: 'user' | 'service' | 'agent';
  readonly tenant: string;
  readonly clientId: string;
  readonly scopes: readonly Scope[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** The token's name in logs and audit. */
  readonly jti: string;
  readonly act?: Act | undefined;
  /** Whoever approved the login pinned it to these; absent: any. */
  readonly threads?: readonly ThreadId[] | undefined;
}

export function toPrincipal(claims: AccessClaims): Principal {
  return {
    sub: claims.sub,
    kind: claims.principal,
    tenant: claims.tenant,
    clientId: claims.client_id,
    scopes: parseScopes(claims.scope),
    expiresAt: claims.exp * 1000,
    jti: claims.jti,
    act: claims.act,
    threads: claims.threads,
  };
}
