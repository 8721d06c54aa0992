import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as lifetimes from '../../src/protocol/lifetimes.js';

const { clampTtl, refreshBefore } = lifetimes;

describe('lifetimes', () => {
  it('are those of the contract, in seconds', () => {
    expect(lifetimes).toMatchObject({
      ACCESS_TOKEN_SECONDS: 15 * 60,
      SANDBOX_TOKEN_SECONDS: { min: 60, max: 15 * 60 },
      INVITE_SECONDS: 60,
      LEEWAY_SECONDS: { access: 30, sandbox: 5, invite: 0 },
      ISSUED_AHEAD_SECONDS: 60,
      REFRESH_OVERLAP_SECONDS: 30,
      REVOCATION_SECONDS: 2,
      IDLE_TIMEOUT_SECONDS: 900,
      HARD_TTL_SECONDS: 28_800,
    });
  });

  it('a ttl out of bounds is clamped, one within is kept', () => {
    expect([0, 59, 60, 61.9, 900, 901, 1e12].map(clampTtl)).toEqual([
      60, 60, 60, 61, 900, 900, 900,
    ]);
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true }), (ttl) => {
        const seconds = clampTtl(ttl);
        return Number.isInteger(seconds) && seconds >= 60 && seconds <= 900;
      }),
    );
  });

  it("a token is refreshed a third of its life before its end: seed 003's own times", () => {
    const end = Date.parse('2026-02-26T12:15:00Z') / 1000;
    const before = Date.parse('2026-02-26T12:10:00Z') / 1000;
    expect(refreshBefore(end - 900, end)).toBe(before);
    expect(refreshBefore(0, 61)).toBe(41);
  });
});
