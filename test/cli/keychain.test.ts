import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd } from '../support/cli.js';
import { startFakeIssuer } from '../support/fake-issuer.js';
import { NO_KEYRING } from '../support/keyring.js';
import { loginHome, quickly } from '../support/stored-login.js';
import { USELESS_KEYCHAINS } from '../support/useless-keychains.js';

/** A command's own start is not the keychain's time; on a busy machine it is most of it. */
async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const begin = performance.now();
  const result = await work;
  return { result, ms: performance.now() - begin };
}

describe.each(Object.entries(USELESS_KEYCHAINS))('logging in with %s', (_, { real, make }) => {
  const can = it.skipIf(real && NO_KEYRING !== undefined);

  can(
    proves('keyring: refused before a code is asked for, and nothing is kept', 'OA-10'),
    async () => {
      await using issuer = await startFakeIssuer();
      issuer.script = quickly(issuer);
      using home = loginHome(issuer.url);
      const env = { ...home.env, ...(await make()), AILSD_CREDENTIAL_STORE: 'keyring' };
      const { ms: own } = await timed(ailsd(['version'], { env }));
      const { result, ms } = await timed(ailsd(['login'], { env }));
      expect(result).toMatchObject({ code: 4, stdout: '' });
      expect(result.stderr).toMatch(
        /^ailsd: KEYCHAIN_UNAVAILABLE: .+\n {2}hint: .*AILSD_CREDENTIAL_STORE=file/,
      );
      expect(ms - own).toBeLessThan(3_000);
      expect(issuer.requests.filter(({ path }) => path === '/device/code')).toEqual([]);
      expect(existsSync(home.folder) ? readdirSync(home.folder) : []).toEqual([]);
    },
  );

  can(
    proves('auto: kept in a private file, said before it starts and by whoami each time', 'OA-10'),
    // A time: a busy machine gets another chance.
    { retry: 2 },
    async () => {
      await using issuer = await startFakeIssuer();
      issuer.script = quickly(issuer);
      using home = loginHome(issuer.url);
      const env = { ...home.env, ...(await make()), AILSD_CREDENTIAL_STORE: 'auto' };
      const login = await ailsd(['login'], { env });
      expect(login, login.stderr).toMatchObject({ code: 0 });
      const [first = '', ...after] = login.stderr.split('\n');
      expect(first).toMatch(/^ailsd: .*credentials\.json, readable only by you .*no keychain/);
      expect(after.join('\n')).toContain('WDJB-MJHT');
      expect(readFileSync(`${home.folder}/credentials.json`, 'utf8')).toContain(issuer.url);
      for (let time = 0; time < 2; time += 1) {
        const { result, ms } = await timed(ailsd(['whoami'], { env }));
        expect(result).toMatchObject({ code: 0 });
        expect(result.stdout).toContain(`${home.folder}/credentials.json`);
        // The choice is remembered: no keychain is asked any more.
        expect(ms).toBeLessThan(3_000);
      }
    },
  );
});
