/** Device codes (RFC 8628) in the store: decided once, asked for at the right pace, redeemed once, over all replicas. */
import { createHash } from 'node:crypto';
import { POLL_INTERVAL_SECONDS, SLOW_DOWN_SECONDS } from '../../protocol/shapes/issuer.js';
import type { Db } from '../store/db.js';
import { NOW_SQL } from '../store/engine-clock.js';
import { OidcPayloads, type PollRule, type StoredPayload } from '../store/oidc-payloads.js';

export const DEVICE_CODE = 'DeviceCode';

/** Timers and networks are not exact: this little early is in time. */
const PACE: PollRule = {
  gapMs: POLL_INTERVAL_SECONDS * 1000,
  growMs: SLOW_DOWN_SECONDS * 1000,
  toleranceMs: 250,
};

export type Redeemed =
  /** Approved, in time, and this caller is the one who gets the tokens. */
  | { readonly kind: 'claimed'; readonly payload: StoredPayload['payload'] }
  /** Neither approved nor claimed by this poll: pending, denied or expired, which the payload tells. */
  | { readonly kind: 'open'; readonly payload: StoredPayload['payload'] }
  | { readonly kind: 'early' }
  | { readonly kind: 'spent' }
  | { readonly kind: 'missing' };

export class DeviceCodes {
  readonly #db: Db;
  readonly #payloads: OidcPayloads;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Db) {
    this.#db = db;
    this.#payloads = new OidcPayloads(db);
    this.#sql = statements(NOW_SQL[db.engine]);
  }

  /**
   * One poll. That the code is approved, the poll in time and nobody before it is one condition of one statement, so
   * of any number of polls at once exactly one claims the code, and those beside it find it spent, not early.
   */
  async redeem(deviceCode: string, clientId: string): Promise<Redeemed> {
    const id = hashId(deviceCode);
    const before = await this.#payloads.find(DEVICE_CODE, id);
    if (before === undefined) return { kind: 'missing' };
    // Another client's poll changes nothing; the library refuses it by the payload.
    if (before.payload['clientId'] !== clientId) return { kind: 'open', payload: before.payload };
    if (before.consumedAtMs !== undefined) return { kind: 'spent' };
    if (before.isExpired) return { kind: 'open', payload: before.payload };
    const [claimed] = await this.#db.query(this.#sql.claim, [id, PACE.gapMs, PACE.toleranceMs]);
    const stored = await this.#payloads.find(DEVICE_CODE, id);
    if (stored === undefined) return { kind: 'missing' };
    if (claimed !== undefined) return { kind: 'claimed', payload: stored.payload };
    if (stored.consumedAtMs !== undefined) return { kind: 'spent' };
    const poll = await this.#payloads.poll(DEVICE_CODE, id, PACE);
    if (poll.kind === 'early') return { kind: 'early' };
    // Approved after the claim was tried: the next poll gets it.
    return {
      kind: 'open',
      payload: stored.grantId === undefined ? stored.payload : before.payload,
    };
  }

  /** The code of these letters while it can still be decided. */
  async findUndecided(userCode: string): Promise<StoredPayload | undefined> {
    const found = await this.#payloads.findByUserCode(DEVICE_CODE, userCode);
    if (found === undefined || found.isExpired || found.consumedAtMs !== undefined)
      return undefined;
    return found.grantId === undefined && found.uid === undefined ? found : undefined;
  }

  /** The code of these letters if it was this account that decided it. */
  async findDecidedBy(userCode: string, accountId: string): Promise<StoredPayload | undefined> {
    const found = await this.#payloads.findByUserCode(DEVICE_CODE, userCode);
    const { accountId: approver, deniedBy } = found?.payload ?? {};
    return approver === accountId || deniedBy === accountId ? found : undefined;
  }

  /** Of several decisions the first counts; whether it was this one. */
  async approve(code: StoredPayload, grantId: string, granted: object): Promise<boolean> {
    const payload = JSON.stringify({ ...code.payload, ...granted, grantId });
    return (await this.#db.run(this.#sql.approve, [payload, grantId, code.id])) === 1;
  }

  async deny(code: StoredPayload, deniedBy: string): Promise<boolean> {
    const denial = { error: 'access_denied', errorDescription: 'the request was denied' };
    const payload = JSON.stringify({ ...code.payload, ...denial, deniedBy });
    return (await this.#db.run(this.#sql.deny, [payload, code.id])) === 1;
  }
}

/** What people type: capitals or not, with or without the dash. */
export function normalizeUserCode(typed: string): string {
  return typed
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '')
    .slice(0, 64);
}

export function showUserCode(normalized: string): string {
  return `${normalized.slice(0, 4)}-${normalized.slice(4)}`;
}

/** What is kept for looking up a bearer secret is its digest. */
export function hashId(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Undecided: no grant and no `uid`, which a denial sets. */
function statements(now: string) {
  const undecided = `kind = '${DEVICE_CODE}' AND id = ? AND grant_id IS NULL AND uid IS NULL
    AND consumed_at IS NULL AND expires_at > ${now}`;
  return {
    claim: `UPDATE oidc_payloads SET consumed_at = ${now}, last_poll_at = ${now}
      WHERE kind = '${DEVICE_CODE}' AND id = ? AND consumed_at IS NULL AND grant_id IS NOT NULL
        AND (last_poll_at IS NULL
          OR ${now} >= last_poll_at + COALESCE(poll_gap_ms, ?) - CAST(? AS BIGINT))
      RETURNING id`,
    approve: `UPDATE oidc_payloads SET payload = ?, grant_id = ? WHERE ${undecided}`,
    deny: `UPDATE oidc_payloads SET payload = ?, uid = 'denied' WHERE ${undecided}`,
  };
}
