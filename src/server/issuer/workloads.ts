/** Lets ID tokens of trusted CI systems in: by issuer, audience and claim rules of `workload_trust`, and by nothing else. */
import type { Clock } from '../../base/clock.js';
import type { Scope } from '../../protocol/scopes.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { type Trust, WorkloadTrust } from '../store/workload-trust.js';
import type { Fields } from './fields.js';
import { decodeJwt } from './jwt.js';
import { RemoteIssuer } from './remote-issuer.js';

export type Admitted =
  | {
      readonly kind: 'admitted';
      readonly trust: Trust;
      readonly scopes: readonly Scope[];
      /** When the token that was shown ends. */
      readonly expiresAtSeconds: number;
    }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'refused'; readonly why: string };

/** Issuers kept at hand; the rows that name them are few. */
const MAX_ISSUERS = 64;

export interface WorkloadsParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Our own issuer: its ID tokens say who looked at a page, not which machine asks. */
  readonly ownIssuer: string;
}

export class Workloads {
  readonly #parts: WorkloadsParts;
  readonly #trust: WorkloadTrust;
  readonly #issuers = new Map<string, RemoteIssuer>();

  constructor(parts: WorkloadsParts) {
    this.#parts = parts;
    this.#trust = new WorkloadTrust(parts.db);
  }

  async admit(token: string): Promise<Admitted> {
    const jwt = decodeJwt(token);
    const issuer = jwt?.payload['iss'];
    // RFC 9068 section 2.1 gives access tokens their type just so that they are not taken for ID tokens.
    if (
      typeof issuer !== 'string' ||
      !isIdTokenHeader(jwt?.header ?? {}) ||
      issuer === this.#parts.ownIssuer
    ) {
      return { kind: 'malformed' };
    }
    // Only issuers that an administrator named are ever asked for keys.
    for (const trust of await this.#trust.listByIssuer(issuer)) {
      const claims = await this.#issuer(issuer).check(token, { audience: trust.audience });
      if (claims === undefined || !followsRules(claims, trust.claims)) continue;
      const scopes = await this.#scopes(trust);
      const expiresAtSeconds = Math.floor(Number(claims['exp']));
      if (scopes !== undefined) return { kind: 'admitted', trust, scopes, expiresAtSeconds };
    }
    return { kind: 'refused', why: 'no rule trusts this token' };
  }

  /** Where the service principal is a client with a row of its own, that limits it too. */
  async #scopes(trust: Trust): Promise<readonly Scope[] | undefined> {
    const client = await new Clients(this.#parts.db).find(trust.clientId);
    if (client === undefined) return trust.scopes;
    if (client.disabledAtMs !== undefined || client.tenant !== trust.tenant) return undefined;
    return trust.scopes.filter((scope) => client.allowedScopes.includes(scope));
  }

  #issuer(url: string): RemoteIssuer {
    const known = this.#issuers.get(url);
    if (known !== undefined) return known;
    const [oldest] = this.#issuers.keys();
    if (this.#issuers.size >= MAX_ISSUERS && oldest !== undefined) this.#issuers.delete(oldest);
    const made = new RemoteIssuer(url, this.#parts);
    this.#issuers.set(url, made);
    return made;
  }
}

/** RFC 7515 section 4.1.9: a type may be written with `application/` before it, and in letters of any size. */
function isIdTokenHeader({ typ, kid }: Fields): boolean {
  if (kid !== undefined && typeof kid !== 'string') return false;
  if (typ === undefined) return true;
  return typeof typ === 'string' && !ACCESS_TOKEN_TYPE.test(typ);
}

const ACCESS_TOKEN_TYPE = /^(application\/)?at\+jwt\s*(;|$)/i;

/** All of them, to the letter. None at all would trust whoever the issuer has for a customer. */
function followsRules(claims: Fields, rules: Fields): boolean {
  const entries = Object.entries(rules);
  return entries.length > 0 && entries.every(([name, wanted]) => isSame(claims[name], wanted));
}

function isSame(claim: unknown, wanted: unknown): boolean {
  if (typeof claim === 'object' || claim === undefined) return false;
  return String(claim) === String(wanted);
}
