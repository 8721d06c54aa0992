import { expect, it } from 'vitest';
import { createDeferred } from '../../src/base/deferred.js';

it('a deferred is resolved from outside', async () => {
  const deferred = createDeferred<number>();
  deferred.resolve(7);
  await expect(deferred.promise).resolves.toBe(7);
});

it('a deferred is rejected from outside', async () => {
  const deferred = createDeferred();
  deferred.reject(new Error('no'));
  await expect(deferred.promise).rejects.toThrow('no');
});

it('only the first settling counts', async () => {
  const deferred = createDeferred<string>();
  deferred.resolve('first');
  deferred.resolve('second');
  deferred.reject(new Error('third'));
  await expect(deferred.promise).resolves.toBe('first');
});
