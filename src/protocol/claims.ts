/** What each kind of token claims. A token of one kind never passes for another: each schema refuses the others' marks. */
import * as z from 'zod/mini';
import { parseCapabilities } from './capabilities.js';
import { AilsdError } from './errors.js';
import { text } from './frame-fields.js';
import { ACCESS_TOKEN_SECONDS, INVITE_SECONDS, SANDBOX_TOKEN_SECONDS } from './lifetimes.js';
import { type Parsed, parse } from './parse.js';
import { name, plainId, principalId, sandboxId, threadId, tokenId } from './shapes/fields.js';

/** How each kind is signed, and what its header calls it. Nothing else is accepted, least of all what the token asks for. */
export const TOKEN_HEADERS = {
  /** RFC 9068, signed by the issuer. */
  access: { alg: 'RS256', typ: 'at+jwt' },
  /** Signed with the key of the one sandbox it is for. */
  sandbox: { alg: 'HS256', typ: 'JWT' },
  /** Signed with `SANDBOX_AUTH_SECRET`. */
  invite: { alg: 'HS256', typ: 'JWT' },
} as const;

/** The tenant of a token that names none. */
export const DEFAULT_TENANT = 'default';

/** Seconds since 1970 (RFC 7519 section 2). */
const numericDate = z.number().check(z.minimum(0), z.maximum(253_402_300_799));

const absent = z.optional(z.never());

/** Who acts for the subject, nested by delegation (RFC 8693 section 4.1), as deep as a chain of agents may be. */
const ACT_MAX_DEPTH = 8;

export interface Act {
  readonly sub: string;
  readonly client_id?: string | undefined;
  readonly act?: Act | undefined;
}

const act = nested(ACT_MAX_DEPTH);

function nested(depth: number): z.ZodMiniType<Act> {
  return z.object({
    sub: principalId,
    client_id: z.optional(principalId),
    act: depth > 1 ? z.optional(nested(depth - 1)) : absent,
  });
}

export const accessClaims = z
  .object({
    iss: text(1, 2048),
    sub: principalId,
    aud: z.union([text(1, 2048), z.array(text(1, 2048)).check(z.minLength(1), z.maxLength(16))]),
    client_id: principalId,
    scope: text(0, 1024),
    principal: z.enum(['user', 'service', 'agent']),
    tenant: z._default(name, DEFAULT_TENANT),
    exp: numericDate,
    iat: numericDate,
    nbf: z.optional(numericDate),
    jti: plainId,
    act: z.optional(act),
    /** Whoever approved the login pinned it to these. */
    threads: z.optional(z.array(threadId).check(z.minLength(1), z.maxLength(64))),
    room: absent,
    thread_id: absent,
    scopes: absent,
    elevated: absent,
  })
  .check(
    livesAtMost(ACCESS_TOKEN_SECONDS),
    z.refine((claims) => claims.principal !== 'agent' || claims.act !== undefined, {
      path: ['act'],
      error: 'given, since an agent acts for somebody',
    }),
  );

export type AccessClaims = z.output<typeof accessClaims>;

/** The claims of a sandbox token by themselves; `sandboxClaims` adds what ties them together. */
export const sandboxClaimFields = z.object({
  sub: principalId,
  /** The one sandbox it is for: never a list. */
  aud: sandboxId,
  /** Canonical capabilities, one space between. */
  scope: text(1, 256).check(
    z.refine((scope) => parseCapabilities(scope) !== undefined, {
      error: 'capabilities with one space between',
    }),
  ),
  thread_id: threadId,
  /** The thread again, under S0's name. */
  room: z.optional(threadId),
  exp: numericDate,
  iat: numericDate,
  nbf: z.optional(numericDate),
  jti: tokenId,
  act: z.optional(act),
});

export const sandboxClaims = z
  .extend(sandboxClaimFields, {
    client_id: absent,
    principal: absent,
    scopes: absent,
    elevated: absent,
  })
  .check(
    livesAtMost(SANDBOX_TOKEN_SECONDS.max),
    z.refine((claims) => claims.room === undefined || claims.room === claims.thread_id, {
      path: ['room'],
      error: 'the same as thread_id',
    }),
  );

export type SandboxClaims = z.output<typeof sandboxClaims>;

/** Single use is by `jti`; S0's own tokens have none, nor `iat`, and are told apart by their hash. */
const inviteFields = {
  exp: numericDate,
  iat: z.optional(numericDate),
  nbf: z.optional(numericDate),
  jti: z.optional(plainId),
  aud: absent,
  scope: absent,
  client_id: absent,
  principal: absent,
  thread_id: absent,
};

export const executeInvite = z
  .object({
    sub: z.string().check(z.regex(/^run_[A-Za-z0-9._:-]{1,124}$/, 'run_ and an id')),
    scopes: z.literal('execution'),
    room: absent,
    elevated: absent,
    ...inviteFields,
  })
  .check(livesAtMost(INVITE_SECONDS));

export type ExecuteInvite = z.output<typeof executeInvite>;

export const computerInvite = z
  .object({
    sub: principalId,
    /** A thread, or `*` for any. */
    room: z.union([threadId, z.literal('*')]),
    elevated: z.optional(z.boolean()),
    scopes: absent,
    ...inviteFields,
  })
  .check(livesAtMost(INVITE_SECONDS));

export type ComputerInvite = z.output<typeof computerInvite>;

/** Checks a verified payload. The bearer learns that the token is refused; only the log learns why. */
export function parseClaims<S extends z.core.$ZodType>(
  schema: S,
  payload: unknown,
): Parsed<z.output<S>> {
  const parsed = parse(schema, payload, 'UNAUTHENTICATED', 'the claims: ');
  if (parsed.ok) return parsed;
  const internal = parsed.error.message;
  const error = new AilsdError('UNAUTHENTICATED', 'the token is not accepted here', { internal });
  return { ok: false, error };
}

/** Whether it lives longer than its kind may; without `iat` that is for whoever knows what time it is. */
function livesAtMost(seconds: number) {
  return z.refine<{ exp: number; iat?: number | undefined }>(
    ({ exp, iat }) => iat === undefined || (exp > iat && exp - iat <= seconds),
    { path: ['exp'], error: `after iat, by ${seconds} seconds at most` },
  );
}
