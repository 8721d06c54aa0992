/** Token exchange (RFC 8693): an agent acts for a delegator with no more than it was given; a trusted CI becomes a service. */
import type { TokenEndpointGrantContext } from 'oidc-provider';
import { type AccessClaims, type Act, accessClaims } from '../../protocol/claims.js';
import { AilsdError } from '../../protocol/errors.js';
import { ACCESS_TOKEN_SECONDS } from '../../protocol/lifetimes.js';
import { parse } from '../../protocol/parse.js';
import { formatScopes, parseScopes, type Scope } from '../../protocol/scopes.js';
import { GRANT_TYPES, TOKEN_TYPE_URIS } from '../../protocol/shapes/issuer.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import type { AccessTokens, Delegation } from './access-tokens.js';
import { allowedScopes, tenantOf } from './client-metadata.js';
import type { OidcLibrary } from './load-library.js';
import type { Admitted, Workloads } from './workloads.js';

export const EXCHANGE_PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'audience',
  'resource',
  'scope',
] as const;

export interface TokenExchangeParts {
  readonly library: OidcLibrary;
  readonly db: Db;
  readonly tokens: AccessTokens;
  readonly workloads: Workloads;
  readonly audience: string;
  readonly resource: string;
}

interface Outcome {
  readonly subject: string;
  readonly scopes: readonly Scope[];
  readonly expiresAtSeconds: number;
  readonly grantId: string | undefined;
  readonly delegation: Delegation;
}

export class TokenExchange {
  readonly #parts: TokenExchangeParts;

  constructor(parts: TokenExchangeParts) {
    this.#parts = parts;
  }

  async handle(ctx: TokenEndpointGrantContext): Promise<void> {
    this.#checkTarget(ctx);
    const kind = this.#text(ctx, 'subject_token_type');
    const token = this.#text(ctx, 'subject_token');
    const nowSeconds = Math.floor((await this.#parts.db.now()) / 1000);
    const outcome =
      kind === TOKEN_TYPE_URIS.idToken
        ? await this.#fromIdentity(ctx, token, nowSeconds)
        : kind === TOKEN_TYPE_URIS.accessToken
          ? await this.#fromAccess(ctx, token, nowSeconds)
          : this.#refuse('that kind of subject_token is not exchanged here');
    await this.#answer(ctx, outcome, nowSeconds);
  }

  async #fromAccess(
    ctx: TokenEndpointGrantContext,
    token: string,
    nowSeconds: number,
  ): Promise<Outcome> {
    const { claims: subject, grantId } = await this.#checked(token, 'subject_token');
    const actor = await this.#actor(ctx);
    for (const one of [subject, ...actor.madeOf]) this.#checkTenant(ctx, one);
    const act = {
      ...actor.act,
      ...(subject.act !== undefined && { act: subject.act }),
    };
    const held = parseScopes(subject.scope);
    return {
      subject: subject.sub,
      scopes: this.#narrowed(
        ctx,
        held.filter((scope) => allowedScopes(ctx.oidc.client).includes(scope)),
      ),
      expiresAtSeconds: Math.min(subject.exp, nowSeconds + ACCESS_TOKEN_SECONDS),
      grantId,
      delegation: {
        principal: 'agent',
        tenant: subject.tenant,
        act: this.#notTooDeep(subject, act),
        threads: subject.threads,
        madeOf: [subject, ...actor.madeOf],
      },
    };
  }

  async #fromIdentity(
    ctx: TokenEndpointGrantContext,
    token: string,
    nowSeconds: number,
  ): Promise<Outcome> {
    const { errors } = this.#parts.library;
    const admitted = await this.#admit(token);
    if (admitted.kind === 'malformed')
      return this.#refuse('the subject_token is not an ID token of another system');
    if (admitted.kind === 'refused') throw new errors.InvalidGrant(admitted.why);
    const { trust } = admitted;
    if (admitted.expiresAtSeconds <= nowSeconds) throw new errors.InvalidGrant('over');
    return {
      subject: trust.clientId,
      scopes: this.#narrowed(ctx, admitted.scopes),
      expiresAtSeconds: Math.min(admitted.expiresAtSeconds, nowSeconds + ACCESS_TOKEN_SECONDS),
      grantId: undefined,
      delegation: {
        principal: 'service',
        tenant: trust.tenant,
        clientId: trust.clientId,
        trustId: trust.id,
      },
    };
  }

  async #admit(token: string): Promise<Admitted> {
    try {
      return await this.#parts.workloads.admit(token);
    } catch (cause) {
      if (!(cause instanceof AilsdError)) throw cause;
      const { TemporarilyUnavailable } = this.#parts.library.errors;
      throw new TemporarilyUnavailable('the keys of the other issuer cannot be had', { cause });
    }
  }

  /** RFC 8693 section 2.1: who acts is told by the actor's own token, or is the client itself. */
  async #actor(
    ctx: TokenEndpointGrantContext,
  ): Promise<{ readonly act: Act; readonly madeOf: readonly AccessClaims[] }> {
    const { client, params } = ctx.oidc;
    if (params['actor_token'] === undefined) {
      if (params['actor_token_type'] !== undefined)
        this.#refuse('actor_token_type without actor_token');
      return { act: { sub: client.clientId, client_id: client.clientId }, madeOf: [] };
    }
    if (params['actor_token_type'] !== TOKEN_TYPE_URIS.accessToken) {
      this.#refuse('an actor_token is an access token');
    }
    const { claims } = await this.#checked(this.#text(ctx, 'actor_token'), 'actor_token');
    return { act: { sub: claims.sub, client_id: claims.client_id }, madeOf: [claims] };
  }

  /** A token is of use to the clients of its own tenant, and to the one it was given to. */
  #checkTenant({ oidc: { client } }: TokenEndpointGrantContext, claims: AccessClaims): void {
    if (tenantOf(client) === claims.tenant || client.clientId === claims.client_id) return;
    throw new this.#parts.library.errors.InvalidGrant('a token of another tenant');
  }

  async #checked(token: string, name: string) {
    const checked = await this.#parts.tokens.check(token);
    switch (checked.kind) {
      case 'active':
        return checked;
      case 'malformed':
        return this.#refuse(`the ${name} is not an access token`);
      case 'foreign':
      case 'over':
        throw new this.#parts.library.errors.InvalidGrant(`${name}: ${checked.kind}`);
    }
  }

  /** Nothing asked for: all that is held. A word that is not held is a wish for more. */
  #narrowed(ctx: TokenEndpointGrantContext, held: readonly Scope[]): readonly Scope[] {
    const { scope } = ctx.oidc.params;
    if (scope === undefined) return held;
    const wider = scope
      .split(' ')
      .filter((word) => word !== '' && !held.some((one) => one === word));
    if (wider.length === 0) return parseScopes(scope);
    throw new this.#parts.library.errors.InvalidScope('an exchange only narrows', wider.join(' '));
  }

  /** Checked by the schema that every reader of the token will apply. */
  #notTooDeep(subject: AccessClaims, act: Act): Act {
    const parsed = parse(
      accessClaims,
      { ...subject, principal: 'agent', act },
      'INVALID_REQUEST',
      '',
    );
    if (!parsed.ok) this.#refuse('the chain of delegations is too long');
    return act;
  }

  #checkTarget(ctx: TokenEndpointGrantContext): void {
    const { params } = ctx.oidc;
    const { audience, resource, library } = this.#parts;
    const asked = [params['audience'], params['resource']]
      .flat()
      .filter((one) => one !== undefined);
    if (asked.some((one) => one !== audience && one !== resource)) {
      throw new library.errors.InvalidTarget('tokens are issued for this service only');
    }
    const wanted = params['requested_token_type'];
    if (wanted !== undefined && wanted !== TOKEN_TYPE_URIS.accessToken && wanted !== JWT_TYPE) {
      this.#refuse('only access tokens are issued');
    }
  }

  async #answer(
    ctx: TokenEndpointGrantContext,
    outcome: Outcome,
    nowSeconds: number,
  ): Promise<void> {
    const { client, provider } = ctx.oidc;
    const { audience, resource, tokens, db } = this.#parts;
    const scope = formatScopes(outcome.scopes);
    const expiresIn = outcome.expiresAtSeconds - nowSeconds;
    const token = new provider.AccessToken({
      client,
      accountId: outcome.subject,
      grantId: outcome.grantId ?? '',
      gty: GRANT_TYPES.tokenExchange,
      scope,
      expiresIn,
      exp: outcome.expiresAtSeconds,
    });
    token.resourceServer = new provider.ResourceServer(resource, {
      audience,
      scope,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'RS256' } },
    });
    tokens.delegate(token, outcome.delegation);
    const value = await token.save();
    await new Audit(db).record({
      event: 'token_exchange',
      subject: outcome.subject,
      actor: outcome.delegation.act?.sub,
      tenant: outcome.delegation.tenant,
      clientId: client.clientId,
      details: { scope },
    });
    ctx.body = {
      access_token: value,
      issued_token_type: TOKEN_TYPE_URIS.accessToken,
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope,
    };
  }

  #text(ctx: TokenEndpointGrantContext, name: string): string {
    const value = ctx.oidc.params[name];
    if (typeof value === 'string' && value !== '') return value;
    return this.#refuse(`${name} is missing`);
  }

  #refuse(description: string): never {
    throw new this.#parts.library.errors.InvalidRequest(description);
  }
}

const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt';
