/** The small values that requests and answers are made of, each with its bound. */
import * as z from 'zod/mini';
import { whole } from '../frame-fields.js';
import {
  type CommandId,
  type GrantId,
  ID_PATTERN,
  type InvocationId,
  type SandboxId,
  type SessionId,
  type SnapshotId,
  THREAD_ID_PATTERN,
  type ThreadId,
  type TokenId,
} from '../ids.js';

/** Without flags, since JSON Schema has no place for them. */
function pattern(shape: RegExp, says: string) {
  return z.string().check(z.regex(shape, says), z.describe(says));
}

/** An id, made by us or by a system that spells them differently (`sbx_…`, `bind_…`). */
function idOf<T extends string>(shape: RegExp, says: string): z.ZodMiniType<T, string> {
  return pattern(shape, says) as z.ZodMiniType<string, string> as z.ZodMiniType<T, string>;
}

const PLAIN_ID = '1 to 128 of A-Z a-z 0-9 . _ : - and first a letter or digit';

export const threadId = idOf<ThreadId>(THREAD_ID_PATTERN, '1 to 128 of A-Z a-z 0-9 . _ : -');
export const sandboxId = idOf<SandboxId>(ID_PATTERN, PLAIN_ID);
export const sessionId = idOf<SessionId>(ID_PATTERN, PLAIN_ID);
export const commandId = idOf<CommandId>(ID_PATTERN, PLAIN_ID);
export const tokenId = idOf<TokenId>(ID_PATTERN, PLAIN_ID);
export const invocationId = idOf<InvocationId>(ID_PATTERN, PLAIN_ID);
export const snapshotId = idOf<SnapshotId>(ID_PATTERN, PLAIN_ID);
export const grantId = idOf<GrantId>(ID_PATTERN, PLAIN_ID);
export const plainId = pattern(ID_PATTERN, PLAIN_ID);

/** Who somebody is at an issuer (`sub`) or a client (`client_id`): foreign spellings such as `auth0|17` or an address included. */
export const principalId = pattern(/^[\x21-\x7e]{1,255}$/, '1 to 255 visible ASCII characters');

/** A short name for a tenant, template or provider. */
export const name = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
  '1 to 64 of A-Z a-z 0-9 . _ - and first a letter or digit',
);

/** Words for people, on one line. */
export const label = pattern(/^[^\x00-\x1f\x7f-\x9f]{1,128}$/, '1 to 128 characters on one line');

/** Compared without regard to case (RFC 6749 section 5.1). */
export const bearerType = pattern(/^[Bb][Ee][Aa][Rr][Ee][Rr]$/, 'Bearer');

/** A moment: RFC 3339 in UTC, down to the second or finer. We write `Z`; other systems' `+00:00` is read as well. */
export const timestamp = z
  .string()
  .check(
    z.maxLength(35),
    z.refine(isUtcTimestamp, { error: 'a time in UTC such as 2026-02-27T20:20:00Z' }),
    z.meta({ format: 'date-time' }),
  );

const UTC = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(?:Z|\+00:00)$/;

function isUtcTimestamp(value: string): boolean {
  const second = UTC.exec(value)?.[1];
  if (second === undefined) return false;
  const time = Date.parse(`${second}Z`);
  // Date.parse takes 30 February for 2 March; only a day that exists comes back as it went in.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(second);
}

/** Where HTTP or WebSocket requests go, with a path at most: paths are put behind it, and a URL is no place for secrets. */
export const httpBaseUrl = baseUrl(/^https?:\/\/[^\s/?#@\\]+(?:\/[^\s?#\\]*)?$/, 'http(s)');
export const wsBaseUrl = baseUrl(/^wss?:\/\/[^\s/?#@\\]+(?:\/[^\s?#\\]*)?$/, 'ws(s)');

function baseUrl(shape: RegExp, scheme: string) {
  const says = `an ${scheme} URL without user, query and fragment`;
  return z
    .string()
    .check(
      z.maxLength(2048),
      z.regex(shape, says),
      z.refine(isUrl, { error: says }),
      z.meta({ format: 'uri' }),
    );
}

function isUrl(value: string): boolean {
  return /^[\x21-\x7e]+$/.test(value) && URL.canParse(value);
}

/** One capability in either vocabulary; one that nobody here knows is denied, not refused. */
export const capabilityWord = pattern(
  /^[a-z][a-z0-9_]{0,31}(?::[a-z]{1,8})?$/,
  'a capability such as fs:rw or fs_read',
);

/** What is asked for: asking for nothing at all is a mistake, and leaving it out means the default. */
export const requestedCapabilities = z
  .array(capabilityWord)
  .check(z.minLength(1), z.maxLength(32), z.describe('capabilities in either vocabulary'));

export const grantedCapabilities = z.array(capabilityWord).check(z.maxLength(32));

/** Seconds or milliseconds asked for: out of bounds is clamped, but negative or not a number is wrong. */
export const duration = z.number().check(z.nonnegative('a number from 0 up'));

export const count = whole(0, Number.MAX_SAFE_INTEGER);

/** An answer's field that may be absent: servers in other languages write absence as null. */
export function maybe<S extends z.core.$ZodType>(schema: S) {
  const orAbsent = z.transform((value: z.output<S> | null) => value ?? undefined);
  return z.optional(z.pipe(z.nullable(schema), orAbsent));
}

/** A small dictionary. Its entries are counted before any is looked at: zod keeps an issue for each that is wrong. */
export function dictionary<K extends z.core.$ZodRecordKey, V extends z.core.$ZodType>(
  key: K,
  value: V,
  max: number,
) {
  const counted = z.transform((given: unknown, { issues }: z.core.ParsePayload) => {
    const isTooBig = typeof given === 'object' && given !== null && Object.keys(given).length > max;
    if (isTooBig)
      issues.push({
        code: 'custom',
        input: given,
        message: `an object with at most ${max} entries`,
      });
    return given;
  });
  return z.pipe(counted, z.record(key, value).check(z.meta({ maxProperties: max })));
}

/** A whole number in a query string, clamped to its bounds. */
export function queryNumber(min: number, max: number) {
  const digits = z.string().check(z.regex(/^\d{1,15}$/, 'a whole number'));
  const clamped = z.transform((value: string) => Math.min(max, Math.max(min, Number(value))));
  const shown = { type: 'integer', minimum: min, maximum: max, pattern: undefined };
  return z.pipe(digits.check(z.meta(shown)), clamped);
}

/** A yes or no in a query string: `1`, `true`, and nothing after the name mean yes. */
export const queryFlag = z.pipe(
  z.enum(['', '1', 'true', '0', 'false']),
  z.transform((value) => value !== '0' && value !== 'false'),
);
