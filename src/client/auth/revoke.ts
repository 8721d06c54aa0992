/** Tells the issuer that a login is over, within a bound: what it gave is of no use to anybody afterwards. */
import { AilsdError } from '../../protocol/errors.js';
import type { Credential } from '../credentials/credential.js';
import { connectIssuer } from './issuer.js';
import type { AuthWorld } from './world.js';

/** Why the issuer may not know of it; nothing where it does. */
export async function revokeLogin(
  world: AuthWorld,
  credential: Credential,
  signal: AbortSignal | undefined,
): Promise<AilsdError | undefined> {
  const { issuer: url, clientId, refreshToken, accessToken } = credential;
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

/** Nobody waits longer than this for a login to end. */
const LIMIT_MS = 10_000;
