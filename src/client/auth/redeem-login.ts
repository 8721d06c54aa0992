/** Turns a refresh token that was handed to us into a login that is kept. */
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import type { Credential } from '../credentials/credential.js';
import { FileStore } from '../credentials/file-store.js';
import type { Http } from '../http/http.js';
import { refusalText } from './grant-outcome.js';
import { connectIssuer } from './issuer.js';
import { toCredential } from './tokens.js';

export interface RedeemOptions {
  readonly url: string;
  readonly refreshToken: Secret;
  /** Where it is kept, as a file. */
  readonly folder: string;
  readonly userId: number | undefined;
  readonly http: Http;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function redeemLogin(options: RedeemOptions): Promise<Credential> {
  const { url, refreshToken, folder, userId, http, clock, signal } = options;
  const issuer = await connectIssuer({ url, clientId: CLI_CLIENT_ID, http, clock, signal });
  const outcome = await issuer.grant(
    GRANT_TYPES.refreshToken,
    { refresh_token: refreshToken.reveal() },
    { scopes: [], signal },
  );
  if (outcome.kind === 'failed') throw outcome.failure;
  if (outcome.kind !== 'granted')
    throw new AilsdError('LOGIN_FAILED', `the server refused the login (${refusalText(outcome)})`);
  const credential = toCredential(outcome.tokens, url, CLI_CLIENT_ID);
  await new FileStore({ path: folder, userId }, clock).set(credential, { makeCurrent: true });
  return credential;
}
