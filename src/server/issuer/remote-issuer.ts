/** Another OpenID issuer: found by discovery, its keys kept for a while, its ID tokens checked (Core section 3.1.3.7). */
import type { KeyObject } from 'node:crypto';
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import { LEEWAY_SECONDS } from '../../protocol/lifetimes.js';
import type { Fields } from './fields.js';
import { decodeJwt, isSignedBy, SIGNATURE_ALGORITHMS, toVerificationKeys } from './jwt.js';
import { fetchJson, isSafeUrl } from './remote-json.js';

/** Discovery and keys are asked for anew after this. */
export const REMOTE_AGE_MS = 600_000;

/** An unknown key is asked for at most this often, whatever tokens come in. */
export const REMOTE_GAP_MS = 30_000;

export interface Expected {
  readonly audience: string;
  readonly nonce?: string | undefined;
}

export class RemoteIssuer {
  readonly #issuer: string;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #known:
    | {
        readonly metadata: Fields;
        readonly keys: ReadonlyMap<string, KeyObject>;
        readonly at: number;
      }
    | undefined;
  #asking: Promise<void> | undefined;
  #lastAskAt = Number.NEGATIVE_INFINITY;

  constructor(issuer: string, parts: { readonly clock: Clock; readonly signal: AbortSignal }) {
    this.#issuer = issuer;
    this.#clock = parts.clock;
    this.#signal = parts.signal;
  }

  /** An endpoint its discovery document names. */
  async endpoint(name: string): Promise<string> {
    await this.#fresh();
    const url = this.#known?.metadata[name];
    if (typeof url === 'string' && isSafeUrl(url)) return url;
    throw new AilsdError('BACKEND_UNAVAILABLE', 'the other issuer has no such endpoint', {
      internal: name,
    });
  }

  /** The claims of a genuine ID token that is in force; `undefined` for any other. Rejects while the issuer can't be asked. */
  async check(token: string, { audience, nonce }: Expected): Promise<Fields | undefined> {
    const jwt = decodeJwt(token);
    if (jwt === undefined || jwt.payload['iss'] !== this.#issuer) return undefined;
    const key = await this.#key(jwt.header['kid']);
    if (key === undefined || !isSignedBy(jwt, key, SIGNATURE_ALGORITHMS)) return undefined;
    const { aud, exp, iat, nbf, azp, sub } = jwt.payload;
    const nowSeconds = this.#clock.now() / 1000;
    const audiences = Array.isArray(aud) ? aud : [aud];
    if (!audiences.includes(audience)) return undefined;
    if (audiences.length > 1 && azp !== undefined && azp !== audience) return undefined;
    if (typeof exp !== 'number' || exp <= nowSeconds - LEEWAY) return undefined;
    if (typeof iat !== 'number' || iat > nowSeconds + LEEWAY) return undefined;
    if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= nowSeconds + LEEWAY))
      return undefined;
    if (nonce !== undefined && jwt.payload['nonce'] !== nonce) return undefined;
    return typeof sub === 'string' && sub !== '' ? jwt.payload : undefined;
  }

  async #key(kid: unknown): Promise<KeyObject | undefined> {
    await this.#fresh();
    const find = () => {
      const keys = this.#known?.keys;
      if (typeof kid === 'string') return keys?.get(kid);
      return keys?.size === 1 ? [...keys.values()][0] : undefined;
    };
    const found = find();
    if (found !== undefined || this.#clock.monotonic() - this.#lastAskAt < REMOTE_GAP_MS)
      return found;
    await this.#ask();
    return find();
  }

  async #fresh(): Promise<void> {
    if (this.#known !== undefined && this.#clock.monotonic() - this.#known.at < REMOTE_AGE_MS)
      return;
    try {
      await this.#ask();
    } catch (error) {
      // What was true ten minutes ago serves while the other is away.
      if (this.#known === undefined) throw error;
    }
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#discover().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #discover(): Promise<void> {
    this.#lastAskAt = this.#clock.monotonic();
    const base = this.#issuer.replace(/\/$/, '');
    const metadata = await fetchJson({
      url: `${base}/.well-known/openid-configuration`,
      signal: this.#signal,
    });
    // Discovery section 4.3: else one issuer could speak for another.
    if (metadata['issuer'] !== this.#issuer) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the other issuer calls itself differently');
    }
    const jwks = await fetchJson({ url: String(metadata['jwks_uri']), signal: this.#signal });
    this.#known = { metadata, keys: toVerificationKeys(jwks), at: this.#clock.monotonic() };
  }
}

const LEEWAY = LEEWAY_SECONDS.access;
