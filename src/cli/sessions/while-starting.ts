/** Shows that a sandbox is being waited for, once that takes long enough to wonder. */
import type { Context } from '../context.js';
import type { Waiting } from '../login/waiting.js';

const WONDER_MS = 600;

/** The work is told nothing; it is only watched. */
export async function whileStarting<T>(
  context: Context,
  text: string,
  work: () => Promise<T>,
): Promise<T> {
  let shown: Promise<Waiting> | undefined;
  const timer = setTimeout(() => {
    shown = import('../login/waiting.js').then(({ showWaiting }) => showWaiting(context, text));
    // A spinner that can't be shown is no reason to fail.
    shown.catch(() => undefined);
  }, WONDER_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    await shown?.then(
      (waiting) => waiting[Symbol.dispose](),
      () => undefined,
    );
  }
}
