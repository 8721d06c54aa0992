import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatScopes,
  holdsAnyScope,
  isScope,
  LOGIN_SCOPES,
  parseScopes,
  SCOPES,
} from '../../src/protocol/scopes.js';
import { proves } from '../requirements.js';

const all = Object.keys(SCOPES).filter(isScope);

describe('OAuth scopes', () => {
  it(proves('there are five, and a login asks for all but admin', 'PR-04'), () => {
    expect(all).toEqual([
      'read:sandbox',
      'write:sandbox',
      'exec:sandbox',
      'attach:sandbox',
      'admin:sandbox',
    ]);
    expect(LOGIN_SCOPES).toEqual(all.slice(0, 4));
  });

  it("other issuers' words are left out: seed 001's own request", () => {
    const asked = 'openid email profile read:sandbox write:sandbox exec:sandbox';
    expect(parseScopes(asked)).toEqual(['read:sandbox', 'write:sandbox', 'exec:sandbox']);
  });

  it(proves('words are compared whole and by case', 'PR-04'), () => {
    for (const text of [
      '',
      'READ:sandbox',
      'read:sandboxes',
      'read',
      'read:sandbox,write:sandbox',
      'read:sandbox\twrite:sandbox',
      'xread:sandbox',
      'constructor __proto__',
    ])
      expect(parseScopes(text), text).toEqual([]);
  });

  it('any set survives being written and read, in any order and with repeats', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...all)), (scopes) => {
        const sorted = all.filter((scope) => scopes.includes(scope));
        expect(parseScopes(formatScopes(scopes))).toEqual(sorted);
        expect(parseScopes(scopes.join(' '))).toEqual(sorted);
        expect(formatScopes([...scopes].reverse())).toBe(formatScopes(scopes));
      }),
    );
  });

  it(proves('no scope implies another: exec does not attach, admin does not read', 'PR-04'), () => {
    for (const held of all) {
      for (const needed of all) expect(holdsAnyScope([held], [needed])).toBe(held === needed);
    }
    expect(holdsAnyScope(['exec:sandbox'], ['read:sandbox', 'exec:sandbox'])).toBe(true);
    expect(holdsAnyScope([], all)).toBe(false);
    expect(holdsAnyScope(all, [])).toBe(false);
  });
});
