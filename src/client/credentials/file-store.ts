/** Keeps logins in one 0600 file: read without a lock, written by one process at a time. */
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Credential, CredentialKey } from './credential.js';
import { CredentialSet } from './credential-set.js';
import type { CredentialStore, SetOptions } from './credential-store.js';
import {
  makeFolder,
  type PrivateFolder,
  type PrivateRoom,
  readPrivateFile,
  removePrivateFile,
  replacePrivateFile,
  reserveRoom,
  sweepTemporaries,
  unwritable,
} from './private-file.js';

export const CREDENTIAL_FILE = 'credentials.json';

export class FileStore implements CredentialStore {
  readonly kind = 'file';
  readonly #folder: PrivateFolder;
  readonly #clock: Clock;
  #room: PrivateRoom | undefined;

  constructor(folder: PrivateFolder, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  get place(): string {
    return `${this.#folder.path}/${CREDENTIAL_FILE}`;
  }

  async get(key: CredentialKey): Promise<Credential | undefined> {
    return this.#read().get(key);
  }

  async current(issuer: string): Promise<Credential | undefined> {
    return this.#read().current(issuer);
  }

  async set(credential: Credential, options?: SetOptions): Promise<void> {
    await this.#change((set) => set.with(credential, options));
  }

  async reserve(key: CredentialKey): Promise<Disposable> {
    const { shortName } = await import('./refresh-lock.js');
    const now = readPrivateFile(this.#folder, CREDENTIAL_FILE) ?? '';
    const bytes = Buffer.byteLength(now) + MARGIN_BYTES;
    const room = reserveRoom(this.#folder, `${CREDENTIAL_FILE}.${shortName(key)}.room`, bytes);
    this.#room = room;
    return {
      [Symbol.dispose]: () => {
        this.#room = undefined;
        room[Symbol.dispose]();
      },
    };
  }

  async delete(key: CredentialKey): Promise<boolean> {
    // Without a look first, a logout of nobody would make a folder and a lock.
    if (this.#read().get(key) === undefined) return false;
    let was = false;
    await this.#change((set) => {
      was = set.get(key) !== undefined;
      return set.without(key);
    });
    return was;
  }

  async list(): Promise<readonly CredentialKey[]> {
    return this.#read().list();
  }

  #read(): CredentialSet {
    const text = readPrivateFile(this.#folder, CREDENTIAL_FILE);
    if (text === undefined) return CredentialSet.empty;
    const parsed = CredentialSet.parse(text);
    switch (parsed.kind) {
      case 'set':
        return parsed.set;
      case 'broken':
        throw new AilsdError('NOT_LOGGED_IN', `${this.place} holds no logins that can be read`);
      case 'newer':
        throw new AilsdError('NOT_LOGGED_IN', `${this.place} was written by a newer ailsd`, {
          hint: 'upgrade ailsd, or set AILSD_CONFIG_DIR to another folder and log in there',
        });
    }
  }

  /**
   * Reads again under the lock, so that nobody's change is lost. It can't be called off: what is about to be kept may
   * be a token whose predecessor is spent already.
   */
  async #change(change: (set: CredentialSet) => CredentialSet): Promise<void> {
    const { withLock } = await import('./process-lock.js');
    try {
      makeFolder(this.#folder);
    } catch (error) {
      throw unwritable(this.place, error);
    }
    const lock = {
      folder: this.#folder.path,
      name: 'credentials',
      clock: this.#clock,
      waitMs: LOCK_WAIT_MS,
    };
    await withLock(lock, async () => {
      const changed = change(this.#readForChange());
      sweepTemporaries(this.#folder, CREDENTIAL_FILE);
      if (changed.isEmpty) removePrivateFile(this.#folder, CREDENTIAL_FILE);
      else replacePrivateFile(this.#folder, CREDENTIAL_FILE, changed.toJson(), this.#takeRoom());
    });
  }

  /** Good for one write: the file that replaces the old one. */
  #takeRoom(): PrivateRoom | undefined {
    const room = this.#room;
    this.#room = undefined;
    return room;
  }

  /** A file that nobody can read is worth nothing: a new login takes its place. A newer release's is not ours to end. */
  #readForChange(): CredentialSet {
    const text = readPrivateFile(this.#folder, CREDENTIAL_FILE);
    const parsed = text === undefined ? undefined : CredentialSet.parse(text);
    if (parsed?.kind !== 'newer') return parsed?.kind === 'set' ? parsed.set : CredentialSet.empty;
    throw new AilsdError('CREDENTIALS_UNWRITABLE', `${this.place} was written by a newer ailsd`, {
      hint: 'upgrade ailsd, or set AILSD_CONFIG_DIR to another folder',
    });
  }
}

/** By how much new tokens may be longer than the old ones. */
const MARGIN_BYTES = 16 * 1024;
/** Others hold the lock for a few milliseconds each. */
const LOCK_WAIT_MS = 10_000;
