/** A promise that is settled from outside: what `Promise.withResolvers` is where Node has it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  /** Only the first call of either counts. */
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason: unknown) => void;
}

export function createDeferred<T = void>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = unset;
  let reject: Deferred<T>['reject'] = unset;
  // The executor runs before the constructor returns, so `unset` is never seen.
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

function unset(): never {
  throw new Error('a promise did not run its executor');
}
