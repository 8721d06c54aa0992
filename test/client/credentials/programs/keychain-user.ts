/** Asks a keychain for something and waits for as long as that takes: `keychain-user PROGRAM`. */
import { systemClock } from '../../../../src/base/clock.js';
import { ChildKeychain } from '../../../../src/client/credentials/keychain-child.js';

const keychain = new ChildKeychain({
  program: process.argv[2] ?? '',
  variable: (name) => process.env[name],
  platform: process.platform,
  userId: process.getuid?.(),
  clock: systemClock,
  budgetMs: 600_000,
});
void keychain.getPassword('ailsd-test', 'anything');
