/** oidc-provider as this issuer wants it: our paths, five grants, JWTs for one audience, our pages, no remote anything. */
import type { AdapterFactory, Configuration, KoaContextWithOIDC } from 'oidc-provider';
import type { Clock } from '../../base/clock.js';
import { ACCESS_TOKEN_SECONDS } from '../../protocol/lifetimes.js';
import { formatScopes } from '../../protocol/scopes.js';
import { GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import type { Db } from '../store/db.js';
import { errorPage } from '../web/outcome-page.js';
import { renderPage } from '../web/page.js';
import type { AccessTokens } from './access-tokens.js';
import { findAccount, SCOPE_CLAIMS, userOf } from './accounts.js';
import { allowedScopes, EXTRA_METADATA } from './client-metadata.js';
import type { RingState } from './key-ring.js';
import { MAX_LOGIN_SECONDS } from './lives.js';
import type { OidcLibrary } from './load-library.js';
import { machineNameOf, userAgentOf } from './request-origin.js';

export interface ProviderParts {
  readonly library: OidcLibrary;
  readonly db: Db;
  readonly clock: Clock;
  readonly url: string;
  readonly audience: string;
  readonly ring: RingState;
  readonly tokens: AccessTokens;
  readonly deviceCodeSeconds: number;
  readonly adapter: AdapterFactory;
}

/** The library names a resource by an absolute URI; an audience that is none stands behind the issuer's own. */
export function resourceOf({
  audience,
  url,
}: {
  readonly audience: string;
  readonly url: string;
}): string {
  return URL.canParse(audience) ? audience : url;
}

export const ROUTES = {
  authorization: '/authorize',
  code_verification: '/device',
  device_authorization: '/device/code',
  introspection: '/introspect',
  jwks: '/jwks',
  revocation: '/revoke',
  token: '/token',
  userinfo: '/userinfo',
} as const;

/** Of the library's paths, those that browsers are sent to. */
export function isForPeople(path: string): boolean {
  return path === ROUTES.authorization || path.startsWith(`${ROUTES.authorization}/`);
}

/** Its own session cookie is of no use: who is signed in is known by ours. */
export const LIBRARY_SESSION_COOKIE = 'ailsd_authorization';

export function providerConfiguration(parts: ProviderParts): Configuration {
  const { library, db, tokens } = parts;
  const { errors, interactionPolicy } = library;
  const resource = resourceOf(parts);
  return {
    adapter: parts.adapter,
    jwks: { keys: parts.ring.signing },
    routes: { ...ROUTES },
    cookies: {
      keys: parts.ring.cookies.map((key) => key.reveal()),
      names: {
        session: LIBRARY_SESSION_COOKIE,
        interaction: 'ailsd_interaction',
        resume: 'ailsd_resume',
      },
      short: { signed: true, httpOnly: true, sameSite: 'lax' },
      long: { signed: true, httpOnly: true, sameSite: 'lax' },
    },
    scopes: Object.keys(SCOPE_CLAIMS),
    claims: SCOPE_CLAIMS,
    conformIdTokenClaims: false,
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    responseTypes: ['code'],
    subjectTypes: ['public'],
    pkce: { required: () => true },
    enabledJWA: {
      clientAuthSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'],
      idTokenSigningAlgValues: ['RS256'],
    },
    extraClientMetadata: { properties: [...EXTRA_METADATA] },
    clientBasedCORS: () => false,
    findAccount: (_ctx, id) => findAccount(db, id),
    renderError: (ctx, { error, error_description: says }) => {
      const page = renderPage(
        errorPage(ctx.status, `The request can’t be answered: ${says ?? error}.`),
      );
      ctx.set({ ...page.headers });
      ctx.body = page.text;
    },

    // Every authorization is looked at and decided anew, on one page.
    interactions: { policy: interactionPolicy.base(), url: (_ctx, { uid }) => `/consent/${uid}` },
    loadExistingGrant: async (ctx) => {
      const grantId = ctx.oidc.result?.consent?.grantId;
      return grantId === undefined ? undefined : ctx.oidc.provider.Grant.find(grantId);
    },

    // Logins outlive the browser and need no `offline_access`: the approver chose how long.
    expiresWithSession: () => false,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed(GRANT_TYPES.refreshToken),
    rotateRefreshToken: true,
    formats: { customizers: { jwt: (ctx, token, parts) => tokens.complete(ctx, token, parts) } },
    ttl: {
      AccessToken: (ctx) => Math.min(ACCESS_TOKEN_SECONDS, grantSeconds(ctx)),
      ClientCredentials: ACCESS_TOKEN_SECONDS,
      IdToken: ACCESS_TOKEN_SECONDS,
      RefreshToken: (ctx) => grantSeconds(ctx),
      Grant: MAX_LOGIN_SECONDS,
      AuthorizationCode: 60,
      DeviceCode: parts.deviceCodeSeconds,
      Interaction: 600,
      Session: 600,
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      clientCredentials: { enabled: true },
      userinfo: { enabled: true },
      introspection: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => client.clientId === token.clientId,
      },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => client.clientId === token.clientId,
      },
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        deviceInfo: (ctx) => ({
          address: ctx.ip,
          userAgent: userAgentOf(ctx.req),
          machineName: machineNameOf(ctx.oidc.body?.['machine_name']),
          atMs: parts.clock.now(),
        }),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        // A client's own `scope` would not limit these: its row and, once known, the user's row do.
        getResourceServerInfo: (ctx, asked, client) => {
          if (asked !== resource) throw new errors.InvalidTarget('there is no such resource here');
          const user = userOf(ctx);
          const scopes = allowedScopes(client).filter(
            (scope) => user?.scopes.includes(scope) ?? true,
          );
          return {
            audience: parts.audience,
            scope: formatScopes(scopes),
            accessTokenFormat: 'jwt',
            accessTokenTTL: ACCESS_TOKEN_SECONDS,
            jwt: { sign: { alg: 'RS256' } },
          };
        },
      },
    },
  };
}

/** What is left of the life the approver chose. */
export function grantSeconds(ctx: KoaContextWithOIDC): number {
  const exp = ctx.oidc.grant?.exp ?? 0;
  return Math.max(1, exp - Math.floor(Date.now() / 1000));
}
