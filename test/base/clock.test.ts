import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ManualClock, systemClock } from '../../src/base/clock.js';

describe('the system clock', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('tells the time of day and a time that never goes back', () => {
    vi.useFakeTimers({ now: 1_000 });
    expect(systemClock.now()).toBe(1_000);
    const before = systemClock.monotonic();
    vi.setSystemTime(5);
    expect(systemClock.now()).toBe(5);
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before);
  });

  it.each([0, 1_500, 2 ** 31, 5 * 2 ** 31])('sleeps %i ms, neither less nor more', async (ms) => {
    vi.useFakeTimers();
    let isAwake = false;
    const sleeping = systemClock.sleep(ms).then(() => {
      isAwake = true;
    });
    if (ms > 0) await vi.advanceTimersByTimeAsync(ms - 1);
    expect(isAwake).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await sleeping;
  });

  it('an aborted sleep ends at once with the reason and leaves no timer', async () => {
    vi.useFakeTimers();
    const controller = new AbortController();
    const sleeping = systemClock.sleep(1_000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(sleeping).rejects.toThrow('enough');
    expect(vi.getTimerCount()).toBe(0);
    await expect(systemClock.sleep(1_000, controller.signal)).rejects.toThrow('enough');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a sleep that ends leaves nothing on its signal', async () => {
    vi.useFakeTimers();
    const { signal } = new AbortController();
    const sleeping = systemClock.sleep(5, signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(5);
    await sleeping;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('the manual clock', () => {
  it('stands still until it is advanced', async () => {
    const clock = new ManualClock(1_000);
    expect([clock.now(), clock.monotonic()]).toEqual([1_000, 0]);
    await clock.advance(25);
    expect([clock.now(), clock.monotonic()]).toEqual([1_025, 25]);
  });

  it('wakes each sleeper at its own time, those of the same time in the order they lay down', async () => {
    const clock = new ManualClock();
    const woken: string[] = [];
    const sleep = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push(`${name} at ${clock.now()}`);
    };
    const all = [sleep('c', 30), sleep('a', 10), sleep('b', 10), sleep('d', 31)];
    await clock.advance(30);
    expect(woken).toEqual(['a at 10', 'b at 10', 'c at 30']);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    await Promise.all(all);
  });

  it('what a woken sleeper does, sleeping again included, happens before a later one wakes', async () => {
    const clock = new ManualClock();
    const woken: string[] = [];
    const ticking = async () => {
      for (let tick = 1; tick <= 3; tick++) {
        await clock.sleep(10);
        woken.push(`tick ${tick}`);
      }
    };
    const late = clock.sleep(25).then(() => woken.push('late'));
    const ticks = ticking();
    await clock.advance(100);
    await Promise.all([late, ticks]);
    expect(woken).toEqual(['tick 1', 'tick 2', 'late', 'tick 3']);
  });

  it('an aborted sleep ends with the reason and is not waited for', async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const other = clock.sleep(10);
    const sleeping = clock.sleep(10, controller.signal);
    controller.abort(new Error('enough'));
    await expect(sleeping).rejects.toThrow('enough');
    expect(clock.sleeping).toBe(1);
    await clock.advance(10);
    await other;
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('is not advanced by %d', async (ms) => {
    const clock = new ManualClock();
    await clock.advance(10);
    await expect(clock.advance(ms)).rejects.toThrow(RangeError);
    expect(clock.monotonic()).toBe(10);
  });

  it.each([-5, Number.NaN])('a sleep of %d ms is none, and the time stays right', async (ms) => {
    const clock = new ManualClock();
    await clock.advance(10);
    const later = clock.sleep(5).then(() => clock.monotonic());
    const none = clock.sleep(ms).then(() => clock.monotonic());
    await clock.advance(20);
    expect(await Promise.all([none, later])).toEqual([10, 15]);
    expect(clock.monotonic()).toBe(30);
  });

  it('sleepers wake in the order of their times, whatever order they lay down in', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 20 }), { maxLength: 15 }), async (times) => {
        const clock = new ManualClock();
        const woken: number[] = [];
        for (const ms of times) void clock.sleep(ms).then(() => woken.push(clock.now()));
        await clock.advance(20);
        expect(woken).toEqual(times.toSorted((a, b) => a - b));
      }),
    );
  });
});
