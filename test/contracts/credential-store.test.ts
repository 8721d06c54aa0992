import { afterAll, beforeAll, describe, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { FileStore } from '../../src/client/credentials/file-store.js';
import { ChildKeychain } from '../../src/client/credentials/keychain-child.js';
import { KEYCHAIN_SERVICE, KeychainStore } from '../../src/client/credentials/keychain-store.js';
import { MemoryStore } from '../../src/client/credentials/memory-store.js';
import {
  type BuiltProgram,
  buildProgram,
  KEYCHAIN_PROGRAM,
} from '../client/credentials/support/program.js';
import { temporaryFolder } from '../support/cli.js';
import { NO_KEYRING, type Session, startSession } from '../support/keyring.js';
import { describeCredentialStore } from './credential-store.js';

describeCredentialStore('memory', () => ({ store: new MemoryStore() }));

describeCredentialStore('file', () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const again = (): FileStore =>
    new FileStore({ path: `${folder.path}/config`, userId: process.getuid?.() }, systemClock);
  return { store: again(), again };
});

describe.skipIf(NO_KEYRING !== undefined)('with a real gnome-keyring', () => {
  let session: Session;
  let program: BuiltProgram;
  beforeAll(async () => {
    program = await buildProgram(KEYCHAIN_PROGRAM);
    session = await startSession();
    await session.startKeyring('unlocked');
  });
  afterAll(async () => {
    program[Symbol.dispose]();
    await session[Symbol.asyncDispose]();
  });

  const openKeychain = (): ChildKeychain => {
    const keychain = new ChildKeychain({
      program: program.path,
      variable: (name) => session.variables[name],
      platform: process.platform,
      userId: process.getuid?.(),
      clock: systemClock,
      // A story of many calls, not a command.
      budgetMs: 20_000,
    });
    onTestFinished(() => keychain[Symbol.dispose]());
    return keychain;
  };
  const open = (entryCharacters: number) => async () => {
    const keychain = openKeychain();
    for (const { account } of await keychain.findCredentials(KEYCHAIN_SERVICE)) {
      await keychain.deletePassword(KEYCHAIN_SERVICE, account);
    }
    const again = (): KeychainStore => new KeychainStore(openKeychain(), entryCharacters);
    return { store: new KeychainStore(keychain, entryCharacters), again };
  };
  describeCredentialStore('keyring', open(65_536));
  describeCredentialStore('keyring with entries as small as on Windows', open(1_200));
});

if (NO_KEYRING !== undefined) it.skip(`skipped: ${NO_KEYRING}`);
