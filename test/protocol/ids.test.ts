import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AilsdError } from '../../src/protocol/errors.js';
import {
  ID_PATTERN,
  ID_PREFIXES,
  type IdKind,
  isThreadId,
  newId,
  parseThreadId,
} from '../../src/protocol/ids.js';
import { proves } from '../requirements.js';

const KINDS = [
  'sandbox',
  'session',
  'shell',
  'command',
  'token',
  'request',
  'invocation',
  'snapshot',
  'grant',
] as const satisfies readonly IdKind[];

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);

describe('ids', () => {
  it(proves('a fresh id carries the prefix the contract gives its kind', 'PR-01'), () => {
    const prefixes = {
      sandbox: 'sb_',
      session: 'ssn_',
      shell: 'sh_',
      command: 'cmd_',
      token: 'tok_',
      request: 'req_',
      invocation: 'inv_',
      snapshot: 'snap_',
    } as const;
    expect(ID_PREFIXES).toMatchObject(prefixes);
    expect(Object.keys(ID_PREFIXES)).toEqual(KINDS);
    for (const kind of KINDS) {
      const id = newId(kind, random);
      expect(id.startsWith(ID_PREFIXES[kind])).toBe(true);
      expect(id).toMatch(ID_PATTERN);
      expect(id.slice(ID_PREFIXES[kind].length)).toMatch(/^[0-9a-hjkmnp-tv-z]{26}$/);
    }
  });

  it('the same randomness gives the same id, and other randomness another', () => {
    const fixed = (value: number) => (bytes: Uint8Array<ArrayBuffer>) => bytes.fill(value);
    expect(newId('sandbox', fixed(31))).toBe(`sb_${'z'.repeat(26)}`);
    expect(newId('sandbox', fixed(32))).toBe(`sb_${'0'.repeat(26)}`);
    const many = new Set(Array.from({ length: 10_000 }, () => newId('token', random)));
    expect(many.size).toBe(10_000);
  });

  it(proves('a thread id is 1 to 128 of A-Za-z0-9._:-, dots and dashes included', 'PR-01'), () => {
    for (const id of ['thr_123', '..', '.', '-rf', 'a:b', 'A', '0'.repeat(128)])
      expect(isThreadId(id), id).toBe(true);
    for (const id of ['', '0'.repeat(129), 'a b', 'a\0', 'é', 'a/b', 'a\n', '\n', 'a%2e', 'a\\b'])
      expect(isThreadId(id), id).toBe(false);
  });

  it('what is no thread id is refused with the name of the field', () => {
    const refused = (value: string) => {
      try {
        parseThreadId(value);
      } catch (thrown) {
        return thrown;
      }
      return undefined;
    };
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (value) => {
        if (isThreadId(value)) return parseThreadId(value) === value;
        const error = refused(value);
        return (
          error instanceof AilsdError &&
          error.code === 'INVALID_REQUEST' &&
          error.details['field'] === 'thread_id'
        );
      }),
    );
  });
});
