import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { LIVENESS, Liveness } from '../../../src/client/socket/liveness.js';
import { Surroundings } from '../../../src/client/socket/surroundings.js';

/** Ticks as a connection does, and says when the silent other side was given up. */
function givenUpAfterMs(liveness: Liveness, fromMs: number): number {
  for (let nowMs = fromMs; nowMs < fromMs + 60_000; nowMs += LIVENESS.tickMs) {
    if (liveness.tick(nowMs) === 'dead') return nowMs - fromMs;
  }
  return Number.POSITIVE_INFINITY;
}

describe('a line that has died', () => {
  it('is noticed within 20 seconds', () => {
    expect(givenUpAfterMs(new Liveness(0), 0)).toBeLessThanOrEqual(20_000);
  });

  it('is noticed within 5 seconds when there was reason to doubt it', () => {
    const liveness = new Liveness(0);
    liveness.doubt(1_000);
    expect(liveness.tick(1_000)).toBe('ping');
    expect(givenUpAfterMs(liveness, 1_000)).toBeLessThanOrEqual(5_000);
  });

  it('is asked after a silence once, and any frame is an answer', () => {
    const liveness = new Liveness(0);
    expect(liveness.tick(LIVENESS.quietMs - 1)).toBe('alive');
    expect(liveness.tick(LIVENESS.quietMs)).toBe('ping');
    expect(liveness.tick(LIVENESS.quietMs + 1_000)).toBe('alive');
    liveness.heard(LIVENESS.quietMs + 1_500);
    expect(liveness.tick(LIVENESS.quietMs + LIVENESS.answerMs)).toBe('ping');
  });
});

describe('surroundings', () => {
  it('tell of a sleep by the clocks, and of a network by its addresses', async () => {
    const clock = new ManualClock(1_000_000);
    let jumpMs = 0;
    let addresses = '10.0.0.2';
    const surroundings = new Surroundings(
      { now: () => clock.now() + jumpMs, monotonic: () => clock.monotonic(), sleep: clock.sleep },
      () => addresses,
    );
    await clock.advance(60_000);
    expect(surroundings.look()).toBe('same');
    jumpMs = 3_600_000;
    expect(surroundings.look()).toBe('slept');
    expect(surroundings.look()).toBe('same');
    addresses = '192.168.1.7';
    expect(surroundings.look()).toBe('network');
    expect(surroundings.look()).toBe('same');
  });
});
