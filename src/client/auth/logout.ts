/** Ends a login: at the issuer if it can be reached, and here in any case. */
import { AilsdError } from '../../protocol/errors.js';
import type { CredentialKey } from '../credentials/credential.js';
import type { CredentialStore } from '../credentials/credential-store.js';
import { connectIssuer } from './issuer.js';
import { withLoginLock } from './login-lock.js';
import type { AuthWorld } from './world.js';

export interface EndedLogin {
  readonly key: CredentialKey;
  /** Why the issuer may not know of it; absent where it does. */
  readonly notRevoked: AilsdError | undefined;
}

/** Whether there was such a login to end is for the caller to know; one that has gone meanwhile is ended. */
export async function endLogin(
  world: AuthWorld,
  store: CredentialStore,
  key: CredentialKey,
  signal?: AbortSignal,
): Promise<EndedLogin> {
  const { clock, configFolder } = world;
  const lock = { store, folder: configFolder, clock, signal };
  return withLoginLock(key, lock, async () => {
    // First there, then here: a process that dies between the two leaves a login that says it is over, not a live one
    // that nobody remembers.
    const notRevoked = await revoke(world, store, key, signal);
    await store.delete(key);
    return { key, notRevoked };
  });
}

async function revoke(
  world: AuthWorld,
  store: CredentialStore,
  key: CredentialKey,
  signal: AbortSignal | undefined,
): Promise<AilsdError | undefined> {
  const kept = await store.get(key).catch(() => undefined);
  if (kept === undefined) return undefined;
  const { issuer: url, clientId, refreshToken, accessToken } = kept;
  const limit = AbortSignal.any([AbortSignal.timeout(LIMIT_MS), ...(signal ? [signal] : [])]);
  try {
    const http = await world.http();
    const issuer = await connectIssuer({ url, clientId, http, clock: world.clock, signal: limit });
    if (refreshToken !== undefined) await issuer.revoke(refreshToken, 'refresh_token', limit);
    else await issuer.revoke(accessToken, 'access_token', limit);
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof AilsdError) return error;
    if (limit.aborted) return new AilsdError('UNREACHABLE', `${url} did not answer in time`);
    throw error;
  }
}

/** Nobody waits longer than this to be logged out. */
const LIMIT_MS = 10_000;
