/** The SHA-256 of files, which is their ETag: worked out when it is asked for, and remembered while the file is surely the same. */
import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';

export const READ_BYTES = 256 * 1024;
const MOST_REMEMBERED = 8_192;
/** A file that was changed less than this ago may be changed again without its times telling: some disks count in seconds. */
const SETTLED_MS = 2_500;
const TRIES = 3;

export class ContentHashes {
  readonly #clock: Clock;
  readonly #known = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of what is in it now. One that never stays the same while it is read is BACKEND_UNAVAILABLE. */
  async of(handle: FileHandle, signal: AbortSignal): Promise<HashedFile> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const status = await handle.stat({ bigint: true });
      const key = identityOf(status);
      const known = this.#known.get(key);
      if (known !== undefined) return { sha256: known, status };
      const sha256 = await hashOf(handle, signal);
      if (identityOf(await handle.stat({ bigint: true })) !== key) continue;
      if (Number(status.ctimeMs) + SETTLED_MS < this.#clock.now()) this.#remember(key, sha256);
      return { sha256, status };
    }
    throw new AilsdError('BACKEND_UNAVAILABLE', 'the file changes while it is read');
  }

  #remember(key: string, sha256: string): void {
    this.#known.set(key, sha256);
    if (this.#known.size <= MOST_REMEMBERED) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      break;
    }
  }
}

export interface HashedFile {
  readonly sha256: string;
  readonly status: BigIntStats;
}

export function etagOf(sha256: string): string {
  return `"${sha256}"`;
}

function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

async function hashOf(handle: FileHandle, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
