/** What `ailsd token` does with a good login in the file store, and with `modules` what it loaded for it. */
import { systemClock } from '../../../../src/base/clock.js';
import { chooseStore } from '../../../../src/client/credentials/choose-store.js';
import { findCredentialSource } from '../../../../src/client/credentials/headless.js';

async function main([configFolder, modules]: readonly string[]): Promise<void> {
  const variable = (): undefined => undefined;
  if (findCredentialSource(variable) !== undefined) return;
  using chosen = await chooseStore({
    wanted: 'auto',
    purpose: 'use',
    configFolder,
    variable,
    platform: process.platform,
    userId: process.getuid?.(),
    keychainProgram: 'none',
    clock: systemClock,
  });
  const credential = await chosen.store.current('https://issuer.test');
  const loaded = modules === 'modules' ? Reflect.get(process, 'moduleLoadList') : undefined;
  const text = JSON.stringify({ token: credential?.accessToken.reveal(), loaded });
  (await import('node:fs')).writeSync(1, text);
}

void main(process.argv.slice(2));
