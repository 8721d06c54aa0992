/** The server's answers about sessions, checked by hand: a schema library would double the time of a command. */
import { Secret } from '../../base/secret.js';
import { type Capability, fromWord } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import {
  ID_PATTERN,
  isThreadId,
  type SandboxId,
  type SessionId,
  type ThreadId,
} from '../../protocol/ids.js';

/** Times are the server's. */
export interface Negotiated {
  readonly sessionId: SessionId;
  readonly threadId: ThreadId;
  readonly sandboxId: SandboxId;
  readonly provider: string;
  readonly httpUrl: string;
  readonly wsUrl: string;
  readonly fresh: FreshToken;
  /** In the server's words; absent where it did not say. */
  readonly grantedWords: readonly string[] | undefined;
  readonly capabilities: readonly Capability[] | undefined;
  readonly state: string | undefined;
  readonly leaseExpiresAtMs: number | undefined;
  readonly policy: Policy | undefined;
  readonly adjustments: readonly Adjusted[];
}

export interface FreshToken {
  readonly token: Secret;
  readonly expiresAtMs: number;
  readonly refreshBeforeMs: number | undefined;
}

export interface Policy {
  readonly idleTimeoutSeconds: number;
  readonly hardTtlSeconds: number;
}

/** Where the answer differs from what was asked for. */
export interface Adjusted {
  readonly field: string;
  readonly requested: string | number;
  readonly granted: string | number | null;
}

/** Takes what the schema `negotiateAnswer` takes, ours or a full-only server's; a test holds the two together. */
export function parseNegotiated(value: unknown): Negotiated {
  const answer = record(value, 'body');
  const isOurs = Object.hasOwn(answer, 'session_id');
  const binding = optional(answer['binding'], (one) => record(one, 'binding'));
  const credentials = optional(answer['credentials'], (one) => record(one, 'credentials'));
  const sandbox = isOurs ? record(answer['sandbox'], 'sandbox') : binding;
  const place = isOurs ? sandbox : record(answer['dataplane'], 'dataplane');
  if (sandbox === undefined || place === undefined) throw wrong('binding');
  const words = optional(credentials?.['granted_capabilities'], capabilityWords);
  return {
    sessionId: id(isOurs ? answer['session_id'] : sandbox['id'], 'session_id') as SessionId,
    threadId: isOurs ? thread(answer['thread_id']) : thread(scopeId(sandbox['scope'])),
    sandboxId: id(isOurs ? sandbox['id'] : sandbox['sandbox_id'], 'sandbox.id') as SandboxId,
    provider: name(sandbox['provider'], 'sandbox.provider'),
    httpUrl: baseUrl(place['http_base_url'], 'http_base_url', HTTP_URL),
    wsUrl: baseUrl(place['ws_base_url'], 'ws_base_url', WS_URL),
    fresh: isOurs ? freshToken(answer) : freshFromCredentials(credentials),
    grantedWords: words,
    capabilities: words?.map(fromWord).filter((one) => one !== undefined),
    state: optional(binding?.['state'], (one) => name(one, 'binding.state')),
    leaseExpiresAtMs: optional(binding?.['lease_expires_at'], (one) =>
      time(one, 'binding.lease_expires_at'),
    ),
    policy: optional(answer['policy'], policy),
    adjustments: (isOurs ? optional(answer['adjustments'], adjustments) : undefined) ?? [],
  };
}

export function parseFreshToken(value: unknown): FreshToken {
  return freshToken(record(value, 'body'));
}

export function parseLease(value: unknown): { readonly state: string; readonly endsAtMs: number } {
  const answer = record(value, 'body');
  return {
    state: name(answer['state'], 'state'),
    endsAtMs: time(answer['lease_expires_at'], 'lease_expires_at'),
  };
}

type Fields = Readonly<Record<string, unknown>>;

const MOST_URL_CHARACTERS = 2_048;
const MOST_CAPABILITIES = 32;
const MOST_ADJUSTMENTS = 64;
const MOST_WORD_CHARACTERS = 128;

const TOKEN = /^[\x21-\x7e]{1,16384}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const WORD = /^[a-z][a-z0-9_]{0,31}(?::[a-z]{1,8})?$/;
const HTTP_URL = /^https?:\/\/[^\s/?#@\\]+(?:\/[^\s?#\\]*)?$/;
const WS_URL = /^wss?:\/\/[^\s/?#@\\]+(?:\/[^\s?#\\]*)?$/;
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)$/;

function freshToken(answer: Fields): FreshToken {
  return {
    token: token(answer['token'], 'token'),
    expiresAtMs: time(answer['expires_at'], 'expires_at'),
    refreshBeforeMs: optional(answer['refresh_before'], (one) => time(one, 'refresh_before')),
  };
}

function freshFromCredentials(credentials: Fields | undefined): FreshToken {
  if (credentials === undefined) throw wrong('credentials');
  return {
    token: token(credentials['access_token'], 'credentials.access_token'),
    expiresAtMs: time(credentials['expires_at'], 'credentials.expires_at'),
    refreshBeforeMs: undefined,
  };
}

function optional<T>(value: unknown, parse: (value: unknown) => T): T | undefined {
  return value === undefined || value === null ? undefined : parse(value);
}

function record(value: unknown, field: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(field);
  return { ...value };
}

function matching(value: unknown, pattern: RegExp, field: string): string {
  if (typeof value === 'string' && pattern.test(value)) return value;
  throw wrong(field);
}

function token(value: unknown, field: string): Secret {
  return new Secret(matching(value, TOKEN, field));
}

function id(value: unknown, field: string): string {
  return matching(value, ID_PATTERN, field);
}

function name(value: unknown, field: string): string {
  return matching(value, NAME, field);
}

function thread(value: unknown): ThreadId {
  if (typeof value === 'string' && isThreadId(value)) return value;
  throw wrong('thread_id');
}

function scopeId(value: unknown): unknown {
  return record(value, 'binding.scope')['id'];
}

function time(value: unknown, field: string): number {
  const at = Date.parse(matching(value, UTC, field));
  if (Number.isNaN(at)) throw wrong(field);
  return at;
}

function baseUrl(value: unknown, field: string, shape: RegExp): string {
  const url = matching(value, shape, field);
  const isPlain = url.length <= MOST_URL_CHARACTERS && /^[\x21-\x7e]+$/.test(url);
  if (isPlain && URL.canParse(url)) return url;
  throw wrong(field);
}

function capabilityWords(value: unknown): readonly string[] {
  const field = 'credentials.granted_capabilities';
  if (!Array.isArray(value) || value.length > MOST_CAPABILITIES) throw wrong(field);
  return value.map((word) => matching(word, WORD, field));
}

function policy(value: unknown): Policy {
  const fields = record(value, 'policy');
  return {
    idleTimeoutSeconds: count(fields['idle_timeout_seconds'], 'policy.idle_timeout_seconds'),
    hardTtlSeconds: count(fields['hard_ttl_seconds'], 'policy.hard_ttl_seconds'),
  };
}

function count(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong(field);
}

function adjustments(value: unknown): readonly Adjusted[] {
  if (!Array.isArray(value) || value.length > MOST_ADJUSTMENTS) throw wrong('adjustments');
  return value.map((one) => {
    const { field, requested, granted } = record(one, 'adjustments');
    return {
      field: short(field),
      requested: typeof requested === 'number' ? requested : short(requested),
      granted: granted === null || typeof granted === 'number' ? granted : short(granted),
    };
  });
}

function short(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= MOST_WORD_CHARACTERS) {
    return value;
  }
  throw wrong('adjustments');
}

/** The value is not repeated: it may be a token. */
function wrong(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the server's answer: ${field} is of another form`, {
    details: { field },
  });
}
