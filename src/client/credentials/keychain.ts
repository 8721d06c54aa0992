/** The system's keychain as keytar's five functions, whatever answers them, and the one test that says whether it works. */
export interface Keychain {
  getPassword(service: string, account: string): Promise<string | null>;
  setPassword(service: string, account: string, password: string): Promise<void>;
  /** Whether it was there. */
  deletePassword(service: string, account: string): Promise<boolean>;
  findCredentials(service: string): Promise<readonly KeychainEntry[]>;
  /** Any one of the service's. */
  findPassword(service: string): Promise<string | null>;
}

export interface KeychainEntry {
  readonly account: string;
  readonly password: string;
}

/** A read alone says nothing: a locked or absent keychain answers it with "no entry". Throws what the keychain throws. */
export async function probeKeychain(keychain: Keychain, value: string): Promise<void> {
  await keychain.setPassword(PROBE_SERVICE, value, value);
  const read = await keychain.getPassword(PROBE_SERVICE, value);
  await keychain.deletePassword(PROBE_SERVICE, value);
  if (read !== value) throw new Error('what was written did not come back');
}

const PROBE_SERVICE = 'ailsd-probe';
