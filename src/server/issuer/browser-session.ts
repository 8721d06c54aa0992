/** Who is signed in in a browser, and proof that a form was posted from a page of ours in that very browser. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../base/clock.js';
import type { Db } from '../store/db.js';
import { OidcPayloads } from '../store/oidc-payloads.js';
import type { User } from '../store/users.js';
import { findSignedInUser } from './accounts.js';
import { hashId } from './device-codes.js';
import { COOKIE_SECONDS, type KeyRing } from './key-ring.js';

/** A browser that has been seen; `user` once somebody signed in there. */
export interface Visit {
  /** The cookie's value; goes into nothing but digests. */
  readonly id: string;
  readonly user?: User | undefined;
  readonly signedInAtMs?: number | undefined;
}

/** A page may be looked at for this long before its form is sent. */
export const FORM_LIFE_MS = 60 * 60 * 1000;

/** The clocks of replicas are not quite the same. */
const SKEW_MS = 60_000;

const KIND = 'BrowserSession';

export interface BrowserSessionsParts {
  readonly db: Db;
  readonly keys: KeyRing;
  readonly clock: Clock;
  /** Of the issuer's own URL. */
  readonly origin: string;
}

export class BrowserSessions {
  readonly #parts: BrowserSessionsParts;
  readonly #payloads: OidcPayloads;
  readonly #isSecure: boolean;
  readonly #cookie: string;

  constructor(parts: BrowserSessionsParts) {
    this.#parts = parts;
    this.#payloads = new OidcPayloads(parts.db);
    this.#isSecure = parts.origin.startsWith('https:');
    // `__Host-`: no other host or path can set it. Browsers allow the prefix with https alone.
    this.#cookie = this.#isSecure ? '__Host-ailsd_session' : 'ailsd_session';
  }

  /** `undefined` for a browser that brings no cookie of ours. */
  async find(request: IncomingMessage): Promise<Visit | undefined> {
    const id = readCookie(request, this.#cookie);
    if (id === undefined || !ID.test(id)) return undefined;
    const found = await this.#payloads.find(KIND, hashId(id));
    const userId = found?.payload['userId'];
    if (found === undefined || found.isExpired || typeof userId !== 'string') return { id };
    const user = await findSignedInUser(this.#parts.db, userId, found.createdAtMs);
    return user === undefined ? { id } : { id, user, signedInAtMs: found.createdAtMs };
  }

  /** A visit of nobody yet, and the cookie that makes the browser bring it back. */
  begin(): { readonly visit: Visit; readonly cookie: string } {
    const id = randomBytes(32).toString('base64url');
    return { visit: { id }, cookie: this.#setCookie(id, COOKIE_SECONDS) };
  }

  /** Under a new id: one that somebody else planted before is worth nothing. */
  async signIn(user: User): Promise<string> {
    const { visit, cookie } = this.begin();
    await this.#payloads.upsert({
      kind: KIND,
      id: hashId(visit.id),
      payload: { userId: user.id },
      expiresInMs: COOKIE_SECONDS * 1000,
    });
    return cookie;
  }

  async signOut(visit: Visit): Promise<string> {
    await this.#payloads.destroy(KIND, hashId(visit.id));
    return this.#setCookie('', 0);
  }

  /** Goes into a form; good for this browser, this sign-in and an hour. */
  async xsrf(visit: Visit): Promise<string> {
    const { cookies } = await this.#parts.keys.current();
    const at = this.#parts.clock.now().toString(36);
    return `${at}.${seal(cookies[0].reveal(), visit, at)}`;
  }

  /** Whether a form with this value may have effects. */
  async isGenuine(request: IncomingMessage, visit: Visit, xsrf: string | null): Promise<boolean> {
    if (!this.#isFromHere(request)) return false;
    const [at = '', given = ''] = xsrf?.split('.') ?? [];
    const age = this.#parts.clock.now() - Number.parseInt(at, 36);
    if (!(age >= -SKEW_MS && age <= FORM_LIFE_MS)) return false;
    const { cookies } = await this.#parts.keys.current();
    return cookies.some((key) => isEqual(seal(key.reveal(), visit, at), given));
  }

  /** What the browser itself says of where a form came from, where it says anything. `null` is what no-referrer pages send. */
  #isFromHere({ headers }: IncomingMessage): boolean {
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return false;
    const { origin } = headers;
    return origin === undefined || origin === 'null' || origin === this.#parts.origin;
  }

  #setCookie(value: string, maxAgeSeconds: number): string {
    const secure = this.#isSecure ? '; Secure' : '';
    return `${this.#cookie}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
  }
}

const ID = /^[A-Za-z0-9_-]{43}$/;

function seal(key: string, visit: Visit, at: string): string {
  return createHmac('sha256', key).update(`xsrf\0${visit.id}\0${at}`).digest('base64url');
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  for (const pair of headers.cookie?.split(';') ?? []) {
    const [key = '', value] = pair.trim().split('=', 2);
    if (key === name) return value;
  }
  return undefined;
}
