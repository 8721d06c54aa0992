import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { concatBytes, cutUtf8, decodeUtf8, encodeUtf8, equalBytes } from '../../src/base/bytes.js';

const bytes = fc.uint8Array({ maxLength: 40 });
const text = fc.string({ unit: 'binary', maxLength: 30 });

describe('joining and comparing', () => {
  it('chunks joined are their bytes in order', () => {
    expect(concatBytes([Uint8Array.of(1, 2), new Uint8Array(), Uint8Array.of(3)])).toEqual(
      Uint8Array.of(1, 2, 3),
    );
    expect(concatBytes([])).toEqual(new Uint8Array());
  });

  it('what was joined is independent of its parts', () => {
    const part = Uint8Array.of(1);
    const joined = concatBytes([part]);
    part[0] = 9;
    expect(joined).toEqual(Uint8Array.of(1));
  });

  it('bytes are equal when all of them are', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expect(equalBytes(a, a.slice())).toBe(true);
        expect(equalBytes(a, b)).toBe(Buffer.compare(a, b) === 0);
        expect(equalBytes(a, concatBytes([a, b]))).toBe(b.length === 0);
      }),
    );
  });
});

describe('text', () => {
  it('decoding what was encoded gives the same text, byte order mark included', () => {
    fc.assert(
      fc.property(text, (original) => {
        expect(decodeUtf8(encodeUtf8(original))).toBe(original);
      }),
    );
    expect(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\ufeffa');
  });

  it.each([
    ['half a character', Uint8Array.of(0xe2, 0x82)],
    ['a continuation without a beginning', Uint8Array.of(0x61, 0x80)],
    ['an overlong form', Uint8Array.of(0xc0, 0xaf)],
    ['a surrogate', Uint8Array.of(0xed, 0xa0, 0x80)],
    ['Latin-1', Uint8Array.of(0x63, 0x61, 0x66, 0xe9)],
  ])('%s is not text', (_what, notText) => {
    expect(decodeUtf8(notText)).toBeUndefined();
  });

  it('half a surrogate pair is encoded as the replacement character', () => {
    expect(encodeUtf8('\ud83d')).toEqual(Uint8Array.of(0xef, 0xbf, 0xbd));
  });
});

describe('cutting text', () => {
  it.each([
    [0, ''],
    [1, 'a'],
    [2, 'a'],
    [3, 'aé'],
    [4, 'aé'],
    [5, 'aé'],
    [6, 'aé€'],
    [9, 'aé€'],
    [10, 'aé€😀'],
    [99, 'aé€😀'],
  ])('at %i bytes leaves whole characters: %j', (maxBytes, expected) => {
    expect(decodeUtf8(cutUtf8(encodeUtf8('aé€😀'), maxBytes))).toBe(expected);
  });

  it.each([-1, 0.5, Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY])(
    'at %d bytes is a mistake, also of no bytes at all',
    (maxBytes) => {
      expect(() => cutUtf8(encodeUtf8('aé'), maxBytes)).toThrow(RangeError);
      expect(() => cutUtf8(new Uint8Array(), maxBytes)).toThrow(
        `${maxBytes} is not a number of bytes`,
      );
    },
  );

  it('leaves the longest beginning that is still text', () => {
    fc.assert(
      fc.property(text, fc.nat({ max: 120 }), (original, maxBytes) => {
        const cut = decodeUtf8(cutUtf8(encodeUtf8(original), maxBytes));
        let longest = '';
        for (const character of original) {
          if (encodeUtf8(longest + character).length > maxBytes) break;
          longest += character;
        }
        expect(cut).toBe(longest);
      }),
    );
  });

  it('bytes that are no text are cut where they should be', () => {
    expect(cutUtf8(new Uint8Array(10).fill(0x80), 5)).toHaveLength(5);
    expect(cutUtf8(Uint8Array.of(0xc3, 0xc3, 0xc3), 2)).toHaveLength(2);
    expect(cutUtf8(Uint8Array.of(0x61, 0x80, 0x80), 2)).toHaveLength(2);
    expect(cutUtf8(Uint8Array.of(0xc3, 0xa9, 0x80), 2)).toHaveLength(2);
  });

  it('of any bytes both sides read as they did before the cut', () => {
    // Mostly bytes that begin, continue or break characters.
    const awkward = fc.constantFrom(0x41, 0x80, 0xa0, 0xbf, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff);
    const loose = new TextDecoder('utf-8', { ignoreBOM: true });
    fc.assert(
      fc.property(fc.array(awkward, { maxLength: 12 }), fc.nat({ max: 13 }), (list, maxBytes) => {
        const whole = Uint8Array.from(list);
        const head = cutUtf8(whole, maxBytes);
        expect(head.length).toBeLessThanOrEqual(maxBytes);
        expect(head.length).toBeGreaterThanOrEqual(Math.min(whole.length, maxBytes - 3));
        expect(loose.decode(head) + loose.decode(whole.subarray(head.length))).toBe(
          loose.decode(whole),
        );
      }),
      { numRuns: 2_000 },
    );
  });
});
