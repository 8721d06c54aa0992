/** Decides where logins are kept, quickly and before a login begins, and remembers it: asking a keychain is slow. */
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import { isRecord } from './credential.js';
import type { CredentialStore, StoreKind } from './credential-store.js';
import { CREDENTIAL_FILE, FileStore } from './file-store.js';
import {
  type PrivateFolder,
  readPrivateFile,
  replacePrivateFile,
  uniqueName,
} from './private-file.js';

export interface ChooseOptions {
  /** AILSD_CREDENTIAL_STORE. */
  readonly wanted: 'auto' | StoreKind;
  /**
   * `use` looks where logins were put before and never tests a keychain; `login` makes sure that one can be put there,
   * and says where that is.
   */
  readonly purpose: 'use' | 'login';
  /** Absent where there is no home and no variable names one. */
  readonly configFolder: string | undefined;
  readonly variable: (name: string) => string | undefined;
  readonly platform: NodeJS.Platform;
  readonly userId: number | undefined;
  /** The built program `probe-keychain`. */
  readonly keychainProgram: string;
  readonly clock: Clock;
}

export interface ChosenStore extends Disposable {
  readonly store: CredentialStore;
  /** One line for stderr, before a login starts. */
  readonly announcement?: string | undefined;
}

/** Throws KEYCHAIN_UNAVAILABLE where only a keychain would do, CREDENTIALS_UNSAFE or CREDENTIALS_UNWRITABLE for a file. */
export function chooseStore(options: ChooseOptions): Promise<ChosenStore> {
  return options.purpose === 'login' ? chooseForLogin(options) : chooseForUse(options);
}

/** Holds no secret, but lies beside them: it is as private as they are. */
export const CHOICE_FILE = 'credential-store.json';

async function chooseForUse(options: ChooseOptions): Promise<ChosenStore> {
  const { wanted } = options;
  if (wanted === 'keyring') return (await openKeychain(options)).chosen;
  if (wanted === 'memory') return memory();
  const folder = folderOf(options);
  if (wanted === 'file') return file(options);
  // Where nothing was ever kept there is nothing to find, and no keychain is woken for it.
  if (folder === undefined) return memory();
  return remembered(folder) === 'keyring' ? (await openKeychain(options)).chosen : file(options);
}

async function chooseForLogin(options: ChooseOptions): Promise<ChosenStore> {
  const { wanted } = options;
  if (wanted === 'memory') {
    return {
      ...(await memory()),
      announcement: 'this login will be forgotten when the program ends',
    };
  }
  if (wanted === 'file') return fileForLogin(options, 'as asked');
  const folder = folderOf(options);
  if (wanted === 'auto' && folder !== undefined && remembered(folder) === 'file') {
    return fileForLogin(
      options,
      'as before; AILSD_CREDENTIAL_STORE=keyring tries the keychain again',
    );
  }
  const { chosen, probe } = await openKeychain(options);
  try {
    await probe();
  } catch (error) {
    chosen[Symbol.dispose]();
    if (wanted === 'keyring' || !isUnavailable(error)) throw error;
    return fileForLogin(options, error.message);
  }
  remember(options, 'keyring');
  return { ...chosen, announcement: `the login will be kept in ${chosen.store.place}` };
}

async function openKeychain(options: ChooseOptions): Promise<{
  readonly chosen: ChosenStore;
  readonly probe: () => Promise<void>;
}> {
  const [{ ChildKeychain }, { KeychainStore, entryCharacters }, { probeKeychain }] =
    await Promise.all([
      import('./keychain-child.js'),
      import('./keychain-store.js'),
      import('./keychain.js'),
    ]);
  const { keychainProgram: program, variable, platform, userId, clock } = options;
  const keychain = new ChildKeychain({ program, variable, platform, userId, clock });
  const store = new KeychainStore(keychain, entryCharacters(platform));
  return {
    chosen: { store, [Symbol.dispose]: () => keychain[Symbol.dispose]() },
    probe: () => probeKeychain(keychain, uniqueName()),
  };
}

function fileForLogin(options: ChooseOptions, why: string): ChosenStore {
  const chosen = file(options);
  const folder = folderOf(options);
  // What is there now must be safe to replace, and writing must work: better known before the login than after it.
  if (folder !== undefined) readPrivateFile(folder, CREDENTIAL_FILE);
  remember(options, 'file');
  const announcement = `the login will be kept in ${chosen.store.place}, readable only by you (${why})`;
  return { ...chosen, announcement };
}

function file(options: ChooseOptions): ChosenStore {
  const folder = folderOf(options);
  if (folder !== undefined) return withoutClosing(new FileStore(folder, options.clock));
  throw new AilsdError('CREDENTIALS_UNWRITABLE', 'there is no home folder to keep a login in', {
    hint: 'set AILSD_CONFIG_DIR to a folder of your own',
  });
}

async function memory(): Promise<ChosenStore> {
  const { MemoryStore } = await import('./memory-store.js');
  return withoutClosing(new MemoryStore());
}

function withoutClosing(store: CredentialStore): ChosenStore {
  return { store, [Symbol.dispose]: () => undefined };
}

function folderOf({ configFolder, userId }: ChooseOptions): PrivateFolder | undefined {
  return configFolder === undefined ? undefined : { path: configFolder, userId };
}

function isUnavailable(error: unknown): error is AilsdError {
  // A probe whose words did not come back is as good as no keychain.
  return (
    error instanceof Error &&
    (!(error instanceof AilsdError) || error.code === 'KEYCHAIN_UNAVAILABLE')
  );
}

function remembered(folder: PrivateFolder): 'file' | 'keyring' | undefined {
  const text = readPrivateFile(folder, CHOICE_FILE);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const store = isRecord(value) ? value['store'] : undefined;
    return store === 'file' || store === 'keyring' ? store : undefined;
  } catch {
    return undefined;
  }
}

function remember(options: ChooseOptions, store: 'file' | 'keyring'): void {
  const folder = folderOf(options);
  if (folder === undefined) return;
  replacePrivateFile(folder, CHOICE_FILE, `${JSON.stringify({ version: 1, store })}\n`);
}
