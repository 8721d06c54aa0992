/** oidc-provider's storage interface over the store: bearer secrets by digest, single use by the database. */
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider';
import type { Logger } from '../../base/logger.js';
import { Audit } from '../store/audit.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { OidcPayloads, type StoredPayload } from '../store/oidc-payloads.js';
import { findSignedInUser } from './accounts.js';
import { toClientMetadata } from './client-metadata.js';
import { DEVICE_CODE, DeviceCodes, hashId } from './device-codes.js';
import type { OidcLibrary } from './load-library.js';
import type { RefreshAnswers } from './refresh-answers.js';

export interface AdapterParts {
  readonly db: Db;
  readonly library: OidcLibrary;
  readonly answers: RefreshAnswers;
  readonly logger: Logger;
}

export function createAdapters(parts: AdapterParts): AdapterFactory {
  return (kind) => {
    switch (kind) {
      case 'Client':
        return new ClientAdapter(parts);
      case DEVICE_CODE:
        return new DeviceCodeAdapter(kind, parts);
      case 'Grant':
        return new GrantAdapter(kind, parts);
      case 'RefreshToken':
        return new RefreshTokenAdapter(kind, parts);
      default:
        return new PayloadAdapter(kind, parts);
    }
  };
}

class PayloadAdapter implements Adapter {
  protected readonly kind: string;
  protected readonly payloads: OidcPayloads;
  protected readonly parts: AdapterParts;

  constructor(kind: string, parts: AdapterParts) {
    this.kind = kind;
    this.parts = parts;
    this.payloads = new OidcPayloads(parts.db);
  }

  async upsert(id: string, payload: AdapterPayload, expiresInSeconds?: number): Promise<void> {
    // The id is the secret itself, and the payload would repeat it.
    const { jti: _, ...kept } = payload;
    await this.payloads.upsert({
      kind: this.kind,
      id: this.stored(id),
      payload: kept,
      // A grant is found by its id; what hangs on it, by this.
      grantId: payload.grantId,
      userCode: payload.userCode,
      uid: this.uidOf(payload),
      expiresInMs: expiresInSeconds === undefined ? undefined : expiresInSeconds * 1000,
    });
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.payloads.find(this.kind, this.stored(id));
    return found === undefined ? undefined : toAdapterPayload(found, id);
  }

  async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    const found = await this.payloads.findByUserCode(this.kind, userCode);
    return found === undefined ? undefined : toAdapterPayload(found, found.id);
  }

  async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    const found = await this.payloads.findByUid(this.kind, uid);
    return found === undefined ? undefined : toAdapterPayload(found, found.id);
  }

  /** The library has looked whether it is consumed; between its look and this, another may have been faster. */
  async consume(id: string): Promise<void> {
    const consumed = await this.payloads.consume(this.kind, this.stored(id));
    if (consumed.kind !== 'consumed') throw this.alreadyUsed();
  }

  destroy(id: string): Promise<void> {
    return this.payloads.destroy(this.kind, this.stored(id));
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.payloads.revokeByGrantId(grantId);
  }

  protected alreadyUsed(): Error {
    return new this.parts.library.errors.InvalidGrant('already used');
  }

  protected uidOf({ uid }: AdapterPayload): string | undefined {
    return uid;
  }

  /** A grant's id is no secret: it opens nothing. */
  protected stored(id: string): string {
    return this.kind === 'Grant' ? id : hashId(id);
  }
}

/** Everything of a login hangs on its grant, which is gone once the user's logins were ended. */
class GrantAdapter extends PayloadAdapter {
  /** By whom it can be found: the account whose login it is. */
  protected override uidOf({ accountId }: AdapterPayload): string | undefined {
    return accountId;
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.payloads.find(this.kind, id);
    const userId = found?.payload['accountId'];
    if (found === undefined || typeof userId !== 'string') return undefined;
    const user = await findSignedInUser(this.parts.db, userId, found.createdAtMs);
    return user === undefined ? undefined : toAdapterPayload(found, id);
  }
}

/** Only the token endpoint looks a device code up by itself, so each look is a poll. */
class DeviceCodeAdapter extends PayloadAdapter {
  override async find(id: string): Promise<AdapterPayload | undefined> {
    const { errors, Provider } = this.parts.library;
    const clientId = Provider.ctx?.oidc.client?.clientId;
    if (clientId === undefined) return undefined;
    const redeemed = await new DeviceCodes(this.parts.db).redeem(id, clientId);
    switch (redeemed.kind) {
      case 'claimed':
      case 'open':
        return { ...redeemed.payload, jti: id };
      case 'early':
        throw new errors.SlowDown('polled too soon; wait 5 seconds longer from now on');
      case 'spent':
      case 'missing':
        return undefined;
    }
  }

  /** Claiming was consuming; a denial may be told again. */
  override async consume(): Promise<void> {}
}

class RefreshTokenAdapter extends PayloadAdapter {
  override async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.payloads.find(this.kind, this.stored(id));
    if (found === undefined) return undefined;
    if (found.consumedAtMs !== undefined && !found.isExpired) await this.#usedAgain(id, found);
    return toAdapterPayload(found, id);
  }

  override async consume(id: string): Promise<void> {
    const stored = this.stored(id);
    const consumed = await this.payloads.consume(this.kind, stored);
    if (consumed.kind === 'consumed') return;
    const found = await this.payloads.find(this.kind, stored);
    if (found !== undefined) {
      await this.#usedAgain(id, found);
      await this.#endFamily(found);
    }
    throw this.alreadyUsed();
  }

  /** A caller that shows it is the one whose answer was lost gets that answer; anybody else has a copy. */
  async #usedAgain(id: string, found: StoredPayload): Promise<void> {
    const ctx = this.parts.library.Provider.ctx;
    const clientId = ctx?.oidc.client?.clientId;
    if (ctx?.oidc.route !== 'token' || clientId !== found.payload['clientId']) return;
    if (await this.parts.answers.recall(ctx, id)) {
      throw new this.parts.library.errors.InvalidGrant('answered before');
    }
    this.parts.logger.warn('a refresh token was used again: its family ends', {
      grant_id: found.grantId,
      client_id: clientId,
    });
    const subject = found.payload['accountId'];
    await new Audit(this.parts.db).record({
      event: 'refresh_reuse',
      subject: typeof subject === 'string' ? subject : undefined,
      clientId,
      details: { grant_id: found.grantId, address: ctx.ip },
    });
  }

  /** What the faster one is just being given hangs on the grant, and is nothing without it. */
  async #endFamily({ grantId }: StoredPayload): Promise<void> {
    if (grantId !== undefined) await this.payloads.endGrant(grantId);
  }
}

class ClientAdapter extends PayloadAdapter {
  readonly #clients: Clients;

  constructor(parts: AdapterParts) {
    super('Client', parts);
    this.#clients = new Clients(parts.db);
  }

  override async find(id: string): Promise<AdapterPayload | undefined> {
    const client = await this.#clients.find(id);
    if (client === undefined || client.disabledAtMs !== undefined) return undefined;
    const signs = this.parts.library.Provider.ctx?.oidc.params?.['client_assertion'] !== undefined;
    return toClientMetadata(client, signs);
  }
}

/** Expired ones are given too: the library tells its caller that they have expired, by its own look at `exp`. */
function toAdapterPayload(found: StoredPayload, jti: string): AdapterPayload {
  const { consumedAtMs } = found;
  const consumed = consumedAtMs === undefined ? {} : { consumed: Math.floor(consumedAtMs / 1000) };
  return { ...found.payload, jti, ...consumed };
}
