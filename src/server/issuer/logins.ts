/** The logins of an account: each is a grant that tokens were made of. Found by the account, ended with all that hangs on them. */
import type { ThreadId } from '../../protocol/ids.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import { OidcPayloads, type StoredPayload } from '../store/oidc-payloads.js';
import { Users } from '../store/users.js';
import { findEnabledUser } from './accounts.js';
import { fieldsIn } from './fields.js';
import { type LoginOrigin, originIn } from './login-origin.js';
import { threadsIn } from './pins.js';

export interface Login {
  readonly id: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly threads: readonly ThreadId[];
  readonly origin: LoginOrigin | undefined;
  readonly createdAtMs: number;
  /** When it last got a token. */
  readonly lastUsedAtMs: number;
  readonly expiresAtMs: number;
}

/** Who ended a login, for the audit. */
export interface Ending {
  readonly tenant: string;
  readonly clientId: string;
  readonly jti: string;
  readonly requestId: string;
}

/** More logins than this are not shown; all of them can still be ended at once. */
const LIST_MAX = 1_000;
const TOKENS = ['RefreshToken', 'AccessToken'];

export class Logins {
  readonly #db: Db;
  readonly #payloads: OidcPayloads;

  constructor(db: Db) {
    this.#db = db;
    this.#payloads = new OidcPayloads(db);
  }

  /** Those in force, the latest first. What was approved and never collected is none. */
  async list(userId: string): Promise<readonly Login[]> {
    const user = await findEnabledUser(this.#db, userId);
    if (user === undefined) return [];
    const [grants, lastUsed] = await Promise.all([
      this.#payloads.listByUid('Grant', userId, LIST_MAX),
      this.#payloads.lastMade(userId, TOKENS),
    ]);
    return grants
      .filter(({ createdAtMs }) => createdAtMs > (user.loginsEndedAtMs ?? 0))
      .flatMap((grant) => {
        const lastUsedAtMs = lastUsed.get(grant.id);
        return lastUsedAtMs === undefined ? [] : [toLogin(grant, lastUsedAtMs)];
      });
  }

  /** The login a token is of. */
  async idOfToken(jti: string): Promise<string | undefined> {
    return (await this.#payloads.find('AccessToken', jti))?.grantId;
  }

  /** Whether there was such a login of this user. Its tokens are of no use to anybody afterwards. */
  end(userId: string, id: string, ending: Ending): Promise<boolean> {
    return this.#db.transaction(async (tx) => {
      const payloads = new OidcPayloads(tx);
      const grant = await payloads.find('Grant', id);
      if (grant === undefined || grant.payload['accountId'] !== userId) return false;
      await payloads.endGrant(id);
      const details = { grant_id: id };
      await new Audit(tx).record({ event: 'login_ended', subject: userId, ...ending, details });
      return true;
    });
  }

  /** Those in browsers too. */
  endAll(userId: string, ending: Ending): Promise<void> {
    return this.#db.transaction(async (tx) => {
      await new Users(tx).endLogins(userId);
      await new Audit(tx).record({ event: 'user_logins_ended', subject: userId, ...ending });
    });
  }
}

function toLogin(grant: StoredPayload, lastUsedAtMs: number): Login {
  const { id, payload, createdAtMs, expiresAtMs = 0 } = grant;
  const scopes = Object.values(fieldsIn(payload['resources'])).flatMap((scope) =>
    String(scope).split(' '),
  );
  return {
    id,
    clientId: String(payload['clientId']),
    scopes: scopes.filter((scope) => scope !== ''),
    threads: threadsIn(payload['rar']),
    origin: originIn(payload['rar']),
    createdAtMs,
    lastUsedAtMs,
    expiresAtMs,
  };
}
