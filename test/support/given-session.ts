/** A session as a shell needs it, made of a URL and tokens that the test hands out. */
import { Secret } from '../../src/base/secret.js';
import type { ShellSession } from '../../src/client/shell/shell.js';
import { AilsdError } from '../../src/protocol/errors.js';

export interface HandedSession extends ShellSession {
  /** A token that follows, as a timer would bring it. */
  renew(token: string): void;
  readonly refreshes: number;
}

export function handedSession(
  wsUrl: string,
  { token = 'first', canRefresh = true, refuse = false } = {},
): HandedSession {
  const over = new AbortController();
  let current = new Secret(token);
  let refreshes = 0;
  let wake: (() => void) | undefined;
  return {
    wsUrl,
    canRefresh,
    signal: over.signal,
    get refreshes() {
      return refreshes;
    },
    token: async () => current,
    refresh: async () => {
      refreshes += 1;
      if (refuse) throw new AilsdError('FORBIDDEN', 'no more tokens for you');
      current = new Secret(`refreshed-${refreshes}`);
      return current;
    },
    async *tokens(signal) {
      while (signal?.aborted !== true) {
        const before = current;
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal?.addEventListener('abort', () => resolve(), { once: true });
        });
        if (current !== before) yield current;
      }
    },
    reopen: async () => undefined,
    renew: (next) => {
      current = new Secret(next);
      wake?.();
    },
  };
}
