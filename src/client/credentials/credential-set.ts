/** Several logins and which of them is in use at each issuer, as one value and as one JSON document. No I/O. */
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
import { MOST_CREDENTIALS, type SetOptions } from './credential-store.js';

export class CredentialSet {
  readonly #credentials: readonly Credential[];
  readonly #current: readonly CredentialKey[];

  private constructor(credentials: readonly Credential[], current: readonly CredentialKey[]) {
    this.#credentials = credentials;
    this.#current = current;
  }

  static readonly empty = new CredentialSet([], []);

  get isEmpty(): boolean {
    return this.#credentials.length === 0;
  }

  get(key: CredentialKey): Credential | undefined {
    return this.#credentials.find((credential) => isSameKey(credential, key));
  }

  current(issuer: string): Credential | undefined {
    const marked = this.#current.find((key) => key.issuer === issuer);
    if (marked !== undefined) return this.get(marked);
    const [only, ...others] = this.#credentials.filter((one) => one.issuer === issuer);
    return others.length === 0 ? only : undefined;
  }

  list(): readonly CredentialKey[] {
    return this.#credentials.map(keyOf);
  }

  with(credential: Credential, { makeCurrent = false }: SetOptions = {}): CredentialSet {
    assertKeepable(credential);
    const others = this.#credentials.filter((one) => !isSameKey(one, credential));
    if (others.length >= MOST_CREDENTIALS) {
      throw new AilsdError(
        'CREDENTIALS_UNWRITABLE',
        `${MOST_CREDENTIALS} logins are kept already`,
        {
          hint: 'remove some with `ailsd logout`',
        },
      );
    }
    const current = makeCurrent
      ? [...this.#current.filter((key) => key.issuer !== credential.issuer), keyOf(credential)]
      : this.#current;
    return new CredentialSet([...others, credential], current);
  }

  without(key: CredentialKey): CredentialSet {
    return new CredentialSet(
      this.#credentials.filter((one) => !isSameKey(one, key)),
      this.#current.filter((one) => !isSameKey(one, key)),
    );
  }

  /** Reveals the tokens: only for the place where they are kept. */
  toJson(): string {
    const current = this.#current.map(({ issuer, clientId, account }) => ({
      issuer,
      client_id: clientId,
      account,
    }));
    const credentials = this.#credentials.map(toStored);
    return `${JSON.stringify({ version: FORMAT_VERSION, current, credentials }, null, 1)}\n`;
  }

  /** `broken` is text that holds no set; `newer` is one that only a later release can read. */
  static parse(json: string): ParsedSet {
    const value = parseJson(json);
    if (!isRecord(value)) return { kind: 'broken' };
    const { version, current, credentials } = value;
    if (typeof version === 'number' && version > FORMAT_VERSION) return { kind: 'newer' };
    if (version !== FORMAT_VERSION) return { kind: 'broken' };
    if (!Array.isArray(credentials) || !Array.isArray(current)) return { kind: 'broken' };
    const parsed = credentials.map(parseStored).filter((one) => one !== undefined);
    const marked = current.map(parseKey).filter((one) => one !== undefined);
    if (parsed.length !== credentials.length || parsed.length > MOST_CREDENTIALS) {
      return { kind: 'broken' };
    }
    return { kind: 'set', set: new CredentialSet(parsed, marked) };
  }
}

export type ParsedSet =
  | { readonly kind: 'set'; readonly set: CredentialSet }
  | { readonly kind: 'broken' }
  | { readonly kind: 'newer' };

const FORMAT_VERSION = 1;

/** The parser's own words are dropped: they repeat the text, and that holds tokens. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseKey(value: unknown): CredentialKey | undefined {
  if (!isRecord(value)) return undefined;
  const { issuer, client_id: clientId, account } = value;
  if (typeof issuer !== 'string' || typeof clientId !== 'string') return undefined;
  return typeof account === 'string' ? { issuer, clientId, account } : undefined;
}
