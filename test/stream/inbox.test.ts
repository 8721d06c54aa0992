import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Inbox } from '../../src/stream/inbox.js';
import { proves } from '../requirements.js';
import { sourceBytes } from './support/source.js';

it('chunks that follow each other are delivered whole', () => {
  const inbox = new Inbox();
  expect(inbox.accept(0, sourceBytes(0, 5))).toEqual({ kind: 'fresh', bytes: sourceBytes(0, 5) });
  expect(inbox.accept(5, sourceBytes(5, 9))).toEqual({ kind: 'fresh', bytes: sourceBytes(5, 9) });
  expect(inbox.next).toBe(9);
});

it('a replayed chunk is delivered once', () => {
  const inbox = new Inbox();
  inbox.accept(0, sourceBytes(0, 5));
  expect(inbox.accept(0, sourceBytes(0, 5))).toEqual({ kind: 'fresh', bytes: new Uint8Array() });
  expect(inbox.accept(1, sourceBytes(1, 3))).toEqual({ kind: 'fresh', bytes: new Uint8Array() });
  expect(inbox.next).toBe(5);
});

it('of a chunk that begins before its time only the rest is delivered', () => {
  const inbox = new Inbox();
  inbox.accept(0, sourceBytes(0, 5));
  expect(inbox.accept(3, sourceBytes(3, 8))).toEqual({ kind: 'fresh', bytes: sourceBytes(5, 8) });
  expect(inbox.next).toBe(8);
});

it('a chunk behind a hole is not delivered, and the hole is named', () => {
  const inbox = new Inbox();
  inbox.accept(0, sourceBytes(0, 5));
  expect(inbox.accept(6, sourceBytes(6, 8))).toEqual({ kind: 'gap', expected: 5 });
  expect(inbox.next).toBe(5);
});

it('a reader that begins at a snapshot delivers from its offset on', () => {
  const inbox = new Inbox(100);
  expect(inbox.accept(98, sourceBytes(98, 103))).toEqual({
    kind: 'fresh',
    bytes: sourceBytes(100, 103),
  });
});

it.each([-1, 0.5, Number.NaN, 2 ** 53])('%s is not an offset', (offset) => {
  expect(() => new Inbox().accept(offset, sourceBytes(0, 1))).toThrow(RangeError);
});

it(
  proves('pieces of a stream in any order never deliver a byte twice or out of turn', 'ST-01'),
  () => {
    const piece = fc.tuple(fc.nat({ max: 200 }), fc.nat({ max: 40 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 100, size: 'max' }), (pieces) => {
        const inbox = new Inbox();
        let delivered = 0;
        for (const [offset, length] of pieces) {
          const accepted = inbox.accept(offset, sourceBytes(offset, offset + length));
          expect(accepted.kind).toBe(offset > delivered ? 'gap' : 'fresh');
          if (accepted.kind === 'gap') continue;
          const end = delivered + accepted.bytes.length;
          expect(Buffer.compare(accepted.bytes, sourceBytes(delivered, end))).toBe(0);
          delivered = end;
          expect(inbox.next).toBe(delivered);
        }
      }),
    );
  },
);
