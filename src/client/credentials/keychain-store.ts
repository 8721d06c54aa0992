/** Keeps each login as an entry of the keychain, split over several where an entry holds too little. */
import { AilsdError } from '../../protocol/errors.js';
import {
  assertKeepable,
  type Credential,
  type CredentialKey,
  isRecord,
  isSameKey,
  keyOf,
  parseStored,
  toStored,
} from './credential.js';
import type { CredentialStore, SetOptions } from './credential-store.js';
import type { Keychain } from './keychain.js';

export const KEYCHAIN_SERVICE = 'ailsd';

/** Windows holds 2,560 bytes an entry and takes two for each character; elsewhere this is only a bound. */
export function entryCharacters(platform: NodeJS.Platform): number {
  return platform === 'win32' ? 1_200 : 65_536;
}

export class KeychainStore implements CredentialStore {
  readonly kind = 'keyring';
  readonly place = "the system's keychain";
  readonly #keychain: Keychain;
  readonly #entryCharacters: number;

  constructor(keychain: Keychain, maxEntryCharacters: number) {
    this.#keychain = keychain;
    this.#entryCharacters = maxEntryCharacters;
  }

  async get(key: CredentialKey): Promise<Credential | undefined> {
    const name = loginName(key);
    for (let attempt = 0; attempt < READS; attempt += 1) {
      const head = await this.#keychain.getPassword(KEYCHAIN_SERVICE, name);
      if (head === null) return undefined;
      const text = await this.#whole(name, head);
      const credential = text === undefined ? undefined : parseText(text);
      if (credential !== undefined && isSameKey(credential, key)) return credential;
      // A part may have gone because the login was replaced meanwhile: the head tells which parts are its.
    }
    throw new AilsdError('NOT_LOGGED_IN', 'the keychain holds a login that cannot be read');
  }

  async current(issuer: string): Promise<Credential | undefined> {
    const marked = await this.#keychain.getPassword(KEYCHAIN_SERVICE, currentName(issuer));
    const key = marked === null ? undefined : parseLoginName(marked);
    if (key !== undefined) return this.get(key);
    const [only, ...others] = (await this.list()).filter((one) => one.issuer === issuer);
    return only === undefined || others.length > 0 ? undefined : this.get(only);
  }

  async set(credential: Credential, { makeCurrent = false }: SetOptions = {}): Promise<void> {
    assertKeepable(credential);
    const name = loginName(credential);
    const before = await this.#keychain.getPassword(KEYCHAIN_SERVICE, name);
    const old = before === null ? undefined : parseHead(before);
    const text = JSON.stringify({ version: FORMAT_VERSION, ...toStored(credential) });
    // ASCII, so that a character is a byte and no cut falls inside one.
    const parts = cut(toAscii(text), this.#entryCharacters);
    const [whole = '', ...more] = parts;
    if (more.length === 0) {
      await this.#write(name, whole);
    } else {
      // Under names that the login there now does not use: it stays whole until the new head takes its place.
      const generation = old?.generation === 'a' ? 'b' : 'a';
      for (const [index, part] of parts.entries()) {
        await this.#write(partName(name, generation, index), part);
      }
      await this.#write(
        name,
        JSON.stringify({ version: FORMAT_VERSION, generation, parts: parts.length }),
      );
    }
    await this.#deleteParts(name, old);
    if (makeCurrent) await this.#write(currentName(credential.issuer), name);
  }

  async delete(key: CredentialKey): Promise<boolean> {
    const name = loginName(key);
    const head = await this.#keychain.getPassword(KEYCHAIN_SERVICE, name);
    const was = await this.#keychain.deletePassword(KEYCHAIN_SERVICE, name);
    await this.#deleteParts(name, head === null ? undefined : parseHead(head));
    const marked = await this.#keychain.getPassword(KEYCHAIN_SERVICE, currentName(key.issuer));
    if (marked === name) {
      await this.#keychain.deletePassword(KEYCHAIN_SERVICE, currentName(key.issuer));
    }
    return was;
  }

  async list(): Promise<readonly CredentialKey[]> {
    const entries = await this.#keychain.findCredentials(KEYCHAIN_SERVICE);
    return entries.flatMap(({ account }) => parseLoginName(account) ?? []);
  }

  async #whole(name: string, head: string): Promise<string | undefined> {
    const split = parseHead(head);
    if (split === undefined) return head;
    let text = '';
    for (let index = 0; index < split.parts; index += 1) {
      const part = partName(name, split.generation, index);
      const read = await this.#keychain.getPassword(KEYCHAIN_SERVICE, part);
      if (read === null) return undefined;
      text += read;
    }
    return text;
  }

  async #write(name: string, text: string): Promise<void> {
    await this.#keychain.setPassword(KEYCHAIN_SERVICE, name, text);
  }

  async #deleteParts(name: string, split: Split | undefined): Promise<void> {
    if (split === undefined) return;
    for (let index = 0; index < split.parts; index += 1) {
      const part = partName(name, split.generation, index);
      await this.#keychain.deletePassword(KEYCHAIN_SERVICE, part);
    }
  }
}

const FORMAT_VERSION = 1;
const READS = 3;
const MOST_PARTS = 64;
/** Windows allows 513. */
const MOST_NAME_CHARACTERS = 500;

/** What an entry says whose login is in others. */
interface Split {
  readonly generation: 'a' | 'b';
  readonly parts: number;
}

/** Spaces and `#` are ours: the encoding leaves none. */
function loginName(key: CredentialKey): string {
  const { issuer, clientId, account } = keyOf(key);
  const name = ['login', ...[issuer, clientId, account].map(encodeURIComponent)].join(' ');
  if (name.length <= MOST_NAME_CHARACTERS) return name;
  throw new AilsdError('LOGIN_FAILED', 'the issuer or the account has a name that is too long', {
    hint: 'set AILSD_CREDENTIAL_STORE=file to keep this login',
  });
}

function parseLoginName(name: string): CredentialKey | undefined {
  const [, issuer, clientId, account] = /^login ([^ #]+) ([^ #]+) ([^ #]+)$/.exec(name) ?? [];
  if (issuer === undefined || clientId === undefined || account === undefined) return undefined;
  try {
    return {
      issuer: decodeURIComponent(issuer),
      clientId: decodeURIComponent(clientId),
      account: decodeURIComponent(account),
    };
  } catch {
    return undefined;
  }
}

function currentName(issuer: string): string {
  return `current ${encodeURIComponent(issuer)}`;
}

function partName(name: string, generation: string, index: number): string {
  return `${name}#${generation}${index}`;
}

function parseHead(head: string): Split | undefined {
  const value = parseJson(head);
  if (!isRecord(value) || value['version'] !== FORMAT_VERSION) return undefined;
  const { generation, parts } = value;
  if (generation !== 'a' && generation !== 'b') return undefined;
  if (typeof parts !== 'number' || !Number.isInteger(parts)) return undefined;
  return parts >= 1 && parts <= MOST_PARTS ? { generation, parts } : undefined;
}

function parseText(text: string): Credential | undefined {
  const value = parseJson(text);
  return isRecord(value) && value['version'] === FORMAT_VERSION ? parseStored(value) : undefined;
}

/** The parser's own words are dropped: they repeat the text, and that holds tokens. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toAscii(json: string): string {
  return json.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function cut(text: string, length: number): string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += length) parts.push(text.slice(at, at + length));
  return parts;
}
