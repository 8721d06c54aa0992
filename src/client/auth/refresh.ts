/** Renews a login's access token, one process at a time: lock, read again, ask the issuer, keep the answer. */
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import { GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import { type Credential, isSameKey } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import type { Http } from '../http/http.js';
import { isAmple, isDue, isUsable } from './freshness.js';
import { type GrantOutcome, refusalText } from './grant-outcome.js';
import { connectIssuer, type Issuer } from './issuer.js';
import { withLoginLock } from './login-lock.js';
import { repeatKey } from './repeat-key.js';
import { toCredential } from './tokens.js';

export interface RefreshOptions {
  readonly store: CredentialStore;
  /** Where the lock is: a folder that every process with this login shares. */
  readonly folder: string | undefined;
  /** Who we are, for judging whose files we read. */
  readonly userId: number | undefined;
  readonly http: Http;
  readonly clock: Clock;
  /** Ends the waiting for others. A request under way is not called off: its answer may be the only good token. */
  readonly signal?: AbortSignal | undefined;
  /** Renew even if the token looks good: a server has just refused it. */
  readonly refused?: boolean | undefined;
}

/** A login whose access token is good. LOGIN_REVOKED where the issuer has ended it; it is removed then. */
export async function refreshCredential(
  seen: Credential,
  options: RefreshOptions,
): Promise<Credential> {
  const { clock, refused = false } = options;
  const ample = !refused && isAmple(seen, clock.now());
  // With minutes left there is no need to wait for whoever is renewing it.
  const lock = { ...options, ...(ample ? { waitMs: 0 } : {}) };
  try {
    return await withLoginLock(seen, lock, () => new Refresh(seen, options).run());
  } catch (error) {
    const usable = !refused && isUsable(seen, clock.now());
    if (usable && error instanceof AilsdError && isPassing(error)) return seen;
    throw error;
  }
}

/** What says nothing about the login itself. */
function isPassing({ code }: AilsdError): boolean {
  return code === 'UNREACHABLE' || code === 'RATE_LIMITED' || code === 'TIMEOUT';
}

class Refresh {
  readonly #seen: Credential;
  readonly #options: RefreshOptions;

  constructor(seen: Credential, options: RefreshOptions) {
    this.#seen = seen;
    this.#options = options;
  }

  async run(): Promise<Credential> {
    const { http, clock, signal } = this.#options;
    const kept = await this.#read();
    if (this.#isRenewed(kept)) return kept;
    const { issuer: url, clientId } = kept;
    // Asking spends the token: nothing is asked for that could not be kept.
    using _room = await this.#options.store.reserve?.(kept);
    const issuer = await connectIssuer({ url, clientId, http, clock, signal });
    return await this.#renew(issuer, kept, true);
  }

  async #renew(issuer: Issuer, kept: Credential, mayRetry: boolean): Promise<Credential> {
    const outcome = await this.#ask(issuer, kept);
    if (outcome.kind === 'failed') throw outcome.failure;
    if (outcome.kind === 'granted') {
      const { issuer: url, clientId } = kept;
      const renewed = { ...kept, ...toCredential(outcome.tokens, url, clientId) };
      // The key stays: an answer does not say whose login this is.
      const { account } = kept;
      const refreshToken = outcome.tokens.refreshToken ?? kept.refreshToken;
      const credential = { ...renewed, account, refreshToken };
      await this.#options.store.set(credential);
      return credential;
    }
    if (outcome.error !== 'invalid_grant') {
      const text = `the server refused to renew the login (${refusalText(outcome)})`;
      throw new AilsdError('LOGIN_FAILED', text, { details: { oauth_error: outcome.error } });
    }
    // Somebody may have renewed it past the lock: another machine, an older program, a login in another window.
    const now = await this.#read();
    const isSame = now.refreshToken?.reveal() === kept.refreshToken?.reveal();
    if (!isSame && this.#isRenewed(now)) return now;
    if (!isSame && mayRetry) return this.#renew(issuer, now, false);
    await this.#options.store.delete(kept);
    throw new AilsdError(
      'LOGIN_REVOKED',
      'the login is over: the server does not renew it any more',
      {
        details: { account: kept.account },
      },
    );
  }

  /** What is kept now; somebody may have logged out while we waited. */
  async #read(): Promise<Credential> {
    const kept = await this.#options.store.get(this.#seen);
    if (kept !== undefined && isSameKey(kept, this.#seen)) return kept;
    throw new AilsdError('NOT_LOGGED_IN', 'the login was removed meanwhile');
  }

  /** Whether another process has done it for us. */
  #isRenewed(kept: Credential): boolean {
    const isOther = kept.accessToken.reveal() !== this.#seen.accessToken.reveal();
    return isOther && !isDue(kept, this.#options.clock.now());
  }

  /** Twice if the connection was cut before the answer, under one name. */
  async #ask(issuer: Issuer, { refreshToken, scopes }: Credential): Promise<GrantOutcome> {
    if (refreshToken === undefined) {
      throw new AilsdError('TOKEN_EXPIRED', 'the login has ended and cannot be renewed', {
        hint: 'run `ailsd login`',
      });
    }
    const { folder: path, userId, store } = this.#options;
    const folder = path === undefined || store.kind === 'memory' ? undefined : { path, userId };
    const headers = { 'idempotency-key': repeatKey(folder, refreshToken) };
    const parameters = { refresh_token: refreshToken.reveal() };
    const send = (): Promise<GrantOutcome> =>
      issuer.grant(GRANT_TYPES.refreshToken, parameters, { scopes, headers });
    const outcome = await send();
    const isLost =
      outcome.kind === 'failed' && LOST.includes(String(outcome.failure.details['reason']));
    return isLost ? send() : outcome;
  }
}

/** Reasons for which the issuer may have renewed the login without our hearing of it. */
const LOST: readonly string[] = ['cut', 'gateway'];
