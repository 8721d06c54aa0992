import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLOSES, retryAfterClose } from '../../src/protocol/closes.js';
import { proves } from '../requirements.js';

describe('closes', () => {
  it(proves('the four refusals of seed 000 are 1008 with these very words', 'PR-03'), () => {
    expect(CLOSES.missingToken).toMatchObject({ code: 1008, reason: 'Missing token' });
    expect(CLOSES.tokenExpired).toMatchObject({ code: 1008, reason: 'Token expired' });
    expect(CLOSES.invalidToken).toMatchObject({ code: 1008, reason: 'Invalid token' });
    expect(CLOSES.unauthorizedRoom).toMatchObject({
      code: 1008,
      reason: 'Unauthorized Room Access',
    });
  });

  it(proves('a refusal is never retried, but for one refresh on Token expired', 'PR-03'), () => {
    expect(retryAfterClose(1008, 'Missing token')).toBe('never');
    expect(retryAfterClose(1008, 'Invalid token')).toBe('never');
    expect(retryAfterClose(1008, 'Unauthorized Room Access')).toBe('never');
    expect(retryAfterClose(1008, 'Token expired')).toBe('refresh-once');
  });

  it(proves('1008 is an answer whatever its words are', 'PR-03'), () => {
    fc.assert(
      fc.property(fc.string(), (reason) => {
        const expected = reason === 'Token expired' ? 'refresh-once' : 'never';
        return retryAfterClose(1008, reason) === expected;
      }),
    );
    for (const near of ['token expired', 'Token expired ', 'Token Expired', ''])
      expect(retryAfterClose(1008, near)).toBe('never');
  });

  it('a cut line is reconnected, an ordinary end and a broken protocol are not', () => {
    for (const code of [1001, 1005, 1006, 1011, 1012, 1013, 4000])
      expect(retryAfterClose(code, ''), String(code)).toBe('reconnect');
    for (const code of [1000, 1002, 1003, 1007, 1009, 1010])
      expect(retryAfterClose(code, ''), String(code)).toBe('never');
  });

  it('every reason fits into a close frame', () => {
    for (const { code, reason } of Object.values(CLOSES)) {
      expect(new TextEncoder().encode(reason).length).toBeLessThanOrEqual(123);
      expect(code).toBeGreaterThanOrEqual(1000);
    }
  });
});
