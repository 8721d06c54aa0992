/** What each operation is told: one JSON document, every field of it bounded. */
import * as z from 'zod/mini';
import { DEFAULT_TENANT } from '../../protocol/claims.js';
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import { LOGIN_SCOPES } from '../../protocol/scopes.js';
import { workloadTrustRequest } from '../../protocol/shapes/admin.js';
import { httpBaseUrl, label, name, plainId, principalId } from '../../protocol/shapes/fields.js';
import { GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import { scope } from '../config.js';
import { PASSWORD_MAX_CHARACTERS } from '../tokens/password.js';

const path = z.string().check(z.minLength(1), z.maxLength(4096));
const line = z.string().check(z.minLength(1), z.maxLength(2048));
const tenant = z._default(name, DEFAULT_TENANT);

/** Without blanks and invisible characters: it is typed, and two must not look alike by those. */
const accountName = z
  .string()
  .check(z.regex(/^[^\s\p{C}]{1,128}$/u, '1 to 128 characters without blanks'));

const PASSWORD_MIN_CHARACTERS = 8;

const password = z.string().check(
  z.minLength(PASSWORD_MIN_CHARACTERS),
  z.maxLength(PASSWORD_MAX_CHARACTERS),
  z.refine((text) => !/\p{Cc}/u.test(text), { error: 'without control characters' }),
);

const scopes = z.array(scope).check(z.maxLength(16));

/** The names people use for the grants, as RFCs have them for the long ones. */
export const GRANTS = {
  device: GRANT_TYPES.deviceCode,
  code: GRANT_TYPES.authorizationCode,
  refresh: GRANT_TYPES.refreshToken,
  'client-credentials': GRANT_TYPES.clientCredentials,
  'token-exchange': GRANT_TYPES.tokenExchange,
} as const;

/** https, http on this machine, or an app's own scheme; never one that a browser would run. */
const redirectUri = line.check(
  z.refine(isRedirectUri, { error: 'an https URI, http to this machine, or an app scheme' }),
);

const inFolder = { dir: path };
const user = { ...inFolder, tenant, name: accountName };
/** RFC 7517, public parts only: a private key that gets here by mistake is not kept. */
const publicKeys = z.object({
  keys: z
    .array(
      z
        .looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']) })
        .check(z.refine((key) => !('d' in key), { error: 'a public key' })),
    )
    .check(z.minLength(1), z.maxLength(8)),
});

const client = { ...inFolder, client_id: principalId };

const INPUTS = {
  init: z.strictObject({ ...inFolder, url: z.optional(line), store: z.optional(line) }),
  start: z.strictObject({ ...inFolder, url: z.optional(line), listen: z.optional(line) }),
  /** A stack that somebody runs for themselves; what is there already is used. */
  dev: z.strictObject({ ...inFolder, user: accountName }),
  migrate: z.strictObject({ ...inFolder, check: z._default(z.boolean(), false) }),

  'user-add': z.strictObject({
    ...user,
    /** Absent: one is made and shown, unless somebody else vouches for the user. */
    password: z.optional(password),
    /** Who the user is at the company's login. */
    upstream: z.optional(z.strictObject({ issuer: httpBaseUrl, subject: principalId })),
    scopes: z._default(scopes, [...LOGIN_SCOPES]),
  }),
  'user-passwd': z.strictObject({ ...user, password: z.optional(password) }),
  'user-logout': z.strictObject(user),
  'user-disable': z.strictObject(user),
  'user-enable': z.strictObject(user),
  'user-rm': z.strictObject(user),
  'user-scopes': z.strictObject({ ...user, scopes }),
  'user-list': z.strictObject({ ...inFolder, tenant }),

  'client-add': z.strictObject({
    ...inFolder,
    tenant,
    /** Absent: one is made. */
    client_id: z.optional(principalId),
    name: label,
    kind: z._default(z.enum(['public', 'confidential']), 'confidential'),
    grants: z.array(z.enum(['device', 'code', 'refresh', 'client-credentials', 'token-exchange'])),
    scopes,
    redirect_uris: z._default(z.array(redirectUri).check(z.maxLength(16)), []),
    jwks: z.optional(publicKeys),
  }),
  'client-list': z.strictObject(inFolder),
  'client-disable': z.strictObject(client),
  'client-enable': z.strictObject(client),
  'client-rotate-secret': z.strictObject(client),

  'keys-list': z.strictObject(inFolder),
  'keys-rotate': z.strictObject(inFolder),

  'trust-add': z.strictObject({
    ...inFolder,
    ...z.omit(workloadTrustRequest, { scopes: true, tenant: true }).shape,
    tenant,
    scopes,
  }),
  'trust-list': z.strictObject(inFolder),
  'trust-rm': z.strictObject({ ...inFolder, id: plainId }),
} as const;

export type OperationName = keyof typeof INPUTS;

export type Inputs = { readonly [N in OperationName]: z.output<(typeof INPUTS)[N]> };

export function isOperationName(word: string): word is OperationName {
  return Object.hasOwn(INPUTS, word);
}

/** The words of an error never repeat the value: it may be a password. */
export function parseInput<N extends OperationName>(operation: N, given: unknown): Inputs[N] {
  const schema: z.ZodMiniType<Inputs[N]> = inputOf(operation);
  const parsed = parse(schema, given, 'USAGE', '');
  if (parsed.ok) return parsed.value;
  const { message, details } = parsed.error;
  throw new AilsdError('USAGE', message.trim(), { details });
}

function inputOf<N extends OperationName>(operation: N): z.ZodMiniType<Inputs[N]> {
  const table: { readonly [M in OperationName]: z.ZodMiniType<Inputs[M]> } = INPUTS;
  return table[operation];
}

function isRedirectUri(text: string): boolean {
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('#') || !URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  if (protocol === 'https:') return true;
  if (protocol === 'http:') return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  // RFC 8252 section 7.1: a private scheme is a domain name in reverse, so it has a dot.
  return /^[a-z][a-z0-9+-]*\.[a-z0-9+.-]+:$/.test(protocol);
}
