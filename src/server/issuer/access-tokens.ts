/** Our access tokens (RFC 9068): which claims they carry, that each is recorded when issued, and whether one is still good. */
import type {
  AccessToken,
  ClientCredentials,
  JWTStructured,
  KoaContextWithOIDC,
} from 'oidc-provider';
import type { Logger } from '../../base/logger.js';
import {
  type AccessClaims,
  type Act,
  accessClaims,
  DEFAULT_TENANT,
  parseClaims,
  TOKEN_HEADERS,
} from '../../protocol/claims.js';
import type { RandomFill } from '../../protocol/ids.js';
import { newId } from '../../protocol/ids.js';
import { ISSUED_AHEAD_SECONDS } from '../../protocol/lifetimes.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { OidcPayloads } from '../store/oidc-payloads.js';
import { findEnabledUser, userOf } from './accounts.js';
import { tenantOf } from './client-metadata.js';
import { decodeJwt, isSignedBy } from './jwt.js';
import type { KeyRing } from './key-ring.js';
import { pinnedThreads } from './pins.js';

/** What an exchange knows of the token it makes, beyond what the library does. */
export interface Delegation {
  readonly principal: AccessClaims['principal'];
  readonly tenant: string;
  readonly act?: Act | undefined;
  readonly threads?: readonly string[] | undefined;
  /** The `client_id` it carries, where that is not the asking client's. */
  readonly clientId?: string | undefined;
}

/** Why a token is not accepted; `exchange` answers each differently. */
export type Checked =
  | { readonly kind: 'active'; readonly claims: AccessClaims; readonly grantId: string | undefined }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'over' };

const KIND = 'AccessToken';

export interface AccessTokensParts {
  readonly db: Db;
  readonly keys: KeyRing;
  readonly issuer: string;
  readonly audience: string;
  readonly random: RandomFill;
  readonly logger: Logger;
}

export class AccessTokens {
  readonly #parts: AccessTokensParts;
  readonly #payloads: OidcPayloads;
  readonly #clients: Clients;
  readonly #delegations = new WeakMap<object, Delegation>();

  constructor(parts: AccessTokensParts) {
    this.#parts = parts;
    this.#payloads = new OidcPayloads(parts.db);
    this.#clients = new Clients(parts.db);
  }

  /** To be said before the token is saved. */
  delegate(token: AccessToken, delegation: Delegation): void {
    this.#delegations.set(token, delegation);
  }

  /** Completes the claims, and records the token: it is good only while its record stands. */
  async complete(
    ctx: KoaContextWithOIDC,
    token: AccessToken | ClientCredentials,
    { payload }: JWTStructured,
  ): Promise<void> {
    const delegation = this.#delegations.get(token) ?? this.#own(ctx, token);
    const jti = newId('token', this.#parts.random);
    Object.assign(payload, {
      jti,
      scope: token.scope ?? '',
      principal: delegation.principal,
      tenant: delegation.tenant,
      ...(delegation.clientId !== undefined && {
        client_id: delegation.clientId,
        sub: delegation.clientId,
      }),
      ...(delegation.act !== undefined && { act: delegation.act }),
      ...(delegation.threads !== undefined && { threads: delegation.threads }),
    });
    await this.#payloads.upsert({
      kind: KIND,
      id: jti,
      payload: {},
      // Empty: what was exchanged for the token of a service hangs on no grant.
      grantId: token.kind === 'AccessToken' && token.grantId !== '' ? token.grantId : undefined,
      expiresInMs: token.expiration * 1000,
    });
    const { sub, client_id, scope } = payload;
    this.#parts.logger.info('token issued', { jti, sub, client_id, scope });
  }

  /** Signature, claims, record, grant and account. */
  async check(token: string): Promise<Checked> {
    const jwt = decodeJwt(token);
    if (jwt === undefined) return { kind: 'malformed' };
    const { alg, typ } = TOKEN_HEADERS.access;
    if (jwt.header['alg'] !== alg || jwt.header['typ'] !== typ) return { kind: 'malformed' };
    const kid = jwt.header['kid'];
    const { verifying } = await this.#parts.keys.current();
    const key = typeof kid === 'string' ? verifying.get(kid) : undefined;
    if (jwt.payload['iss'] !== this.#parts.issuer || key === undefined) return { kind: 'foreign' };
    if (!isSignedBy(jwt, key, [alg])) return { kind: 'foreign' };
    const parsed = parseClaims(accessClaims, jwt.payload);
    if (!parsed.ok || !isFor(parsed.value, this.#parts.audience)) return { kind: 'foreign' };
    return this.#inForce(parsed.value);
  }

  async revoke(jti: string): Promise<void> {
    await this.#payloads.destroy(KIND, jti);
  }

  async #inForce(claims: AccessClaims): Promise<Checked> {
    const nowSeconds = (await this.#parts.db.now()) / 1000;
    if (claims.exp <= nowSeconds || claims.iat > nowSeconds + ISSUED_AHEAD_SECONDS)
      return { kind: 'over' };
    const record = await this.#payloads.find(KIND, claims.jti);
    if (record === undefined) return { kind: 'over' };
    const { grantId } = record;
    // A token that was being made while its family ended has a record, but nothing it hangs on.
    if (grantId !== undefined && (await this.#payloads.find('Grant', grantId)) === undefined)
      return { kind: 'over' };
    const client = await this.#clients.find(claims.client_id);
    if (client?.disabledAtMs !== undefined) return { kind: 'over' };
    const isPerson = grantId !== undefined;
    if (isPerson && (await findEnabledUser(this.#parts.db, claims.sub)) === undefined)
      return { kind: 'over' };
    return { kind: 'active', claims, grantId };
  }

  #own(ctx: KoaContextWithOIDC, token: AccessToken | ClientCredentials): Delegation {
    const user = userOf(ctx);
    if (token.kind === 'ClientCredentials' || user === undefined) {
      const tenant = token.client === undefined ? undefined : tenantOf(token.client);
      return { principal: 'service', tenant: tenant ?? DEFAULT_TENANT };
    }
    const threads = pinnedThreads(ctx.oidc.grant);
    return { principal: 'user', tenant: user.tenant, ...(threads.length > 0 && { threads }) };
  }
}

function isFor({ aud }: AccessClaims, audience: string): boolean {
  return typeof aud === 'string' ? aud === audience : aud.includes(audience);
}
