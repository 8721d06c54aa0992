import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedQueue } from '../../src/base/bounded-queue.js';
import { proves } from '../requirements.js';

/** Items are texts, and weigh what they are long. */
function textQueue(maxItems: number, maxWeight: number): BoundedQueue<string> {
  return new BoundedQueue({ maxItems, maxWeight, weigh: (text) => text.length });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Whether it is settled once everything that can happen has. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await new Promise(setImmediate);
  return settled;
}

describe('order', () => {
  it('items come out as they went in, then iteration ends', async () => {
    const queue = textQueue(10, 100);
    for (const item of ['a', 'b', 'c']) expect(queue.push(item)).toBe('taken');
    queue.close();
    expect(await collect(queue)).toEqual(['a', 'b', 'c']);
  });

  it('a consumer that waits gets an item as soon as there is one', async () => {
    const queue = textQueue(10, 100);
    const next = queue.next();
    expect(await isSettled(next)).toBe(false);
    queue.push('a');
    expect(await next).toEqual({ done: false, value: 'a' });
  });

  it('leaving the loop leaves the rest in the queue', async () => {
    const queue = textQueue(10, 100);
    for (const item of ['a', 'b', 'c']) queue.push(item);
    for await (const item of queue) {
      if (item === 'a') break;
    }
    queue.close();
    expect(await collect(queue)).toEqual(['b', 'c']);
  });
});

describe('bounds', () => {
  it(proves('an item too many is refused and stays with its producer', 'ST-02'), async () => {
    const queue = textQueue(2, 100);
    expect([queue.push('a'), queue.push('b'), queue.push('c')]).toEqual(['taken', 'taken', 'full']);
    queue.close();
    expect(await collect(queue)).toEqual(['a', 'b']);
  });

  it(proves('so is an item that would weigh too much with the others', 'ST-02'), async () => {
    const queue = textQueue(10, 5);
    expect([queue.push('aaa'), queue.push('bbb'), queue.push('cc')]).toEqual([
      'taken',
      'full',
      'taken',
    ]);
    expect([queue.size, queue.weight]).toEqual([2, 5]);
    await queue.next();
    expect([queue.size, queue.weight]).toEqual([1, 2]);
    expect(queue.push('bbb')).toBe('taken');
  });

  it('an item heavier than the whole queue is told apart: waiting would not help it', () => {
    const queue = textQueue(10, 5);
    expect(queue.push('abcdef')).toBe('too-heavy');
    expect(queue.push('abcde')).toBe('taken');
  });

  it.each([-1, -0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'an item that weighs %d breaks a promise, and is not taken',
    (weight) => {
      const queue = new BoundedQueue<number>({ maxItems: 9, maxWeight: 9, weigh: (item) => item });
      expect(() => queue.push(weight)).toThrow(RangeError);
      expect(() => queue.push(weight)).toThrow(`an item cannot weigh ${weight}`);
      expect([queue.size, queue.weight]).toEqual([0, 0]);
      expect([queue.push(0), queue.push(9), queue.push(1)]).toEqual(['taken', 'taken', 'full']);
    },
  );

  it.each([
    [0, 1],
    [-1, 1],
    [Number.NaN, 1],
    [1, -1],
    [1, Number.NaN],
  ])('a queue for %d items of weight %d would never take one, and is not made', (items, weight) => {
    expect(() => textQueue(items, weight)).toThrow(RangeError);
  });
});

describe('waiting for room', () => {
  it('is over at once while there is room', async () => {
    expect(await textQueue(1, 1).ready()).toBe('ready');
  });

  it('is over when the refused item fits, and not before', async () => {
    const queue = textQueue(10, 4);
    queue.push('aa');
    queue.push('bb');
    expect(queue.push('ccc')).toBe('full');
    const ready = queue.ready();
    await queue.next();
    expect(await isSettled(ready)).toBe(false);
    await queue.next();
    expect(await ready).toBe('ready');
    expect(queue.push('ccc')).toBe('taken');
  });

  it('is over when the queue closes, and says so', async () => {
    const queue = textQueue(1, 10);
    queue.push('a');
    const ready = queue.ready();
    queue.close();
    expect(await ready).toBe('closed');
    expect(await queue.ready()).toBe('closed');
  });
});

describe('ending', () => {
  it('a closed queue takes nothing more', () => {
    const queue = textQueue(10, 100);
    queue.close();
    expect(queue.push('a')).toBe('closed');
  });

  it('a consumer that waits is told of the end', async () => {
    const queue = textQueue(10, 100);
    const next = queue.next();
    queue.close();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it('a failed queue gives what it has, then the failure, every time it is asked', async () => {
    const queue = textQueue(10, 100);
    queue.push('a');
    queue.fail(new Error('line lost'));
    expect(queue.push('b')).toBe('closed');
    expect(await queue.next()).toEqual({ done: false, value: 'a' });
    await expect(queue.next()).rejects.toThrow('line lost');
    await expect(collect(queue)).rejects.toThrow('line lost');
  });

  it('a failure with no reason is still a failure', async () => {
    const queue = textQueue(10, 100);
    queue.fail(undefined);
    await expect(queue.next()).rejects.toBeUndefined();
  });

  it('only the first ending counts', async () => {
    const queue = textQueue(10, 100);
    queue.close();
    queue.fail(new Error('too late'));
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });
});

describe('aborting a wait', () => {
  it('ends it with the reason, and loses no item', async () => {
    const queue = textQueue(1, 10);
    const controller = new AbortController();
    const next = queue.next(controller.signal);
    controller.abort(new Error('enough'));
    queue.push('a');
    await expect(next).rejects.toThrow('enough');
    await expect(queue.ready(controller.signal)).rejects.toThrow('enough');
    await expect(collect(queue.items(controller.signal))).rejects.toThrow('enough');
    expect(await queue.next()).toEqual({ done: false, value: 'a' });
  });

  it('is possible for as long as the wait lasts, and leaves nothing on the signal after', async () => {
    const queue = textQueue(1, 10);
    const { signal } = new AbortController();
    const next = queue.next(signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    queue.push('a');
    await next;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('also ends a wait for room', async () => {
    const queue = textQueue(1, 10);
    queue.push('a');
    const controller = new AbortController();
    const ready = queue.ready(controller.signal);
    controller.abort(new Error('enough'));
    await expect(ready).rejects.toThrow('enough');
  });
});

it(
  proves('a patient producer and a slow consumer pass everything on, within the bounds', 'ST-02'),
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 8 }), { maxLength: 60, size: 'max' }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 8, max: 16 }),
        fc.infiniteStream(fc.boolean()),
        async (items, maxItems, maxWeight, pauses) => {
          const queue = textQueue(maxItems, maxWeight);
          const produce = async () => {
            for (const item of items) {
              while (queue.push(item) === 'full') await queue.ready();
            }
            queue.close();
          };
          const producing = produce();
          const received: string[] = [];
          for await (const item of queue) {
            expect(queue.size).toBeLessThanOrEqual(maxItems);
            expect(queue.weight).toBeLessThanOrEqual(maxWeight);
            received.push(item);
            if (pauses.next().value) await Promise.resolve();
          }
          await producing;
          expect(received).toEqual(items);
          expect([queue.size, queue.weight]).toEqual([0, 0]);
        },
      ),
      { numRuns: 300 },
    );
  },
);
