/** What became of a request to an issuer: granted, refused by name, or no usable answer. The words of openid-client end here. */
import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { AilsdError } from '../../protocol/errors.js';
import type { Tokens } from './tokens.js';

export type GrantOutcome =
  | { readonly kind: 'granted'; readonly tokens: Tokens }
  | Refusal
  | { readonly kind: 'failed'; readonly failure: AilsdError };

/** The issuer said no (RFC 6749 section 5.2, RFC 8628 section 3.5). */
export interface Refusal {
  readonly kind: 'refused';
  /** The issuer's word, e.g. `invalid_grant`. */
  readonly error: string;
  readonly description: string | undefined;
}

export function outcomeOf(error: unknown): Refusal | { kind: 'failed'; failure: AilsdError } {
  if (error instanceof ResponseBodyError && error.status < 500) {
    const { error: word, error_description: description } = error;
    if (error.status === 429) return { kind: 'failed', failure: answered(error.response) };
    return { kind: 'refused', error: cut(word), description: description && cut(description) };
  }
  if (error instanceof AuthorizationResponseError) {
    const { error: word, error_description: description } = error;
    return { kind: 'refused', error: cut(word), description: description && cut(description) };
  }
  // A 401 with a challenge: the client itself is not accepted.
  if (error instanceof WWWAuthenticateChallengeError) {
    return { kind: 'refused', error: 'invalid_client', description: undefined };
  }
  return { kind: 'failed', failure: failureOf(error) };
}

/** An error of ours for anything that openid-client throws; causes that could hold a token are left out. */
export function failureOf(error: unknown): AilsdError {
  const inner = innermost(error);
  if (inner instanceof AilsdError) return asLoginFailure(inner);
  if (inner instanceof Response) return answered(inner);
  if (inner instanceof ResponseBodyError) return answered(inner.response);
  const internal = error instanceof Error ? error.message : String(error);
  return new AilsdError('LOGIN_FAILED', 'the server answered what no issuer answers', { internal });
}

/** The same for an answer of an endpoint that is asked without openid-client. */
export function failureOfAnswer(response: Response, body: unknown): AilsdError {
  const word = member(body, 'error');
  if (word === undefined || response.status >= 500 || response.status === 429) {
    return answered(response);
  }
  const refusal = { error: word, description: member(body, 'error_description') };
  return new AilsdError('LOGIN_FAILED', `the server refused the login (${refusalText(refusal)})`, {
    details: { oauth_error: word },
  });
}

/** The sentence for a refusal that nothing better is known of. */
export function refusalText({ error, description }: Omit<Refusal, 'kind'>): string {
  return description === undefined ? error : `${error}: ${description}`;
}

function answered(response: Response): AilsdError {
  const { status } = response;
  const details = { status };
  if (status === 429) {
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    const told = Number.isFinite(seconds) && seconds > 0;
    return new AilsdError('RATE_LIMITED', 'the server asks to slow down', {
      details: told ? { ...details, retry_after_ms: seconds * 1000 } : details,
    });
  }
  if (status >= 500) {
    return new AilsdError('UNREACHABLE', `the server answered ${status}`, {
      details: { ...details, reason: 'gateway' },
    });
  }
  return new AilsdError('LOGIN_FAILED', `the server answered ${status}, which no issuer answers`, {
    details,
  });
}

/** An answer that breaks HTTP, or has no end, is no issuer's; of a server that is not there nothing is known. */
function asLoginFailure(error: AilsdError): AilsdError {
  if (error.code !== 'PROTOCOL_MISMATCH') return error;
  return new AilsdError('LOGIN_FAILED', error.message, { cause: error, details: error.details });
}

/** openid-client wraps what it was thrown, and the answer it did not like, as causes. */
function innermost(error: unknown): unknown {
  let inner = error;
  for (let depth = 0; depth < MOST_CAUSES; depth += 1) {
    if (!(inner instanceof ClientError) && !(inner instanceof TypeError)) break;
    if (inner.cause === undefined) break;
    inner = inner.cause;
  }
  return inner;
}

const MOST_CAUSES = 4;
const MOST_CHARACTERS = 400;

function member(body: unknown, name: string): string | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const value: unknown = Object.getOwnPropertyDescriptor(body, name)?.value;
  return typeof value === 'string' && value !== '' ? cut(value) : undefined;
}

function cut(text: string): string {
  return text.slice(0, MOST_CHARACTERS);
}
