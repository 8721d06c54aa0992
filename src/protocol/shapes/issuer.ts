/** What goes to and comes from the issuer (S1): OAuth 2 and OpenID Connect, as their RFCs spell it. Requests are forms. */
import * as z from 'zod/mini';
import { text, token } from '../frame-fields.js';
import { bearerType, label, maybe, principalId } from './fields.js';

/** The public client that `ailsd login` is. */
export const CLI_CLIENT_ID = 'ailsd-cli';

export const GRANT_TYPES = {
  deviceCode: 'urn:ietf:params:oauth:grant-type:device_code',
  authorizationCode: 'authorization_code',
  refreshToken: 'refresh_token',
  clientCredentials: 'client_credentials',
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
} as const;

/** RFC 8693 section 3: what a `subject_token` is. An ID token is a CI system's, trusted by a row of `workload_trust`. */
export const TOKEN_TYPE_URIS = {
  accessToken: 'urn:ietf:params:oauth:token-type:access_token',
  idToken: 'urn:ietf:params:oauth:token-type:id_token',
} as const;

export const DEVICE_CODE_SECONDS = 600;
export const POLL_INTERVAL_SECONDS = 5;
/** What each `slow_down` adds to the interval, for the rest of that login. */
export const SLOW_DOWN_SECONDS = 5;

/** RFC 8628 section 3.5, verbatim. */
export const DEVICE_ERRORS = [
  'authorization_pending',
  'slow_down',
  'expired_token',
  'access_denied',
] as const;

const scope = text(0, 1024);
const clientId = principalId;
const secret = text(1, 4096);
/** Printable ASCII, blanks included: what RFC 6749 lets an opaque code be. It travels in forms, never in a header. */
const code = z
  .string()
  .check(z.regex(/^[\x20-\x7e]{1,8192}$/, '1 to 8192 printable ASCII characters'));

/** A client that must prove itself sends a secret or a signed assertion (RFC 7523), or uses HTTP Basic. */
const clientProof = {
  client_id: z.optional(clientId),
  client_secret: z.optional(secret),
  client_assertion_type: z.optional(
    z.literal('urn:ietf:params:oauth:client-assertion-type:jwt-bearer'),
  ),
  client_assertion: z.optional(token),
};

export const MACHINE_NAME_MAX_CHARACTERS = 64;

export const deviceCodeRequest = z.object({
  ...clientProof,
  scope: z.optional(scope),
  /** What the machine that asks calls itself; shown to whoever approves, as a claim. */
  machine_name: z.optional(text(1, MACHINE_NAME_MAX_CHARACTERS)),
});

/** A page a person is sent to: https, or http on this very machine. */
const pageUrl = z
  .string()
  .check(
    z.maxLength(2048),
    z.regex(/^https?:\/\/[^\s/?#@\\]+(?:[/?#][^\s\\]*)?$/, 'an http(s) URL without a user'),
    z.refine(isPageUrl, { error: 'an https URL, or http to loopback' }),
    z.meta({ format: 'uri' }),
  );

function isPageUrl(value: string): boolean {
  if (!/^[\x21-\x7e]+$/.test(value) || !URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return protocol === 'https:' || LOOPBACK.test(hostname);
}

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

export const deviceCodeAnswer = z.object({
  device_code: code,
  /** Typed or compared by a person. */
  user_code: z.string().check(z.regex(/^[\x20-\x7e]{1,64}$/, '1 to 64 printable ASCII characters')),
  verification_uri: pageUrl,
  verification_uri_complete: maybe(pageUrl),
  expires_in: z.number().check(z.positive(), z.maximum(86_400)),
  /** Absent, zero or negative counts as 5: see `pollIntervalSeconds`. */
  interval: maybe(z.number().check(z.maximum(3600))),
});

export type DeviceCodeAnswer = z.output<typeof deviceCodeAnswer>;

export function pollIntervalSeconds({ interval = 0 }: Pick<DeviceCodeAnswer, 'interval'>): number {
  return interval > 0 ? interval : POLL_INTERVAL_SECONDS;
}

export const deviceQuery = z.object({ user_code: z.optional(text(1, 64)) });

/** What the approval page sends: the code that was compared, the decision, and what the approver narrowed. */
export const deviceForm = z.object({
  user_code: text(1, 64),
  xsrf: text(1, 256),
  decision: z.optional(z.enum(['approve', 'deny'])),
  scope: z.optional(scope),
  ttl: z.optional(text(1, 16)),
  /** Thread ids, separated by spaces: the login is pinned to these. */
  threads: z.optional(text(0, 8192)),
});

export const tokenRequest = z.discriminatedUnion('grant_type', [
  z.object({
    grant_type: z.literal(GRANT_TYPES.deviceCode),
    ...clientProof,
    device_code: code,
  }),
  z.object({
    grant_type: z.literal(GRANT_TYPES.authorizationCode),
    ...clientProof,
    code,
    redirect_uri: text(1, 2048),
    code_verifier: z.string().check(z.regex(/^[A-Za-z0-9._~-]{43,128}$/)),
  }),
  z.object({
    grant_type: z.literal(GRANT_TYPES.refreshToken),
    ...clientProof,
    refresh_token: token,
    scope: z.optional(scope),
  }),
  z.object({
    grant_type: z.literal(GRANT_TYPES.clientCredentials),
    ...clientProof,
    scope: z.optional(scope),
  }),
  z.object({
    grant_type: z.literal(GRANT_TYPES.tokenExchange),
    ...clientProof,
    /** The delegator's access token, or a CI system's ID token. */
    subject_token: token,
    subject_token_type: z.enum(Object.values(TOKEN_TYPE_URIS)),
    actor_token: z.optional(token),
    actor_token_type: z.optional(z.enum(Object.values(TOKEN_TYPE_URIS))),
    audience: z.optional(text(1, 2048)),
    resource: z.optional(text(1, 2048)),
    scope: z.optional(scope),
  }),
]);

export const tokenAnswer = z.object({
  access_token: token,
  token_type: bearerType,
  expires_in: maybe(z.number().check(z.positive(), z.maximum(31_536_000))),
  refresh_token: maybe(token),
  /** How long the login lasts, however often it is renewed. What others mean by a strange number is not known. */
  refresh_token_expires_in: maybe(z.number()),
  id_token: maybe(token),
  /** Absent when it is exactly what was asked for. */
  scope: maybe(scope),
  issued_token_type: maybe(text(1, 128)),
});

export type TokenAnswer = z.output<typeof tokenAnswer>;

/** RFC 6749 section 5.2: the issuer's errors, which are not wrapped in the envelope. */
export const oauthError = z.object({
  error: text(1, 128),
  error_description: maybe(text(0, 4096)),
  error_uri: maybe(text(0, 2048)),
});

export type OauthError = z.output<typeof oauthError>;

/** The parts of the discovery document that this project relies on. */
export const discoveryAnswer = z.object({
  issuer: pageUrl,
  token_endpoint: pageUrl,
  jwks_uri: pageUrl,
  device_authorization_endpoint: maybe(pageUrl),
  authorization_endpoint: maybe(pageUrl),
  userinfo_endpoint: maybe(pageUrl),
  revocation_endpoint: maybe(pageUrl),
  introspection_endpoint: maybe(pageUrl),
  grant_types_supported: maybe(z.array(text(1, 128)).check(z.maxLength(64))),
  scopes_supported: maybe(z.array(text(1, 128)).check(z.maxLength(256))),
});

/** Public keys. The members of a private one have no place in it. */
export const jwksAnswer = z.object({
  keys: z
    .array(
      z.object({
        kty: text(1, 16),
        kid: maybe(text(1, 256)),
        alg: maybe(text(1, 16)),
        use: maybe(text(1, 16)),
        n: maybe(text(1, 2048)),
        e: maybe(text(1, 16)),
      }),
    )
    .check(z.maxLength(64)),
});

export const userinfoAnswer = z.object({
  sub: principalId,
  name: maybe(label),
  email: maybe(text(1, 320)),
  tenant: maybe(text(1, 128)),
});

export const authorizeQuery = z.object({
  response_type: z.literal('code'),
  client_id: clientId,
  redirect_uri: text(1, 2048),
  scope: z.optional(scope),
  state: z.optional(text(1, 1024)),
  nonce: z.optional(text(1, 1024)),
  code_challenge: z.string().check(z.regex(/^[A-Za-z0-9_-]{43}$/)),
  code_challenge_method: z.literal('S256'),
});

/** RFC 7009 and RFC 7662: a token, to be revoked or to be told about. */
export const tokenForm = z.object({
  ...clientProof,
  token,
  token_type_hint: z.optional(text(1, 64)),
});

export const introspectAnswer = z.object({
  active: z.boolean(),
  scope: maybe(scope),
  client_id: maybe(clientId),
  sub: maybe(principalId),
  iss: maybe(text(1, 2048)),
  exp: maybe(z.number()),
  iat: maybe(z.number()),
  jti: maybe(text(1, 256)),
});
