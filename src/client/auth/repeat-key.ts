/**
 * The name under which one refresh may be asked for again, by this process or the next: where the answer was lost on its
 * way, our issuer then gives the same one again, and the login goes on. It is made from the token and a secret of this
 * folder, so that a stolen token alone can't ask again.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Secret } from '../../base/secret.js';
import {
  type PrivateFolder,
  readPrivateFile,
  replacePrivateFile,
} from '../credentials/private-file.js';

export const REPEAT_SECRET_FILE = 'refresh-secret';

/**
 * Only for the holder of the login's lock: it makes the secret when there is none. CREDENTIALS_UNWRITABLE where it can't be
 * kept: a refresh under a name that nobody knows afterwards would count as reuse when it is asked for again.
 */
export function repeatKey(folder: PrivateFolder | undefined, refreshToken: Secret): string {
  const secret = folder === undefined ? newSecret() : keptSecret(folder);
  return createHmac('sha256', secret).update(refreshToken.reveal()).digest('base64url');
}

const SECRET = /^[\w-]{43}$/;

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function keptSecret(folder: PrivateFolder): string {
  const kept = readPrivateFile(folder, REPEAT_SECRET_FILE)?.trim();
  if (kept !== undefined && SECRET.test(kept)) return kept;
  const secret = newSecret();
  replacePrivateFile(folder, REPEAT_SECRET_FILE, `${secret}\n`);
  return secret;
}
