import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Ring } from '../../src/stream/ring.js';
import { proves } from '../requirements.js';
import { sourceBytes } from './support/source.js';
import { check } from './support/story.js';

/** A ring that has seen this many bytes of the source. */
function ringWith(capacityBytes: number, writtenBytes: number): Ring {
  const ring = new Ring(capacityBytes);
  ring.append(sourceBytes(0, writtenBytes));
  return ring;
}

describe('reading', () => {
  it('gives what was appended, from any offset that is kept', () => {
    const ring = ringWith(100, 60);
    expect(ring.read(0, 100)).toEqual({ kind: 'bytes', offset: 0, bytes: sourceBytes(0, 60) });
    expect(ring.read(20, 5)).toEqual({ kind: 'bytes', offset: 20, bytes: sourceBytes(20, 25) });
  });

  it('a reader that has caught up gets no bytes, which is no error', () => {
    const ring = ringWith(100, 60);
    expect(ring.read(60, 10)).toEqual({ kind: 'bytes', offset: 60, bytes: new Uint8Array() });
  });

  it('a reader that was away too long is told where the ring begins', () => {
    const ring = ringWith(100, 250);
    expect(ring.read(149, 10)).toEqual({ kind: 'gone', start: 150 });
    expect(ring.read(150, 10)).toEqual({
      kind: 'bytes',
      offset: 150,
      bytes: sourceBytes(150, 160),
    });
  });

  it('a reader that knows more than was ever written is told so', () => {
    expect(ringWith(100, 60).read(61, 10)).toEqual({ kind: 'ahead', end: 60 });
  });

  it('what was read stays as it is when the ring goes round', () => {
    const ring = ringWith(10, 10);
    const read = ring.read(0, 10);
    ring.append(sourceBytes(500, 510));
    expect(read).toEqual({ kind: 'bytes', offset: 0, bytes: sourceBytes(0, 10) });
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 53])('%s is not an offset', (offset) => {
    expect(() => ringWith(10, 5).read(offset, 1)).toThrow(RangeError);
  });
});

it.each([-1, 0.5, Number.NaN])('%s is not a number of bytes to read', (maxBytes) => {
  const ring = ringWith(10, 15);
  // Also where there is nothing to read: before, at and past what is kept.
  for (const from of [0, 5, 15, 16]) {
    expect(() => ring.read(from, maxBytes)).toThrow(`${maxBytes} is not a number of bytes`);
    expect(() => ring.read(from, maxBytes)).toThrow(RangeError);
  }
});

describe('bounds', () => {
  it('a chunk larger than the ring leaves its end', () => {
    const ring = ringWith(100, 1_000);
    expect(ring.start).toBe(900);
    expect(ring.end).toBe(1_000);
    expect(ring.read(900, 100)).toMatchObject({ bytes: sourceBytes(900, 1_000) });
  });

  it(proves('memory grows with what is kept, and never past the capacity', 'ST-02'), () => {
    const ring = new Ring(4 << 20);
    expect(ring.allocatedBytes).toBe(0);
    ring.append(sourceBytes(0, 1));
    expect(ring.allocatedBytes).toBeLessThanOrEqual(16_384);
    for (let round = 0; round < 9; round++) ring.append(sourceBytes(0, 1 << 20));
    expect(ring.allocatedBytes).toBe(4 << 20);
  });

  it('a stream ends loudly where offsets would lose count', () => {
    const ring = new Ring(100, Number.MAX_SAFE_INTEGER - 5);
    ring.append(sourceBytes(0, 5));
    expect(ring.read(Number.MAX_SAFE_INTEGER - 5, 5)).toMatchObject({ bytes: sourceBytes(0, 5) });
    expect(() => ring.append(sourceBytes(0, 1))).toThrow(RangeError);
    expect(ring.end).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('a ring of nothing cannot be made', () => {
    expect(() => new Ring(0)).toThrow(RangeError);
  });
});

it(proves('a ring is the last bytes of everything written, whatever the sizes', 'ST-02'), () => {
  // Around the size of a block and its multiples is where a slip would hide.
  const capacity = fc.oneof(
    fc.integer({ min: 1, max: 50 }),
    fc.integer({ min: 16_380, max: 16_390 }),
    fc.integer({ min: 32_760, max: 50_000 }),
  );
  const size = fc.oneof(fc.nat({ max: 60 }), fc.nat({ max: 20_000 }), fc.nat({ max: 60_000 }));
  const steps = fc.array(fc.record({ append: size, from: fc.nat({ max: 60_000 }), max: size }), {
    maxLength: 15,
    size: 'max',
  });
  fc.assert(
    fc.property(capacity, steps, (capacityBytes, story) => {
      const ring = new Ring(capacityBytes);
      let written = 0;
      for (const { append, from, max } of story) {
        ring.append(sourceBytes(written, written + append));
        written += append;
        const start = Math.max(0, written - capacityBytes);
        check(ring.end === written, 'the end is what was written');
        check(ring.start === start, 'the start is a capacity before it');
        check(ring.allocatedBytes <= capacityBytes, 'memory is within the capacity');
        // Counted back from the end, so that most reads hit.
        const at = Math.max(0, written - from);
        const read = ring.read(at, max);
        check((read.kind === 'gone') === at < start, 'gone is what is before the start');
        if (read.kind !== 'bytes') continue;
        const expected = sourceBytes(at, Math.min(written, at + max));
        check(read.offset === at && Buffer.compare(read.bytes, expected) === 0, 'the same bytes');
      }
    }),
    { numRuns: 2_000 },
  );
});
