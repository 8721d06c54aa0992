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
import { formatScopes } from '../../protocol/scopes.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { OidcPayloads, type StoredPayload } from '../store/oidc-payloads.js';
import { WorkloadTrust } from '../store/workload-trust.js';
import { findSignedInUser, userOf } from './accounts.js';
import { allowedScopes, tenantOf } from './client-metadata.js';
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
  /** The tokens it was made of: it is good only while they are. */
  readonly madeOf?: readonly AccessClaims[] | undefined;
  /** The rule that let it in: likewise. */
  readonly trustId?: string | undefined;
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
  readonly #trust: WorkloadTrust;
  readonly #delegations = new WeakMap<object, Delegation>();

  constructor(parts: AccessTokensParts) {
    this.#parts = parts;
    this.#payloads = new OidcPayloads(parts.db);
    this.#clients = new Clients(parts.db);
    this.#trust = new WorkloadTrust(parts.db);
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
    // RFC 6749 section 3.3: who asks for nothing in particular gets what its row allows.
    if (token.kind === 'ClientCredentials' && ctx.oidc.params?.['scope'] === undefined)
      token.scope = formatScopes(token.client === undefined ? [] : allowedScopes(token.client));
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
      payload: {
        clientId: payload['client_id'],
        madeOf: delegation.madeOf?.map((claims) => claims.jti) ?? [],
        trustId: delegation.trustId,
      },
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
    if (jwt.payload['iss'] !== this.#parts.issuer || typeof kid !== 'string')
      return { kind: 'foreign' };
    const key = await this.#parts.keys.verifier(kid);
    if (key === undefined || !isSignedBy(jwt, key, [alg])) return { kind: 'foreign' };
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
    if (record === undefined || !(await this.#stands(record))) return { kind: 'over' };
    const { grantId } = record;
    for (let act = claims.act; act !== undefined; act = act.act)
      if (!(await this.#mayAct(act.client_id ?? act.sub))) return { kind: 'over' };
    if (grantId !== undefined && !(await this.#isLoggedIn(claims.sub, grantId)))
      return { kind: 'over' };
    return { kind: 'active', claims, grantId };
  }

  /** A record, and all those it was made of. The chain has an end: `act` limits how often a token is exchanged. */
  async #stands({ payload }: StoredPayload): Promise<boolean> {
    const { clientId, madeOf, trustId } = payload;
    if (typeof clientId === 'string' && !(await this.#mayAct(clientId))) return false;
    if (typeof trustId === 'string' && !(await this.#trust.has(trustId))) return false;
    for (const jti of Array.isArray(madeOf) ? madeOf : []) {
      const record = await this.#payloads.find(KIND, String(jti));
      if (record === undefined || !(await this.#stands(record))) return false;
    }
    return true;
  }

  /** A service that a rule of `workload_trust` names has no row. */
  async #mayAct(clientId: string): Promise<boolean> {
    return (await this.#clients.find(clientId))?.disabledAtMs === undefined;
  }

  /** A token that was being made while its family ended has a record, but nothing it hangs on. */
  async #isLoggedIn(userId: string, grantId: string): Promise<boolean> {
    const grant = await this.#payloads.find('Grant', grantId);
    if (grant === undefined) return false;
    return (await findSignedInUser(this.#parts.db, userId, grant.createdAtMs)) !== undefined;
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
