/** Opaque sandbox tokens: random text that says nothing, known to the store by its hash alone. */
import { createHash } from 'node:crypto';
import { Secret } from '../../base/secret.js';
import type { RandomFill } from '../../protocol/ids.js';

const TOKEN_BYTES = 32;

/** Tells them from JWTs, and lets scanners find one that leaked. */
const PREFIX = 'ailsd_opaque_';

export function createOpaqueToken(random: RandomFill): Secret {
  const bytes = random(new Uint8Array(TOKEN_BYTES));
  return new Secret(PREFIX + Buffer.from(bytes).toString('base64url'));
}

export function isOpaqueToken(token: Secret): boolean {
  return SHAPE.test(token.reveal());
}

const SHAPE = /^ailsd_opaque_[\w-]{43}$/;

/** 64 lower-case hexadecimal digits: its name at `/internal/tokens/{token_hash}`. */
export function hashOpaqueToken(token: Secret): string {
  return createHash('sha256').update(token.reveal()).digest('hex');
}
