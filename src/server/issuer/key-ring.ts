/** The issuer's keys, as the store has them: made once, kept over restarts, and read again so that a rotation elsewhere counts. */
import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import type { JWK } from 'oidc-provider';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Db } from '../store/db.js';
import { type IssuerKey, IssuerKeys, type NewKey } from '../store/keys.js';
import { createSigningKey, RETIRED_KEY_SECONDS } from '../tokens/signing-keys.js';

export interface RingState {
  /** Private; the one that signs is first, and those retired follow while what they signed may live. */
  readonly signing: readonly JWK[];
  /** What our tokens are checked with, by `kid`. */
  readonly verifying: ReadonlyMap<string, KeyObject>;
  /** Cookies are signed with the first and accepted with any. */
  readonly cookies: readonly [Secret, ...Secret[]];
  /** Changes when any of it does. */
  readonly version: string;
}

/** How long a rotation that another process did may stay unknown here. */
export const KEYS_MAX_AGE_MS = 2_000;

/** How soon after a read an unknown key makes us read again, whatever tokens come in. */
export const KEYS_MIN_AGE_MS = 100;

/** A session of the pages, the longest that a cookie lives. */
export const COOKIE_SECONDS = 12 * 60 * 60;

export class KeyRing {
  readonly #parts: KeyRingParts;
  readonly #keys: IssuerKeys;
  #state: RingState;
  #readAt: number;
  #reading: Promise<RingState> | undefined;

  private constructor(parts: KeyRingParts, keys: IssuerKeys, state: RingState) {
    this.#parts = parts;
    this.#keys = keys;
    this.#state = state;
    this.#readAt = parts.clock.monotonic();
  }

  /** Makes the first keys if there are none; of several replicas that start at once, one does. */
  static async open(parts: KeyRingParts): Promise<KeyRing> {
    const keys = new IssuerKeys(parts.db);
    if (!(await hasCurrent(keys, 'signing'))) {
      await keys.addFirst({ ...(await createSigningKey()), purpose: 'signing' });
    }
    if (!(await hasCurrent(keys, 'cookie'))) await keys.addFirst(createCookieKey());
    return new KeyRing(parts, keys, await read(keys, await parts.db.now()));
  }

  /** At most two seconds old. While the store can't be read, the keys of before serve on. */
  async current(): Promise<RingState> {
    return this.#noOlderThan(KEYS_MAX_AGE_MS);
  }

  /** The key that our tokens name: one we don't know may have been made elsewhere just now. */
  async verifier(kid: string): Promise<KeyObject | undefined> {
    const known = (await this.current()).verifying.get(kid);
    return known ?? (await this.#noOlderThan(KEYS_MIN_AGE_MS)).verifying.get(kid);
  }

  async #noOlderThan(ageMs: number): Promise<RingState> {
    if (this.#parts.clock.monotonic() - this.#readAt < ageMs) return this.#state;
    this.#reading ??= this.#reread().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Removes retired keys when nothing they signed can still be alive. */
  async prune(): Promise<void> {
    await this.#keys.removeRetired('signing', RETIRED_KEY_SECONDS * 1000);
    await this.#keys.removeRetired('cookie', COOKIE_SECONDS * 1000);
  }

  async #reread(): Promise<RingState> {
    try {
      this.#state = await read(this.#keys, await this.#parts.db.now());
    } catch (error) {
      this.#parts.logger.warn("the issuer's keys cannot be read again", { error });
    }
    this.#readAt = this.#parts.clock.monotonic();
    return this.#state;
  }
}

export interface KeyRingParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
}

function createCookieKey(): NewKey {
  const kid = `cookie-${randomBytes(12).toString('hex')}`;
  return { kid, purpose: 'cookie', material: new Secret(randomBytes(32).toString('base64url')) };
}

async function hasCurrent(keys: IssuerKeys, purpose: IssuerKey['purpose']): Promise<boolean> {
  return (await keys.list(purpose)).some((key) => key.retiredAtMs === undefined);
}

async function read(keys: IssuerKeys, nowMs: number): Promise<RingState> {
  const signing = live(await keys.list('signing'), nowMs - RETIRED_KEY_SECONDS * 1000);
  const [cookie, ...cookies] = live(await keys.list('cookie'), nowMs - COOKIE_SECONDS * 1000);
  if (signing[0]?.retiredAtMs !== undefined || signing.length === 0 || cookie === undefined) {
    throw new AilsdError('INTERNAL', 'the issuer has no keys');
  }
  const all = [...signing, cookie, ...cookies];
  return {
    signing: signing.map(toJwk),
    verifying: new Map(signing.map((key) => [key.kid, toPublic(key)])),
    cookies: [cookie.material, ...cookies.map((key) => key.material)],
    version: all.map(({ kid, retiredAtMs }) => `${kid} ${retiredAtMs ?? ''}`).join('\n'),
  };
}

/** The current one first; the list is newest first already. */
function live(keys: readonly IssuerKey[], retiredAfterMs: number): IssuerKey[] {
  return keys
    .filter(({ retiredAtMs }) => retiredAtMs === undefined || retiredAtMs > retiredAfterMs)
    .sort((a, b) => Number(a.retiredAtMs !== undefined) - Number(b.retiredAtMs !== undefined));
}

function toJwk({ kid, material }: IssuerKey): JWK {
  return { ...JSON.parse(material.reveal()), kid, alg: 'RS256', use: 'sig' };
}

function toPublic({ material }: IssuerKey): KeyObject {
  return createPublicKey({ key: JSON.parse(material.reveal()), format: 'jwk' });
}
