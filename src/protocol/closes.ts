/** How a WebSocket ends: each ending's code and exact reason text, and whether a client may try again. */
export const CLOSES = {
  done: { code: 1000, reason: '', retry: 'never' },
  goingAway: { code: 1001, reason: 'Server going away', retry: 'reconnect' },
  protocolError: { code: 1002, reason: 'Protocol error', retry: 'never' },
  invalidText: { code: 1007, reason: 'Invalid UTF-8', retry: 'never' },
  missingToken: { code: 1008, reason: 'Missing token', retry: 'never' },
  tokenExpired: { code: 1008, reason: 'Token expired', retry: 'refresh-once' },
  invalidToken: { code: 1008, reason: 'Invalid token', retry: 'never' },
  unauthorizedRoom: { code: 1008, reason: 'Unauthorized Room Access', retry: 'never' },
  notAllowed: { code: 1008, reason: 'Not allowed', retry: 'never' },
  tooBig: { code: 1009, reason: 'Message too big', retry: 'never' },
  internal: { code: 1011, reason: 'Internal error', retry: 'reconnect' },
  tryLater: { code: 1013, reason: 'Try again later', retry: 'reconnect' },
} as const satisfies Record<string, Close>;

export interface Close {
  readonly code: number;
  /** Part of the contract: clients compare it to the letter. */
  readonly reason: string;
  readonly retry: 'never' | 'reconnect' | 'refresh-once';
}

export type CloseName = keyof typeof CLOSES;

/**
 * What a client does after a close it received. A policy violation (1008) is an answer, whatever its text: only
 * `Token expired` may be met with one refreshed token. Everything else that is not ours to know is a cut line.
 */
export function retryAfterClose(code: number, reason: string): Close['retry'] {
  for (const close of Object.values(CLOSES)) {
    if (close.code === code && (code !== 1008 || close.reason === reason)) return close.retry;
  }
  return code === 1008 || code === 1003 || code === 1010 ? 'never' : 'reconnect';
}
