/** A CI job proves who it is with its system's identity token and gets one of ours for it (RFC 8693): no stored secret. */
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { GRANT_TYPES, TOKEN_TYPE_URIS } from '../../protocol/shapes/issuer.js';
import type { Http } from '../http/http.js';
import { refusalText } from './grant-outcome.js';
import type { Issuer } from './issuer.js';
import type { Tokens } from './tokens.js';

/** `scopes` may be empty: the job then gets what the issuer's rule for it allows. */
export async function exchangeIdentity(
  issuer: Issuer,
  identity: Secret,
  scopes: readonly string[],
  signal?: AbortSignal,
): Promise<Tokens> {
  const parameters = {
    subject_token: identity.reveal(),
    subject_token_type: TOKEN_TYPE_URIS.idToken,
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
  };
  const outcome = await issuer.grant(GRANT_TYPES.tokenExchange, parameters, { scopes, signal });
  if (outcome.kind === 'granted') return outcome.tokens;
  if (outcome.kind === 'failed') throw outcome.failure;
  throw new AilsdError(
    'LOGIN_FAILED',
    `the server does not accept the identity token (${refusalText(outcome)})`,
    {
      details: { oauth_error: outcome.error },
      hint: 'ask an admin for a workload trust rule that matches this job',
    },
  );
}

/** What GitHub tells a job that may ask for an identity token. */
export interface GithubIdentity {
  /** ACTIONS_ID_TOKEN_REQUEST_URL */
  readonly requestUrl: string;
  /** ACTIONS_ID_TOKEN_REQUEST_TOKEN */
  readonly requestToken: Secret;
}

/** Asks GitHub for a token that only the server at `audience` accepts. */
export async function fetchGithubIdentity(
  http: Http,
  { requestUrl, requestToken }: GithubIdentity,
  audience: string,
  signal?: AbortSignal,
): Promise<Secret> {
  const url = new URL(requestUrl);
  url.searchParams.set('audience', audience);
  const headers = {
    accept: 'application/json',
    authorization: `bearer ${requestToken.reveal()}`,
  };
  const { status, body } = await http.request({
    url: url.href,
    headers,
    signal,
    maxBytes: MOST_ANSWER_BYTES,
  });
  const token = status === 200 ? tokenIn(body) : undefined;
  if (token !== undefined) return new Secret(token);
  throw new AilsdError('LOGIN_FAILED', `GitHub gave no identity token (it answered ${status})`, {
    details: { status },
    hint: 'give the job `permissions: id-token: write`',
  });
}

const MOST_ANSWER_BYTES = 64 * 1024;

function tokenIn(body: Uint8Array): string | undefined {
  try {
    const answer: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    if (typeof answer !== 'object' || answer === null || !('value' in answer)) return undefined;
    return typeof answer.value === 'string' && answer.value !== '' ? answer.value : undefined;
  } catch {
    return undefined;
  }
}
