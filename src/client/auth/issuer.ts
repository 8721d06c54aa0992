/** One issuer as one client of it sees it: each method is one request, and what came of it is a value. */
import {
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  customFetch,
  genericGrantRequest,
  None,
  type ServerMetadata,
  tokenRevocation,
} from 'openid-client';
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import { tokenAnswer } from '../../protocol/shapes/issuer.js';
import { createFetch } from '../http/fetch-adapter.js';
import type { Http } from '../http/http.js';
import { discover } from './discovery.js';
import { type GrantOutcome, outcomeOf } from './grant-outcome.js';
import { insecureFor } from './insecure.js';
import { toTokens } from './tokens.js';

export interface IssuerOptions {
  /** The issuer is the server: its URL. */
  readonly url: string;
  readonly clientId: string;
  /** Absent for a public client. */
  readonly clientSecret?: Secret | undefined;
  readonly http: Http;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

export interface GrantOptions {
  /** What an answer that names no scopes grants. */
  readonly scopes: readonly string[];
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export async function connectIssuer(options: IssuerOptions): Promise<Issuer> {
  return new Issuer(options, await discover(options.http, options.url, options.signal));
}

export class Issuer {
  readonly #options: IssuerOptions;
  readonly metadata: ServerMetadata;

  constructor(options: IssuerOptions, metadata: ServerMetadata) {
    this.#options = options;
    this.metadata = metadata;
  }

  get url(): string {
    return this.#options.url;
  }

  get clientId(): string {
    return this.#options.clientId;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get http(): Http {
    return this.#options.http;
  }

  /**
   * Asks the token endpoint once. An abort is thrown as the signal's reason; everything else is an outcome.
   */
  async grant(
    grantType: string,
    parameters: Readonly<Record<string, string>>,
    options: GrantOptions,
  ): Promise<GrantOutcome> {
    return this.outcome(options, (configuration) =>
      genericGrantRequest(configuration, grantType, parameters),
    );
  }

  /** The same for a grant that openid-client knows better how to ask for. */
  async outcome(
    { scopes, signal, headers }: GrantOptions,
    request: (configuration: Configuration) => Promise<unknown>,
  ): Promise<GrantOutcome> {
    let answer: unknown;
    try {
      answer = await request(this.configuration(signal, headers));
    } catch (error) {
      signal?.throwIfAborted();
      return outcomeOf(error);
    }
    const parsed = parse(tokenAnswer, answer, 'LOGIN_FAILED', "the server's answer: ");
    if (!parsed.ok) return { kind: 'failed', failure: parsed.error };
    return { kind: 'granted', tokens: toTokens(parsed.value, scopes, this.clock.now()) };
  }

  /** Ends a token and, for a refresh token, the whole login (RFC 7009). Throws where that is not known to have worked. */
  async revoke(
    token: Secret,
    kind: 'refresh_token' | 'access_token',
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.metadata.revocation_endpoint === undefined) {
      throw new AilsdError('LOGIN_FAILED', 'the server has no way to end a login');
    }
    try {
      const parameters = { token_type_hint: kind };
      await tokenRevocation(this.configuration(signal), token.reveal(), parameters);
    } catch (error) {
      signal?.throwIfAborted();
      const outcome = outcomeOf(error);
      if (outcome.kind === 'failed') throw outcome.failure;
      throw new AilsdError('LOGIN_FAILED', `the server did not end the login (${outcome.error})`);
    }
  }

  /** Made for each request, so that each has its own signal. */
  configuration(signal?: AbortSignal, extra?: GrantOptions['headers']): Configuration {
    const { url, clientId, http } = this.#options;
    const configuration = new Configuration(this.metadata, clientId, undefined, this.#proof());
    const fetch = createFetch(http);
    // Time limits are our HTTP's own, phase by phase.
    configuration[customFetch] = (address, { method, headers, body }) =>
      fetch(address, { method, headers: { ...headers, ...extra }, body, signal });
    for (const allow of insecureFor(url)) allow(configuration);
    return configuration;
  }

  /** How a client with a secret proves itself: as the issuer says, else as the RFC says by default. */
  #proof(): ReturnType<typeof None> {
    const { clientSecret } = this.#options;
    if (clientSecret === undefined) return None();
    const methods = this.metadata.token_endpoint_auth_methods_supported;
    const inBody = methods !== undefined && !methods.includes('client_secret_basic');
    return inBody
      ? ClientSecretPost(clientSecret.reveal())
      : ClientSecretBasic(clientSecret.reveal());
  }
}
