import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BACKOFF_DEFAULTS, Backoff, type BackoffOptions } from '../../src/stream/backoff.js';
import { proves } from '../requirements.js';

/** As near to 1 as `Math.random` comes: every delay is at its bound. */
const longest = () => 1 - Number.EPSILON;

function delays(backoff: Backoff, count: number): number[] {
  return Array.from({ length: count }, () => {
    const retry = backoff.next(0);
    return retry.kind === 'wait' ? Math.round(retry.delayMs) : Number.NaN;
  });
}

describe('delays', () => {
  it(proves('come quickly at first, then double up to the cap', 'ST-03'), () => {
    const backoff = new Backoff({ random: longest });
    expect(delays(backoff, 12)).toEqual([
      50, 50, 50, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000,
    ]);
  });

  it(proves('the first retry is made within 100 ms, whatever the dice say', 'ST-03'), () => {
    fc.assert(
      fc.property(dice, (roll) => {
        const retry = new Backoff({ random: () => roll }).next(0);
        expect(retry).toMatchObject({ kind: 'wait', tries: 1 });
        expect(retry.kind === 'wait' && retry.delayMs).toBeLessThan(100);
      }),
    );
  });

  it('are anywhere between nothing and their bound, so that a crowd does not come at once', () => {
    expect(delays(new Backoff({ random: () => 0 }), 6)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(delays(new Backoff({ random: () => 0.5 }), 6)).toEqual([25, 25, 25, 125, 250, 500]);
  });

  it(proves('stay within a bound that grows to the cap and no further, for ever', 'ST-03'), () => {
    fc.assert(
      fc.property(
        fc.record({
          quickTries: fc.nat({ max: 5 }),
          quickMs: fc.integer({ min: 1, max: 100 }),
          baseMs: fc.integer({ min: 100, max: 1_000 }),
          capMs: fc.integer({ min: 1_000, max: 60_000 }),
        }),
        dice,
        (options, roll) => {
          const bounds = new Backoff({ ...options, random: longest });
          const backoff = new Backoff({ ...options, random: () => roll });
          let boundMs = 0;
          // More than 1,100 doublings are past the largest number there is.
          for (let tries = 1; tries <= 1_200; tries++) {
            const bound = bounds.next(0);
            const retry = backoff.next(0);
            if (retry.kind !== 'wait' || bound.kind !== 'wait') throw new Error('gave up');
            expect(bound.delayMs).toBeGreaterThanOrEqual(boundMs);
            expect(bound.delayMs).toBeLessThan(options.capMs);
            expect(retry.delayMs).toBeGreaterThanOrEqual(0);
            expect(retry.delayMs).toBeCloseTo(bound.delayMs * roll, 3);
            boundMs = bound.delayMs;
          }
          expect(boundMs).toBeCloseTo(options.capMs, 3);
        },
      ),
      { numRuns: 20 },
    );
  });
});

describe('starting over', () => {
  it('after a success the tries are quick again and the bounds are whole', () => {
    const backoff = new Backoff({ random: longest, maxTries: 5, maxElapsedMs: 1_000 });
    delays(backoff, 5);
    backoff.reset();
    expect(delays(backoff, 4)).toEqual([50, 50, 50, 250]);
    backoff.reset();
    expect(backoff.next(50_000)).toMatchObject({ kind: 'wait', tries: 1 });
  });

  it('on a fresh network the tries are quick again, but no more of them', () => {
    const backoff = new Backoff({ random: longest, maxTries: 8 });
    delays(backoff, 6);
    backoff.freshNetwork();
    expect(delays(backoff, 2)).toEqual([50, 50]);
    expect(backoff.next(0)).toEqual({ kind: 'give-up', bound: 'tries', tries: 8 });
  });
});

describe('giving up', () => {
  const options: BackoffOptions = { random: longest };

  it('never happens unless a bound was given', () => {
    const backoff = new Backoff(options);
    for (let day = 0; day < 1_000; day++) expect(backoff.next(day * 86_400_000).kind).toBe('wait');
  });

  it(proves('after the last try the outcome is to give up, and it stays so', 'ST-03'), () => {
    const backoff = new Backoff({ ...options, maxTries: 2 });
    delays(backoff, 2);
    expect(backoff.next(0)).toEqual({ kind: 'give-up', bound: 'tries', tries: 2 });
    expect(backoff.next(0)).toEqual({ kind: 'give-up', bound: 'tries', tries: 2 });
  });

  it('the last try is made when the time is just up, and none after', () => {
    const backoff = new Backoff({ ...options, quickTries: 0, maxElapsedMs: 300 });
    expect(backoff.next(7_000)).toMatchObject({ kind: 'wait' });
    expect(backoff.next(7_250)).toEqual({ kind: 'wait', delayMs: 50, tries: 2 });
    expect(backoff.next(7_300)).toEqual({ kind: 'give-up', bound: 'time', tries: 2 });
  });

  it('the defaults promise the first retry well within 100 ms', () => {
    expect(BACKOFF_DEFAULTS.quickMs).toBeLessThan(100);
    expect(BACKOFF_DEFAULTS.quickTries).toBeGreaterThan(0);
  });
});

const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
