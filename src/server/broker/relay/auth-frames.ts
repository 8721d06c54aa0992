/** Finds the frames of a client that the relay has to do with, in messages that otherwise pass unread. */
import { Secret } from '../../../base/secret.js';

export type SeenFrame =
  | { readonly kind: 'auth'; readonly token: Secret }
  | { readonly kind: 'start'; readonly frame: Readonly<Record<string, unknown>> }
  | { readonly kind: 'other' };

/** By what a JSON parser makes of it, as the sandbox will: no spelling of `auth` gets past. */
export function seeFrame(text: string): SeenFrame {
  const frame = toObject(text);
  if (frame?.['type'] === 'start') return { kind: 'start', frame };
  if (frame?.['type'] !== 'auth') return OTHER;
  const { token } = frame;
  return { kind: 'auth', token: new Secret(typeof token === 'string' ? token : '') };
}

export function authFrame(token: Secret): string {
  return JSON.stringify({ type: 'auth', token: token.reveal() });
}

const OTHER: SeenFrame = { kind: 'other' };

function toObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
