/** The issuer's public keys, kept at hand: asked for rarely, used also while the issuer is away. jose lives in this room. */
import { type CryptoKey, importJWK } from 'jose';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import { jwksAnswer } from '../../protocol/shapes/issuer.js';

/** Where keys come from: the issuer's `/jwks`, or its own table when it runs in this process. */
export interface JwksSource {
  /** A JWK set as anybody would get it; what is in it is not trusted to be well formed. */
  fetch(signal: AbortSignal): Promise<unknown>;
  /** How long it wants to be left alone between two questions, whatever is sent to us; 30 s unless it says less. */
  readonly gapMs?: number | undefined;
}

const FETCH_GAP_MS = 30_000;

/** The age at which keys are asked for anew, also while none is missing. */
const MAX_AGE_MS = 30_000;

/** A question that may be asked this soon is waited for: a key may be newer than the last answer. */
const PATIENCE_MS = 1_000;

/** Without any key nobody gets in, so the first ones are asked for more often, each time after twice the wait. */
const FIRST_RETRY_MS = 1_000;
const FETCH_TIMEOUT_MS = 5_000;

/** 2048 bits in base64url; a shorter RSA key is not one. */
const SHORTEST_MODULUS = 342;

export class JwksCache {
  readonly #source: JwksSource;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #gapMs: number;
  #keys: ReadonlyMap<string, CryptoKey> | undefined;
  #fetching: Promise<void> | undefined;
  /** Both by the monotonic clock. */
  #nextFetchAt = Number.NEGATIVE_INFINITY;
  #staleAt = Number.NEGATIVE_INFINITY;
  #firstRetryMs = FIRST_RETRY_MS;

  constructor(parts: { source: JwksSource; clock: Clock; logger: Logger }) {
    this.#source = parts.source;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#gapMs = Math.min(parts.source.gapMs ?? FETCH_GAP_MS, FETCH_GAP_MS);
  }

  /** The key of this name, if the issuer has it. Rejects only while no keys are known at all. */
  async key(kid: string): Promise<CryptoKey | undefined> {
    const known = this.#keys?.get(kid);
    if (known !== undefined) {
      // A key the issuer gave up is forgotten too, and a new one is known before it is needed.
      if (this.#clock.monotonic() >= this.#staleAt) void this.#refresh();
      return known;
    }
    await this.#refreshIfAllowed();
    if (this.#keys === undefined) {
      throw new AilsdError('BACKEND_UNAVAILABLE', 'tokens cannot be checked at the moment', {
        internal: 'no keys of the issuer are known',
        details: { retry_after_ms: FIRST_RETRY_MS },
      });
    }
    return this.#keys.get(kid);
  }

  async #refreshIfAllowed(): Promise<void> {
    const waitMs = this.#nextFetchAt - this.#clock.monotonic();
    if (this.#fetching === undefined && waitMs > PATIENCE_MS) return;
    await this.#refresh(waitMs);
  }

  /** One at a time, for everybody who waits. Never rejects: what was known stays. */
  #refresh(waitMs = 0): Promise<void> {
    this.#fetching ??= this.#fetch(waitMs).finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetch(waitMs: number): Promise<void> {
    if (waitMs > 0) await this.#clock.sleep(waitMs);
    const now = this.#clock.monotonic();
    this.#nextFetchAt = now + this.#gapMs;
    this.#staleAt = now + MAX_AGE_MS;
    try {
      this.#keys = await importKeys(await this.#ask());
      this.#firstRetryMs = FIRST_RETRY_MS;
    } catch (error) {
      this.#logger.warn('the keys of the issuer cannot be had', {
        error,
        keys: this.#keys?.size ?? 0,
      });
      if (this.#keys !== undefined) return;
      this.#nextFetchAt = this.#clock.monotonic() + this.#firstRetryMs;
      this.#firstRetryMs = Math.min(this.#firstRetryMs * 2, FETCH_GAP_MS);
    }
  }

  async #ask(): Promise<unknown> {
    const late = new AbortController();
    const done = new AbortController();
    const timer = this.#clock.sleep(FETCH_TIMEOUT_MS, done.signal).then(
      () => {
        const error = new Error(`no answer within ${FETCH_TIMEOUT_MS} ms`);
        late.abort(error);
        throw error;
      },
      () => undefined,
    );
    try {
      return await Promise.race([this.#source.fetch(late.signal), timer.then(() => undefined)]);
    } finally {
      done.abort();
    }
  }
}

/** Only the public half of RSA keys that are for signatures; the rest of a set may be anything. */
async function importKeys(set: unknown): Promise<ReadonlyMap<string, CryptoKey>> {
  const parsed = parse(jwksAnswer, set, 'BACKEND_UNAVAILABLE', 'the keys of the issuer: ');
  if (!parsed.ok) throw parsed.error;
  const keys = new Map<string, CryptoKey>();
  for (const { kty, kid, alg = 'RS256', use = 'sig', n = '', e = '' } of parsed.value.keys) {
    if (kty !== 'RSA' || alg !== 'RS256' || use !== 'sig') continue;
    if (kid === undefined || n.length < SHORTEST_MODULUS) continue;
    const key = await importJWK({ kty, n, e, alg }, 'RS256');
    if (!(key instanceof Uint8Array)) keys.set(kid, key);
  }
  return keys;
}
