/** Whose tokens count at one sandbox: read from `access.json`, which is looked at before anybody is let in. */
import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import type { Secret } from '../../../base/secret.js';
import type { SandboxId, ThreadId } from '../../../protocol/ids.js';
import { parse } from '../../../protocol/parse.js';
import { sandboxAccessFile } from '../../../protocol/shapes/sandboxd.js';
import { verifySandboxToken } from '../../tokens/sandbox-token.js';
import { type Identity, toIdentity } from './identity.js';

export interface AccessParts {
  readonly path: string;
  readonly sandboxId: SandboxId;
  readonly threadId: ThreadId;
  readonly clock: Clock;
  readonly logger: Logger;
}

export type Admission =
  | { readonly kind: 'valid'; readonly identity: Identity }
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid' }
  /** Nobody can be let in: it is not known whose tokens count. */
  | { readonly kind: 'unknown' };

interface Known {
  readonly generation: number;
  readonly keys: readonly Uint8Array[];
  /** From when on the token of this id does not count, epoch ms. */
  readonly ended: ReadonlyMap<string, number>;
}

export class Access {
  readonly #parts: AccessParts;
  #known: Known | undefined;
  #stamp = '';
  #revision = 0;

  constructor(parts: AccessParts) {
    this.#parts = parts;
    this.refresh();
  }

  /** Of the file in force; 0 when there is none. */
  get generation(): number {
    return this.#known?.generation ?? 0;
  }

  /** Changes whenever what is in force does. */
  get revision(): number {
    return this.#revision;
  }

  admit(token: Secret): Admission {
    this.refresh();
    const known = this.#known;
    if (known === undefined) return { kind: 'unknown' };
    const { sandboxId, threadId, clock } = this.#parts;
    const nowMs = clock.now();
    const verdict = verifySandboxToken(token, known.keys, { sandboxId, threadId, nowMs });
    if (verdict.kind !== 'valid') return { kind: verdict.kind };
    const { claims, capabilities } = verdict;
    if (this.isEnded(claims.jti)) return { kind: 'invalid' };
    return { kind: 'valid', identity: toIdentity(claims, capabilities, token) };
  }

  isEnded(jti: string): boolean {
    const from = this.#known?.ended.get(jti);
    return from !== undefined && from <= this.#parts.clock.now();
  }

  /** Looks whether the file is another one. A file that can't be read lets nobody in. */
  refresh(): void {
    const { path, logger, sandboxId } = this.#parts;
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      const stamp = `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
      if (stamp === this.#stamp) return;
      this.#use(readAccess(path));
      this.#stamp = stamp;
    } catch (error) {
      if (this.#known !== undefined || this.#stamp !== BROKEN)
        logger.error('access.json can not be read', { sandbox_id: sandboxId, error });
      if (this.#known !== undefined) this.#revision += 1;
      this.#known = undefined;
      this.#stamp = BROKEN;
    }
  }

  /** An older one never replaces a newer. */
  #use(read: Known): void {
    if (this.#known !== undefined && read.generation < this.#known.generation) return;
    this.#known = read;
    this.#revision += 1;
  }
}

const BROKEN = 'broken';

function readAccess(path: string): Known {
  const parsed = parse(
    sandboxAccessFile,
    JSON.parse(readFileSync(path, 'utf8')),
    'CONFIG_INVALID',
    'access.json: ',
  );
  if (!parsed.ok) throw parsed.error;
  const { generation, keys, ended } = parsed.value;
  return {
    generation,
    keys: keys.map((key) => Buffer.from(key, 'base64url')),
    ended: new Map(ended.map(({ jti, from }) => [jti, from])),
  };
}
