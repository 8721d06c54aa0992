/** Waits for work that others may wait for too: an abort ends the waiting, not the work. */
import { onAbort } from '../../base/abort.js';

export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => reject(signal.reason));
    work.then(resolve, reject).finally(stopListening);
  });
}
