/** A client's row as the library wants to read it (RFC 7591 names). */
import type { AdapterPayload, Client as LibraryClient } from 'oidc-provider';
import { parseScopes, type Scope } from '../../protocol/scopes.js';
import { GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import type { Client } from '../store/clients.js';

/** `signs`: whether it is proving itself by a signed assertion just now; a client may have both a secret and keys. */
export function toClientMetadata(client: Client, signs: boolean): AdapterPayload {
  const grants = client.grants.filter((grant) => KNOWN_GRANTS.has(grant));
  const isCodeFlow = grants.includes(GRANT_TYPES.authorizationCode);
  const usesKeys = client.jwks !== undefined && (signs || client.secretHash === undefined);
  return {
    client_id: client.clientId,
    client_name: client.name,
    // Native: a loopback redirect may have any port (RFC 8252 section 7.3).
    application_type: client.kind === 'public' ? 'native' : 'web',
    redirect_uris: isCodeFlow ? [...client.redirectUris] : [],
    response_types: isCodeFlow ? ['code'] : [],
    grant_types: grants,
    ...(client.kind === 'public' && { token_endpoint_auth_method: 'none' }),
    ...(client.kind === 'confidential' &&
      !usesKeys && {
        token_endpoint_auth_method: 'client_secret_basic',
        // The hash: `compareClientSecret` of this issuer knows what to do with it.
        client_secret: client.secretHash?.reveal(),
      }),
    ...(client.kind === 'confidential' &&
      usesKeys && {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: Array.isArray(client.jwks?.['keys']) ? client.jwks['keys'] : [] },
      }),
    [ALLOWED_SCOPES]: client.allowedScopes.join(' '),
    [TENANT]: client.tenant,
  };
}

const ALLOWED_SCOPES = 'allowed_scopes';
const TENANT = 'tenant';

/** What the rows say beyond what OAuth knows. */
export const EXTRA_METADATA = [ALLOWED_SCOPES, TENANT] as const;

export function allowedScopes(client: LibraryClient): readonly Scope[] {
  const text = client[ALLOWED_SCOPES];
  return typeof text === 'string' ? parseScopes(text) : [];
}

export function tenantOf(client: LibraryClient): string | undefined {
  const tenant = client[TENANT];
  return typeof tenant === 'string' ? tenant : undefined;
}

const KNOWN_GRANTS: ReadonlySet<string> = new Set(Object.values(GRANT_TYPES));
