/** The native keychain itself: the user's own keytar if there is one, else the driver we ship. Blocks: only for a child. */
import { Entry, findCredentials } from '@napi-rs/keyring';
import type { Keychain, KeychainEntry } from './keychain.js';

export async function openDriver(): Promise<Keychain> {
  return (await openKeytar()) ?? shipped;
}

/** Without the pin Linux falls back to the kernel's keyring, which forgets at reboot. */
const PINNED = { linux: { store: 'secret-service' } } as const;

const shipped: Keychain = {
  async getPassword(service, account) {
    return new Entry(service, account, PINNED).getPassword();
  },
  async setPassword(service, account, password) {
    new Entry(service, account, PINNED).setPassword(password);
  },
  async deletePassword(service, account) {
    return new Entry(service, account, PINNED).deleteCredential();
  },
  async findCredentials(service) {
    // Searching can't be pinned; what can is made first, and throws where the search would look elsewhere.
    new Entry(service, 'none', PINNED);
    return findCredentials(service);
  },
  async findPassword(service) {
    const [first] = await shipped.findCredentials(service);
    return first?.password ?? null;
  },
};

/** Not ours to install, so its name is not one the compiler or the bundler should follow. */
const KEYTAR: string = 'keytar';

async function openKeytar(): Promise<Keychain | undefined> {
  let loaded: unknown;
  try {
    loaded = await import(KEYTAR);
  } catch {
    return undefined;
  }
  const call = caller(loaded);
  if (call === undefined) return undefined;
  return {
    getPassword: async (service, account) =>
      textOrNull(await call('getPassword', service, account)),
    setPassword: async (service, account, password) => {
      await call('setPassword', service, account, password);
    },
    deletePassword: async (service, account) =>
      (await call('deletePassword', service, account)) === true,
    findCredentials: async (service) => entries(await call('findCredentials', service)),
    findPassword: async (service) => textOrNull(await call('findPassword', service)),
  };
}

type Call = (name: keyof Keychain, ...given: string[]) => Promise<unknown>;

/** A CommonJS module's functions are on its default export, and on the module itself if Node could tell. */
function caller(loaded: unknown): Call | undefined {
  if (typeof loaded !== 'object' || loaded === null) return undefined;
  const inner: unknown = 'default' in loaded ? loaded.default : loaded;
  if (typeof inner !== 'object' || inner === null || !('getPassword' in inner)) return undefined;
  return async (name, ...given) => {
    const found: unknown = Reflect.get(inner, name);
    if (typeof found !== 'function') throw new Error(`keytar has no ${name}`);
    return found.apply(inner, given);
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function entries(value: unknown): readonly KeychainEntry[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((one: unknown): KeychainEntry[] => {
    if (typeof one !== 'object' || one === null || !('account' in one)) return [];
    if (!('password' in one)) return [];
    return [{ account: String(one.account), password: String(one.password) }];
  });
}
