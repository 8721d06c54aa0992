/** The issuer's signing keys: which there are, and a new one for tokens from now on. */
import { type IssuerKey, IssuerKeys } from '../store/keys.js';
import { createSigningKey, RETIRED_KEY_SECONDS } from '../tokens/signing-keys.js';
import type { Inputs } from './config.js';
import { audited, inPlace, timestamp, type World } from './place.js';

/** Tokens of the key before stay valid: it is published until the last of them has ended. */
export async function rotateKeys(input: Inputs['keys-rotate'], world: World): Promise<object> {
  return inPlace(input.dir, world, async ({ db }) => {
    const key = await createSigningKey();
    const keys = new IssuerKeys(db);
    await keys.rotate({ purpose: 'signing', ...key });
    const removed = await keys.removeRetired('signing', RETIRED_KEY_SECONDS * 1000);
    await audited(db, async () => ({
      result: undefined,
      record: { event: 'signing_key_rotated', details: { kid: key.kid, removed } },
    }));
    return { kid: key.kid, items: (await keys.list('signing')).map(toWire) };
  });
}

export async function listKeys(input: Inputs['keys-list'], world: World): Promise<object> {
  return inPlace(input.dir, world, async ({ db }) => {
    const keys = await new IssuerKeys(db).list('signing');
    return { items: keys.map(toWire), next_cursor: null };
  });
}

function toWire({ kid, createdAtMs, retiredAtMs }: IssuerKey): object {
  return {
    kid,
    state: retiredAtMs === undefined ? 'current' : 'retired',
    created_at: timestamp(createdAtMs),
    retired_at: retiredAtMs === undefined ? null : timestamp(retiredAtMs),
    /** Not shown at `/jwks` from then on. */
    published_until:
      retiredAtMs === undefined ? null : timestamp(retiredAtMs + RETIRED_KEY_SECONDS * 1000),
  };
}
