import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Outbox } from '../../src/stream/outbox.js';
import { proves } from '../requirements.js';
import { sourceBytes } from './support/source.js';
import { check } from './support/story.js';

function outboxWith(boundBytes: number, writtenBytes: number): Outbox {
  const outbox = new Outbox(boundBytes);
  expect(outbox.append(sourceBytes(0, writtenBytes))).toBe('taken');
  return outbox;
}

describe('sending', () => {
  it('what is not acknowledged can be sent again from any offset', () => {
    const outbox = outboxWith(100, 60);
    outbox.ack(20);
    expect(outbox.pendingFrom(20, 100)).toMatchObject({ offset: 20, bytes: sourceBytes(20, 60) });
    expect(outbox.pendingFrom(50, 5)).toMatchObject({ offset: 50, bytes: sourceBytes(50, 55) });
  });

  it('when everything is sent there is nothing pending', () => {
    expect(outboxWith(100, 60).pendingFrom(60, 10)).toEqual({
      kind: 'bytes',
      offset: 60,
      bytes: new Uint8Array(),
    });
  });

  it('a receiver that asks for what it has acknowledged is told it is gone', () => {
    const outbox = outboxWith(100, 60);
    outbox.ack(20);
    expect(outbox.pendingFrom(19, 10)).toEqual({ kind: 'gone', start: 20 });
  });

  it('a receiver that asks for what was never written is told so', () => {
    expect(outboxWith(100, 60).pendingFrom(61, 10)).toEqual({ kind: 'ahead', end: 60 });
  });
});

describe('acknowledging', () => {
  it('frees what is before the offset', () => {
    const outbox = outboxWith(100, 60);
    expect(outbox.ack(20)).toEqual({ kind: 'acked', bytes: 20 });
    expect(outbox.start).toBe(20);
    expect(outbox.roomBytes).toBe(60);
  });

  it('the same again frees nothing more', () => {
    const outbox = outboxWith(100, 60);
    outbox.ack(20);
    expect(outbox.ack(20)).toEqual({ kind: 'acked', bytes: 0 });
  });

  it('one that was overtaken changes nothing', () => {
    const outbox = outboxWith(100, 60);
    outbox.ack(20);
    expect(outbox.ack(19)).toEqual({ kind: 'stale', start: 20 });
    expect(outbox.start).toBe(20);
  });

  it('one for bytes never written changes nothing', () => {
    const outbox = outboxWith(100, 60);
    expect(outbox.ack(61)).toEqual({ kind: 'ahead', end: 60 });
    expect(outbox.start).toBe(0);
  });
});

describe('its bound', () => {
  it(proves('a chunk that does not fit is refused whole, and fits after an ack', 'ST-02'), () => {
    const outbox = outboxWith(100, 60);
    expect(outbox.append(sourceBytes(60, 101))).toBe('full');
    expect(outbox.end).toBe(60);
    outbox.ack(1);
    expect(outbox.append(sourceBytes(60, 101))).toBe('taken');
    expect(outbox.pendingFrom(1, 100)).toMatchObject({ bytes: sourceBytes(1, 101) });
  });

  it('a chunk larger than the bound goes in by pieces of the room there is', () => {
    const outbox = new Outbox(10);
    const chunk = sourceBytes(0, 25);
    expect(outbox.append(chunk)).toBe('full');
    let taken = 0;
    while (taken < chunk.length) {
      expect(outbox.append(chunk.subarray(taken, taken + outbox.roomBytes))).toBe('taken');
      expect(outbox.pendingFrom(taken, 10)).toMatchObject({
        bytes: chunk.slice(taken, outbox.end),
      });
      taken = outbox.end;
      outbox.ack(taken);
    }
  });

  it(proves('nothing unacknowledged is ever lost, nor more kept than may be', 'ST-02'), () => {
    const step = fc.record({
      append: fc.nat({ max: 80 }),
      ack: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.array(step, { maxLength: 60, size: 'max' }),
        (boundBytes, story) => {
          const outbox = new Outbox(boundBytes);
          let written = 0;
          for (const { append, ack } of story) {
            if (outbox.append(sourceBytes(written, written + append)) === 'taken')
              written += append;
            outbox.ack(outbox.start + Math.floor(ack * (written - outbox.start)));
            check(outbox.end === written, 'the end is what was taken');
            check(outbox.end - outbox.start <= boundBytes, 'no more is kept than may be');
            check(outbox.allocatedBytes <= boundBytes, 'no more memory is taken than may be');
            const pending = outbox.pendingFrom(outbox.start, boundBytes);
            const expected = sourceBytes(outbox.start, written);
            check(
              pending.kind === 'bytes' && Buffer.compare(pending.bytes, expected) === 0,
              'lost',
            );
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
