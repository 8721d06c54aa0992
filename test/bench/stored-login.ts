/** A home with a valid login in the file store, as `ailsd login` leaves it, for measuring what reading it costs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/base/secret.js';
import { CredentialSet } from '../../src/client/credentials/credential-set.js';

export function storedLogin(
  url: string,
): Disposable & { readonly env: Readonly<Record<string, string>> } {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-bench-'));
  const now = Date.now();
  const set = CredentialSet.empty.with(
    {
      issuer: url,
      clientId: 'ailsd-cli',
      account: 'usr_bench',
      scopes: ['read:sandbox'],
      accessToken: new Secret('x'.repeat(900)),
      accessExpiresAtMs: now + 900_000,
      refreshToken: new Secret('y'.repeat(43)),
      obtainedAtMs: now,
    },
    { makeCurrent: true },
  );
  writeFileSync(join(folder, 'credentials.json'), set.toJson(), { mode: 0o600 });
  return {
    env: { AILSD_CONFIG_DIR: folder, AILSD_URL: url, AILSD_CREDENTIAL_STORE: 'file' },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
