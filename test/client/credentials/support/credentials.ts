/** Logins for tests to keep. */
import { isDeepStrictEqual } from 'node:util';
import { Secret } from '../../../../src/base/secret.js';
import type { Credential } from '../../../../src/client/credentials/credential.js';

export function makeCredential(given: Partial<Credential> = {}): Credential {
  return {
    issuer: 'https://issuer.test',
    clientId: 'ailsd-cli',
    account: 'usr_1',
    name: 'Ada',
    tenant: 'default',
    scopes: ['read:sandbox', 'exec:sandbox'],
    threads: ['thr_demo'],
    accessToken: new Secret('access-1'),
    accessExpiresAtMs: 1_900_000_000_000,
    refreshToken: new Secret('refresh-1'),
    obtainedAtMs: 1_800_000_000_000,
    ...given,
  };
}

/** Tokens with their text, so that they can be compared. */
export function revealed(credential: Credential | undefined): object | undefined {
  if (credential === undefined) return undefined;
  const { accessToken, refreshToken, ...rest } = credential;
  return { ...rest, accessToken: accessToken.reveal(), refreshToken: refreshToken?.reveal() };
}

/**
 * A login whose every part says which one it is: two that were mixed, or one that was cut, show. Long enough to need
 * more than one page.
 */
export function numberedCredential(number: number): Credential {
  return makeCredential({
    accessToken: new Secret(`${number}.`.repeat(1_500)),
    refreshToken: new Secret(`${number}.`.repeat(1_500)),
    obtainedAtMs: number,
  });
}

export function isWhole(credential: Credential): boolean {
  const whole = revealed(numberedCredential(credential.obtainedAtMs));
  return isDeepStrictEqual(whole, revealed(credential));
}
