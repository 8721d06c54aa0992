/** Sign-in through another OpenID issuer, a company's say: authorization code with PKCE, state and nonce (RFC 9700). */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import type { Scope } from '../../protocol/scopes.js';
import type { Db } from '../store/db.js';
import { OidcPayloads } from '../store/oidc-payloads.js';
import { type User, Users } from '../store/users.js';
import { hashId } from './device-codes.js';
import type { Fields } from './fields.js';
import { RemoteIssuer } from './remote-issuer.js';
import { fetchJson } from './remote-json.js';

export interface UpstreamConfig {
  /** The issuer as it calls itself; its discovery document is below it. */
  readonly issuer: string;
  readonly clientId: string;
  /** Without it we are a public client there. */
  readonly clientSecret?: Secret | undefined;
  /** What people call it. */
  readonly name: string;
  /** What whoever signs in for the first time gets; without it, only people with an account made before get in. */
  readonly newAccounts?: { readonly tenant: string; readonly scopes: readonly Scope[] } | undefined;
}

export type UpstreamOutcome =
  | { readonly kind: 'user'; readonly user: User; readonly next: string }
  /** Not begun in this browser, too late, or a second time. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly says: string };

export const CALLBACK_PATH = '/sign-in/callback';

const KIND = 'UpstreamLogin';
const LIFE_MS = 600_000;

export interface UpstreamLoginParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly url: string;
  readonly config: UpstreamConfig;
}

export class UpstreamLogin {
  readonly #parts: UpstreamLoginParts;
  readonly #payloads: OidcPayloads;
  readonly #issuer: RemoteIssuer;

  constructor(parts: UpstreamLoginParts) {
    this.#parts = parts;
    this.#payloads = new OidcPayloads(parts.db);
    this.#issuer = new RemoteIssuer(parts.config.issuer, parts);
  }

  get name(): string {
    return this.#parts.config.name;
  }

  /** Where the form that begins may lead. While discovery fails the issuer's own origin is the best guess. */
  async formTarget(): Promise<string> {
    const url = await this.#issuer
      .endpoint('authorization_endpoint')
      .catch(() => this.#parts.config.issuer);
    return new URL(url).origin;
  }

  /** Where to send the browser. What comes back counts only in the same browser, once, for ten minutes. */
  async begin(visitId: string, next: string): Promise<string> {
    const endpoint = await this.#issuer.endpoint('authorization_endpoint');
    const [state, nonce, verifier] = [random(), random(), random()];
    await this.#payloads.upsert({
      kind: KIND,
      id: hashId(`${visitId} ${state}`),
      payload: { nonce, verifier, next },
      expiresInMs: LIFE_MS,
    });
    const to = new URL(endpoint);
    to.search = new URLSearchParams({
      ...Object.fromEntries(to.searchParams),
      response_type: 'code',
      client_id: this.#parts.config.clientId,
      redirect_uri: this.#redirectUri,
      scope: 'openid profile email',
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString();
    return to.href;
  }

  async finish(visitId: string, { searchParams }: URL): Promise<UpstreamOutcome> {
    const id = hashId(`${visitId} ${searchParams.get('state') ?? ''}`);
    const begun = await this.#payloads.find(KIND, id);
    const { nonce, verifier, next } = begun?.payload ?? {};
    if (begun === undefined || begun.isExpired) return { kind: 'unknown' };
    if ((await this.#payloads.consume(KIND, id)).kind !== 'consumed') return { kind: 'unknown' };
    // RFC 9207: an answer of another issuer that we also know.
    const iss = searchParams.get('iss');
    if (iss !== null && iss !== this.#parts.config.issuer) return { kind: 'unknown' };
    const code = searchParams.get('code');
    if (code === null) return { kind: 'refused', says: `${this.name} did not sign you in.` };
    const claims = await this.#redeem(code, String(verifier), String(nonce));
    if (claims === undefined)
      return { kind: 'refused', says: `What ${this.name} answered is not valid.` };
    const user = await this.#userFor(claims);
    if (user === undefined)
      return { kind: 'refused', says: 'You have no account here. Ask an administrator for one.' };
    return { kind: 'user', user, next: String(next) };
  }

  async #redeem(code: string, verifier: string, nonce: string): Promise<Fields | undefined> {
    const { clientId, clientSecret } = this.#parts.config;
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.#redirectUri,
      code_verifier: verifier,
      client_id: clientId,
    });
    const headers: Record<string, string> = {};
    if (clientSecret !== undefined) {
      form.delete('client_id');
      const pair = [clientId, clientSecret.reveal()].map(encodeURIComponent).join(':');
      headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
    }
    const url = await this.#issuer.endpoint('token_endpoint');
    const answer = await fetchJson({ url, form, headers, signal: this.#parts.signal });
    const token = answer['id_token'];
    if (typeof token !== 'string') return undefined;
    return this.#issuer.check(token, { audience: clientId, nonce });
  }

  /** By issuer and subject, never by an e-mail address: those are given to other people. */
  async #userFor(claims: Fields): Promise<User | undefined> {
    const users = new Users(this.#parts.db);
    const upstream = { issuer: this.#parts.config.issuer, subject: String(claims['sub']) };
    const known = await users.findByUpstream(upstream);
    if (known !== undefined) return known.disabledAtMs === undefined ? known : undefined;
    const { newAccounts } = this.#parts.config;
    if (newAccounts === undefined) return undefined;
    const id = `usr_${random().slice(0, 26)}`;
    const wanted = nameFrom(claims);
    for (const name of [wanted, `${wanted}-${id.slice(-6)}`]) {
      if ((await users.add({ id, name, upstream, ...newAccounts })) === 'added') break;
    }
    return users.findByUpstream(upstream);
  }

  get #redirectUri(): string {
    return `${this.#parts.url}${CALLBACK_PATH}`;
  }
}

function nameFrom(claims: Fields): string {
  const candidates = [claims['preferred_username'], claims['email'], claims['sub']];
  const name = candidates.find((one): one is string => typeof one === 'string' && NAME.test(one));
  return name ?? hashId(String(claims['sub'])).slice(0, 16);
}

/** No slash: that divides tenant and name. */
const NAME = /^[^\s/\p{Cc}]{1,128}$/u;

function random(): string {
  return randomBytes(32).toString('base64url');
}
