/** When an access token should be renewed, and until when it can still be used. Pure; loaded by every command. */
import type { Credential } from '../credentials/credential.js';

type Life = Pick<Credential, 'accessExpiresAtMs' | 'obtainedAtMs'>;

/** A third of its life before its end: late enough not to waste it, early enough to survive a while without the issuer. */
export function renewAtMs({ accessExpiresAtMs, obtainedAtMs }: Life): number {
  return accessExpiresAtMs - (accessExpiresAtMs - obtainedAtMs) / 3;
}

export function isDue(life: Life, nowMs: number): boolean {
  return nowMs >= renewAtMs(life) || wasSetBack(life, nowMs);
}

/** Whether a server would still take it when it gets there. */
export function isUsable(life: Life, nowMs: number): boolean {
  return nowMs + ON_THE_WAY_MS < life.accessExpiresAtMs && !wasSetBack(life, nowMs);
}

/** So long that nobody needs to wait for a renewal that another process is making. */
export function isAmple(life: Life, nowMs: number): boolean {
  return nowMs + AMPLE_MS < life.accessExpiresAtMs && !wasSetBack(life, nowMs);
}

const ON_THE_WAY_MS = 5_000;
const AMPLE_MS = 60_000;

/** A clock that now shows a time before the token was made says nothing about when it ends. */
function wasSetBack({ obtainedAtMs }: Life, nowMs: number): boolean {
  return nowMs + AMPLE_MS < obtainedAtMs;
}
