/** Being told of an abort by one listener a signal, however many ask: Node takes more than ten for a leak and says so. */

/** Calls `listener` once, when the signal aborts or at once if it has. Returns what calls that off. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => undefined;
  }
  const fanOut = fanOuts.get(signal) ?? new FanOut(signal);
  return fanOut.add(listener);
}

const fanOuts = new WeakMap<AbortSignal, FanOut>();

class FanOut {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<{ readonly call: () => void }>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    fanOuts.set(signal, this);
    signal.addEventListener('abort', this.#tell);
  }

  add(call: () => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#end();
    };
  }

  readonly #tell = (): void => {
    const failures: unknown[] = [];
    // One that fails must not keep the others from being told.
    for (const { call } of this.#listeners) failures.push(...failureOf(call));
    this.#listeners.clear();
    this.#end();
    if (failures.length > 0) throw failures[0];
  };

  /** A signal that is listened to is never collected. */
  #end(): void {
    fanOuts.delete(this.#signal);
    this.#signal.removeEventListener('abort', this.#tell);
  }
}

function failureOf(call: () => void): unknown[] {
  try {
    call();
    return [];
  } catch (error) {
    return [error];
  }
}
