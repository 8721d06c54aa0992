/** Owns what is opened in it and what runs for it: `await using` a scope, and on its end everything has ended. */
import { onAbort } from './abort.js';
import type { Clock } from './clock.js';

export interface ScopeOptions {
  readonly clock: Clock;
  /** Told of background work that failed, at once, when the scope has aborted. What it throws itself is thrown on closing. */
  readonly report: (name: string, error: unknown) => void;
  /** When it aborts, so does the scope; closing stays with whoever opened the scope. */
  readonly parent?: AbortSignal | undefined;
  /** How long closing waits for the background work, and then for each resource, before it goes on without. */
  readonly closeTimeoutMs?: number | undefined;
}

export class Scope implements AsyncDisposable {
  readonly #options: ScopeOptions;
  readonly #closeTimeoutMs: number;
  readonly #controller = new AbortController();
  readonly #closers: Closer[] = [];
  readonly #running = new Map<Promise<unknown>, string>();
  readonly #leaveParent: (() => void) | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;
  /** The first is enough to say that reporting does not work. */
  #reportFailure: { readonly error: unknown } | undefined;

  constructor(options: ScopeOptions) {
    this.#options = options;
    this.#closeTimeoutMs = options.closeTimeoutMs ?? DEFAULT_CLOSE_TIMEOUT_MS;
    const { parent } = options;
    this.#leaveParent = parent && onAbort(parent, () => this.#controller.abort(parent.reason));
  }

  /** Aborts when the scope closes, its parent aborts or its background work fails. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    this.defer(() => dispose(resource));
    return resource;
  }

  /** What comes after the scope has closed is closed at once, so that it is not leaked, and thrown for. */
  defer(close: Closer): void {
    if (this.#isClosed) {
      this.run('close what came late', promised(close));
      throw new Error('the scope is closed');
    }
    this.#closers.push(close);
  }

  /**
   * Runs work nobody awaits. If it fails, the scope aborts and the failure is reported, for whoever else waits in it
   * may be waiting for this work; ending by the scope's own abort is no failure.
   */
  run(name: string, work: Promise<unknown> | ((signal: AbortSignal) => unknown)): void {
    if (this.#isClosed && typeof work === 'function') throw new Error('the scope is closed');
    const ended = promised(() => (typeof work === 'function' ? work(this.signal) : work))
      .catch((error: unknown) => this.#failed(name, error))
      .finally(() => this.#running.delete(ended));
    this.#running.set(ended, name);
  }

  /** Goes on when something fails to close, and throws it at the end: alone as it is, several as an AggregateError. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#controller.abort();
    this.#leaveParent?.();
    const failures: unknown[] = [];
    if (!(await this.#within(this.#idle()))) {
      const names = [...this.#running.values()].join(', ');
      failures.push(new Error(`still running ${this.#closeTimeoutMs} ms after its end: ${names}`));
    }
    // Work that is just ending may still open things, and a closer may too: hence until nothing is left.
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        if (await this.#within(promised(close))) continue;
        failures.push(new Error(`not closed within ${this.#closeTimeoutMs} ms`));
      } catch (error) {
        failures.push(error);
      }
    }
    this.#isClosed = true;
    if (this.#reportFailure !== undefined) failures.push(this.#reportFailure.error);
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'several things failed to close');
  }

  #failed(name: string, error: unknown): void {
    if (this.signal.aborted && isAbort(error, this.signal)) return;
    this.#controller.abort(error);
    try {
      this.#options.report(name, error);
    } catch (failure) {
      this.#reportFailure ??= { error: failure };
    }
  }

  async #idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /** Whether it was done in time. */
  async #within(work: Promise<unknown>): Promise<boolean> {
    const timer = new AbortController();
    const late = this.#options.clock.sleep(this.#closeTimeoutMs, timer.signal);
    try {
      return await Promise.race([work.then(() => true), late.then(() => false)]);
    } finally {
      timer.abort();
    }
  }
}

type Closer = () => unknown;

const DEFAULT_CLOSE_TIMEOUT_MS = 5_000;

/** Calls at once; what it throws is a rejection too. */
async function promised(call: () => unknown): Promise<unknown> {
  return call();
}

function dispose(resource: Disposable | AsyncDisposable): unknown {
  if (Symbol.asyncDispose in resource) return resource[Symbol.asyncDispose]();
  return resource[Symbol.dispose]();
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError');
}
