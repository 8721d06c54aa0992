/** Under which account a sandbox's processes run: of its own where we may choose, else the daemon's behind a user namespace. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { SandboxId } from '../../../protocol/ids.js';

export type Account =
  /** We are root: a real account that nothing else on the host uses. */
  | { readonly kind: 'own'; readonly uid: number; readonly gid: number }
  /** We are not: our own account, seen as another from inside. */
  | { readonly kind: 'mapped'; readonly uid: typeof INSIDE_UID; readonly gid: typeof INSIDE_UID };

/** How the daemon's own account is called inside where it is mapped. */
const INSIDE_UID = 1000;

/** Of the holder, which is the second process inside, as the outer user namespace sees it. */
export const HOLDER_USER_NAMESPACE = '/proc/2/ns/user';

/** Where accounts of sandboxes are taken from: above what systemd and container tools hand out, or what a container's root was given. */
export interface AccountRange {
  readonly first: number;
  readonly size: number;
}

const WIDE: AccountRange = { first: 0x7000_0000, size: 0x0100_0000 };
const NARROW: AccountRange = { first: 20_000, size: 40_000 };

/** `undefined`: not even an ordinary container's range is ours. */
export async function accountRange(): Promise<AccountRange | undefined> {
  const map = await readFile('/proc/self/uid_map', 'utf8');
  return [WIDE, NARROW].find(({ first, size }) =>
    map.split('\n').some((line) => {
      const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return inside <= first && first + size <= inside + count;
    }),
  );
}

/** The same id has the same account for ever, without anything to remember. Two that meet are still in namespaces of their own. */
export function ownAccount(id: SandboxId, range: AccountRange): Account {
  const uid = range.first + (createHash('sha256').update(id).digest().readUInt32BE(0) % range.size);
  return { kind: 'own', uid, gid: uid };
}

export const mappedAccount: Account = { kind: 'mapped', uid: INSIDE_UID, gid: INSIDE_UID };
