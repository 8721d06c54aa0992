/** What a sandbox is told about whose tokens count: worked out from the store whenever it is needed, kept nowhere. */
import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxId } from '../../../protocol/ids.js';
import type { SandboxAccessFile } from '../../../protocol/shapes/sandboxd.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { type AccessRecord, SandboxAccess } from '../../store/sandbox-access.js';
import { formatKey, type SandboxKeys } from '../../tokens/sandbox-keys.js';

export interface AccessParts {
  readonly db: Db;
  readonly keys: SandboxKeys;
  /** Where the broker is reached. */
  readonly url: string;
}

/** As many ended tokens as an access file holds. */
export const ENDED_MAX = 10_000;

/** For a new sandbox as for one that lives. SESSION_NOT_FOUND where there is none. */
export async function readAccessFile(
  parts: AccessParts,
  sandboxId: SandboxId,
): Promise<SandboxAccessFile> {
  const { db, keys, url } = parts;
  const access = await readRecord(db, sandboxId);
  // Read after the generation: what ends in between is in the file already, and comes again with the next.
  const ended = await new IssuedTokens(db).listEnded(
    sandboxId,
    access.keyGeneration,
    ENDED_MAX + 1,
  );
  if (ended.length > ENDED_MAX) {
    await rotateOverflowing(db, access);
    return readAccessFile(parts, sandboxId);
  }
  return {
    generation: access.accessGeneration,
    keys: [formatKey(keys.keyOf(sandboxId, access.keyGeneration))],
    ended: ended.map(({ jti, fromMs, untilMs }) => ({ jti, from: fromMs, until: untilMs })),
    opaque_check_url: `${url}${OPAQUE_CHECK_PATH}`,
  };
}

/** The hash follows after a slash. */
const OPAQUE_CHECK_PATH = '/internal/tokens';

async function readRecord(db: Db, sandboxId: SandboxId): Promise<AccessRecord> {
  const access = await new SandboxAccess(db).find(sandboxId);
  if (access !== undefined) return access;
  throw new AilsdError('SESSION_NOT_FOUND', 'there is no such sandbox');
}

/** More than can be listed have ended: a new key ends them all, and whoever is still welcome gets a new token. */
function rotateOverflowing(db: Db, { sandboxId, tenant }: AccessRecord): Promise<void> {
  return db.transaction(async (tx) => {
    const keyGeneration = await new SandboxAccess(tx).rotateKey(sandboxId);
    // Opaque ones would be listed whatever their key: those that are not known are not active.
    await new IssuedTokens(tx).forgetUnlistable(sandboxId);
    await new Audit(tx).record({
      event: 'key.rotated',
      tenant,
      sandboxId,
      details: { key_generation: keyGeneration ?? null, reason: 'too many tokens had ended' },
    });
  });
}
