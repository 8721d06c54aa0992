/**
 * Gives the answer to a refresh again to the caller it was lost on the way to. Who sends an `Idempotency-Key` of its own
 * with a refresh may, for a minute, send the same again and gets the same tokens. A copy of the refresh token without
 * that key proves nothing, and counts as reuse. The store can't read the answer: its key is made of the request.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Clock } from '../../base/clock.js';
import { IDEMPOTENCY_KEY_PATTERN } from '../../protocol/headers.js';
import type { Db } from '../store/db.js';
import { OidcPayloads } from '../store/oidc-payloads.js';
import { hashId } from './device-codes.js';

export const REPEAT_WINDOW_MS = 60_000;

/** The first request may still be under way when it is repeated. */
const WAIT_MS = 2_000;
const WAIT_STEP_MS = 40;

/** A guessable key would make every copy of the token as good as the original. */
const MIN_KEY_CHARACTERS = 22;

const KIND = 'RefreshAnswer';

export class RefreshAnswers {
  readonly #payloads: OidcPayloads;
  readonly #clock: Clock;
  readonly #recalled = new WeakMap<KoaContextWithOIDC, object>();

  constructor(db: Db, clock: Clock) {
    this.#payloads = new OidcPayloads(db);
    this.#clock = clock;
  }

  /** Keeps the answer to this request, if it is a refresh with a key. */
  async keep(ctx: KoaContextWithOIDC): Promise<void> {
    const request = this.#requestOf(ctx);
    if (request === undefined || ctx.status !== 200) return;
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', request.key, nonce);
    const box = Buffer.concat([
      cipher.update(JSON.stringify(ctx.body)),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    await this.#payloads.upsert({
      kind: KIND,
      id: request.id,
      payload: { nonce: nonce.toString('base64url'), box: box.toString('base64url') },
      grantId: ctx.oidc.entities.RefreshToken?.grantId,
      expiresInMs: REPEAT_WINDOW_MS,
    });
  }

  /** Whether this request is a repetition whose answer is known and not made use of yet. */
  async recall(ctx: KoaContextWithOIDC, refreshToken: string): Promise<boolean> {
    const request = this.#requestOf(ctx);
    if (request === undefined || ctx.oidc.params?.['refresh_token'] !== refreshToken) return false;
    for (let waitedMs = 0; waitedMs <= WAIT_MS; waitedMs += WAIT_STEP_MS) {
      const kept = await this.#payloads.find(KIND, request.id);
      if (kept !== undefined) {
        const answer = kept.isExpired ? undefined : open(request.key, kept.payload);
        if (answer === undefined || !(await this.#isUnused(answer))) return false;
        this.#recalled.set(ctx, answer);
        return true;
      }
      await this.#clock.sleep(WAIT_STEP_MS);
    }
    return false;
  }

  /** Puts a recalled answer in the place of the refusal. */
  replace(ctx: KoaContextWithOIDC): boolean {
    const answer = this.#recalled.get(ctx);
    if (answer === undefined) return false;
    ctx.status = 200;
    ctx.body = answer;
    return true;
  }

  /** Once the successor was used, the answer did arrive. */
  async #isUnused(answer: object): Promise<boolean> {
    const successor = 'refresh_token' in answer ? answer.refresh_token : undefined;
    if (typeof successor !== 'string') return false;
    const found = await this.#payloads.find('RefreshToken', hashId(successor));
    return found !== undefined && found.consumedAtMs === undefined;
  }

  #requestOf(ctx: KoaContextWithOIDC): { readonly id: string; readonly key: Buffer } | undefined {
    const { params, client } = ctx.oidc;
    const given = ctx.get('idempotency-key');
    const token = params?.['refresh_token'];
    if (params?.['grant_type'] !== 'refresh_token' || typeof token !== 'string') return undefined;
    if (client === undefined || given.length < MIN_KEY_CHARACTERS) return undefined;
    if (!IDEMPOTENCY_KEY_PATTERN.test(given)) return undefined;
    const whole = JSON.stringify([client.clientId, token, params['scope'] ?? null, given]);
    return { id: hashId(`id ${whole}`), key: Buffer.from(hkdfSync('sha256', whole, '', KIND, 32)) };
  }
}

const TAG_BYTES = 16;

function open(key: Buffer, { nonce, box }: Readonly<Record<string, unknown>>): object | undefined {
  if (typeof nonce !== 'string' || typeof box !== 'string') return undefined;
  const bytes = Buffer.from(box, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]);
  const answer: unknown = JSON.parse(text.toString());
  return typeof answer === 'object' && answer !== null ? answer : undefined;
}
