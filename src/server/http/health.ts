/** What monitoring asks: whether the process is up, and whether it can do its work. Neither says what is inside. */
import type { RouteCode } from './call.js';

/** Up is up: nothing else is asked, so that a slow store does not get a live process killed. */
export const health: RouteCode = () => OK;

/** `check` rejects when the work can't be done; it gets this long. Once `draining` aborts, it is not asked any more. */
export function readiness(
  check: (signal: AbortSignal) => Promise<unknown>,
  draining?: AbortSignal,
): RouteCode {
  return async ({ exchange }) => {
    if (draining?.aborted === true) return UNAVAILABLE;
    const signal = AbortSignal.any([exchange.signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
    try {
      await Promise.race([check(signal), rejectionOf(signal)]);
      return OK;
    } catch (thrown) {
      exchange.noteError(thrown);
      return UNAVAILABLE;
    }
  };
}

const READY_TIMEOUT_MS = 1_500;

const OK = { body: { status: 'ok' } } as const;
const UNAVAILABLE = {
  status: 503,
  headers: { 'Retry-After': '1' },
  body: { status: 'unavailable' },
} as const;

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
