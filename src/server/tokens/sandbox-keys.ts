/** The key of each sandbox, worked out from one master: no key of a sandbox is ever at rest beside it. */
import { hkdfSync } from 'node:crypto';
import type { Secret } from '../../base/secret.js';
import type { SandboxId } from '../../protocol/ids.js';

export const SANDBOX_KEY_BYTES = 32;

/** Its name among the server's secrets. */
export const SANDBOX_MASTER = 'sandbox-master';

/** How many are remembered; the others are worked out again. */
const REMEMBERED_KEYS = 1_000;

export class SandboxKeys {
  readonly #master: Secret;
  readonly #remembered = new Map<string, Uint8Array>();

  /** The master is base64url text of 32 random bytes, as `server_secrets` keeps it. */
  constructor(master: Secret) {
    const bytes = Buffer.from(master.reveal(), 'base64url');
    if (bytes.length !== SANDBOX_KEY_BYTES) throw new RangeError('the master key has 32 bytes');
    this.#master = master;
  }

  /** The same sandbox and generation always have the same key; another generation has another, unrelated one. */
  keyOf(sandboxId: SandboxId, generation: number): Uint8Array {
    const name = `${sandboxId} ${generation}`;
    const remembered = this.#remembered.get(name);
    if (remembered !== undefined) return remembered;
    const key = this.#workOut(sandboxId, generation);
    if (this.#remembered.size >= REMEMBERED_KEYS) this.#remembered.clear();
    this.#remembered.set(name, key);
    return key;
  }

  #workOut(sandboxId: SandboxId, generation: number): Uint8Array {
    const master = Buffer.from(this.#master.reveal(), 'base64url');
    const info = `ailsd sandbox key ${generation}`;
    return new Uint8Array(hkdfSync('sha256', master, sandboxId, info, SANDBOX_KEY_BYTES));
  }
}

/** As `access.json` writes a key. */
export function formatKey(key: Uint8Array): string {
  return Buffer.from(key).toString('base64url');
}
