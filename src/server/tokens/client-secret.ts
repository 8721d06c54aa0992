/** Secrets of OAuth clients: made here, shown once, kept as a hash. They are random, so a fast hash is enough. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Secret } from '../../base/secret.js';

const SECRET_BYTES = 32;

/** The prefix lets scanners find one that leaked. */
const PREFIX = 'ailsd_secret_';

export function createClientSecret(): Secret {
  return new Secret(PREFIX + randomBytes(SECRET_BYTES).toString('base64url'));
}

/** `$sha256$HASH`, in base64url. */
export function hashClientSecret(secret: Secret): Secret {
  return new Secret(`$sha256$${digest(secret).toString('base64url')}`);
}

/** False too for a hash of another form. */
export function verifyClientSecret(secret: Secret, stored: Secret): boolean {
  const hash = STORED.exec(stored.reveal())?.[1];
  return hash !== undefined && timingSafeEqual(Buffer.from(hash, 'base64url'), digest(secret));
}

const STORED = /^\$sha256\$([\w-]{43})$/;

function digest(secret: Secret): Buffer {
  return createHash('sha256').update(secret.reveal()).digest();
}
