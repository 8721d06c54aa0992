/** Limits guessing: each attempt is taken before it is looked at, and given back when it was right. */

import { Attempts } from '../store/attempts.js';
import type { Db } from '../store/db.js';
import { hashId } from './device-codes.js';
import type { LocalLogin } from './local-login.js';
import { addressBucket } from './request-origin.js';

export const GUESS_WINDOW_MS = 600_000;

/** Wrong codes, for each account and for each address. */
export const WRONG_CODES = 5;

/**
 * Wrong passwords. The pair is what one guesser has; the account alone is limited for many guessers, with more room, so
 * that its owner is not easily locked out; the address alone for guessers of many accounts.
 */
export const WRONG_PASSWORDS = { pair: 5, account: 50, address: 20 } as const;

/** Logins begun from one address. */
export const DEVICE_LOGINS = 1_000;

/** The same in browsers. */
export const BROWSER_LOGINS = 1_000;

export type Guess =
  | { readonly kind: 'allowed'; readonly wasRight: () => Promise<void> }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number };

export class GuessLimits {
  readonly #attempts: Attempts;

  constructor(db: Db) {
    this.#attempts = new Attempts(db);
  }

  userCode(accountId: string, address: string): Promise<Guess> {
    return this.#take([
      [`code account ${accountId}`, WRONG_CODES],
      [`code address ${addressBucket(address)}`, WRONG_CODES],
    ]);
  }

  password({ key }: LocalLogin, address: string): Promise<Guess> {
    // Digested: people type passwords into the wrong field.
    const account = hashId(key);
    const place = addressBucket(address);
    return this.#take([
      [`password pair ${account} ${place}`, WRONG_PASSWORDS.pair],
      [`password address ${place}`, WRONG_PASSWORDS.address],
      [`password account ${account}`, WRONG_PASSWORDS.account],
    ]);
  }

  /** Counts every one, right or not. */
  deviceLogin(address: string): Promise<Guess> {
    return this.#take([[`device ${addressBucket(address)}`, DEVICE_LOGINS]]);
  }

  /** Likewise. */
  browserLogin(address: string): Promise<Guess> {
    return this.#take([[`authorize ${addressBucket(address)}`, BROWSER_LOGINS]]);
  }

  async #take(buckets: readonly (readonly [name: string, limit: number])[]): Promise<Guess> {
    const taken: string[] = [];
    const giveBack = async () => {
      for (const name of taken) await this.#attempts.giveBack(name);
    };
    for (const [name, limit] of buckets) {
      const one = await this.#attempts.take(name, limit, GUESS_WINDOW_MS);
      if (one.kind === 'limited') {
        await giveBack();
        return { kind: 'limited', retryAfterSeconds: Math.ceil(one.retryAfterMs / 1000) };
      }
      taken.push(name);
    }
    return { kind: 'allowed', wasRight: giveBack };
  }
}
