/** A bound on how long somebody else's work is waited for, whether or not it heeds its signal. */
import { onAbort } from '../../../base/abort.js';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';

/** Rejects at the deadline, or when `parent` aborts; the work's signal aborts then, and what it still does is its own. */
export async function within<T>(
  {
    clock,
    ms,
    parent,
  }: { readonly clock: Clock; readonly ms: number; readonly parent: AbortSignal },
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timer = new AbortController();
  let leaveParent: (() => void) | undefined;
  const cut = new Promise<never>((_, reject) => {
    const end = (error: unknown): void => {
      controller.abort(error);
      reject(error);
    };
    leaveParent = onAbort(parent, () => end(parent.reason));
    clock.sleep(ms, timer.signal).then(
      () => end(new AilsdError('PROVIDER_UNAVAILABLE', `${what} took longer than ${ms} ms`)),
      () => undefined,
    );
  });
  try {
    return await Promise.race([work(controller.signal), cut]);
  } finally {
    timer.abort();
    leaveParent?.();
  }
}
