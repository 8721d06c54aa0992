/** Introspection (RFC 7662) and revocation (RFC 7009) of our JWTs, which the library leaves to whoever issues them. */
import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import type { AccessClaims } from '../../protocol/claims.js';
import type { AccessTokens } from './access-tokens.js';
import { tenantOf } from './client-metadata.js';
import { fieldsIn } from './fields.js';

/** The library has authenticated the client and then declined, because the token is structured: here is its answer. */
export async function answerForJwt(ctx: KoaContextWithOIDC, tokens: AccessTokens): Promise<void> {
  const { client, params, route } = ctx.oidc;
  const token = params?.['token'];
  if (!isDeclined(ctx) || client === undefined || typeof token !== 'string') return;
  const checked = await tokens.check(token);
  ctx.status = 200;
  if (route === 'revocation') {
    // The refusal that stood here was JSON.
    ctx.remove('Content-Type');
    ctx.body = '';
    if (checked.kind === 'active' && checked.claims.client_id === client.clientId) {
      await tokens.revoke(checked.claims.jti);
    }
    return;
  }
  ctx.body =
    checked.kind === 'active' && maySee(client, checked.claims)
      ? described(checked.claims)
      : { active: false };
}

function isDeclined({ status, body }: KoaContextWithOIDC): boolean {
  return status === 400 && fieldsIn(body)['error'] === 'unsupported_token_type';
}

/** Its own tokens, or as a service those of its tenant: what a token says is nobody else's business. */
function maySee(client: Client, claims: AccessClaims): boolean {
  if (claims.client_id === client.clientId) return true;
  return client.clientAuthMethod !== 'none' && tenantOf(client) === claims.tenant;
}

function described(claims: AccessClaims): object {
  return { active: true, token_type: 'Bearer', ...claims };
}
