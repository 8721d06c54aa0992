/** The parts of a stream together, on lines that cut, delay, repeat and lose. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { Printing } from './support/printing.js';
import { eventsWithCuts, steadyEvents } from './support/story.js';
import { Typing } from './support/typing.js';

describe('input', () => {
  it(
    proves('any cuts, repetitions and delays deliver the same bytes once, in order', 'ST-01'),
    () => {
      fc.assert(
        fc.property(boundBytes, eventsWithCuts, (bound, events) => {
          const typing = new Typing(bound);
          typing.play(events);
          typing.finish();
          expect(typing.delivered).toBe(typing.written);
        }),
        { numRuns: 10_000 },
      );
    },
  );

  it('a steady line delivers everything on its one connection', () => {
    fc.assert(
      fc.property(boundBytes, steadyEvents, (bound, events) => {
        const typing = new Typing(bound);
        typing.play([{ type: 'connect' }, ...events]);
        typing.finish();
        expect(typing.delivered).toBe(typing.written);
        expect(typing.connections).toBe(1);
      }),
      { numRuns: 1_000 },
    );
  });

  it('a byte typed during a cut arrives once the line is back', () => {
    const typing = new Typing(100);
    typing.play([{ type: 'connect' }, { type: 'cut', survivors: 0 }, { type: 'write', bytes: 7 }]);
    typing.finish();
    expect(typing.delivered).toBe(7);
  });

  it('a byte that arrived just before a cut, its ack lost, is not delivered again', () => {
    const typing = new Typing(100);
    typing.play([
      { type: 'connect' },
      { type: 'arrive-back', connection: 0 },
      { type: 'write', bytes: 7 },
      { type: 'send', bytes: 7 },
      { type: 'arrive', connection: 0 },
      { type: 'ack' },
      { type: 'cut', survivors: 0 },
    ]);
    expect(typing.delivered).toBe(7);
    typing.finish();
    expect(typing.delivered).toBe(7);
  });

  it(
    proves(
      'typing on a dead line is refused once the bound is reached, and heard again after',
      'ST-02',
    ),
    () => {
      const typing = new Typing(10);
      typing.play([
        { type: 'write', bytes: 10 },
        { type: 'write', bytes: 1 },
      ]);
      expect(typing.refused).toBe(1);
      typing.finish();
      typing.play([
        { type: 'ack' },
        { type: 'arrive-back', connection: 0 },
        { type: 'write', bytes: 1 },
      ]);
      expect(typing.refused).toBe(1);
      expect(typing.written).toBe(11);
    },
  );
});

describe('output', () => {
  it(
    proves('a reader gets every byte at its offset, or is told that it is put forward', 'ST-01'),
    () => {
      fc.assert(
        fc.property(sizes, eventsWithCuts, (chosen, events) => {
          const printing = new Printing(chosen);
          printing.play(events);
          printing.finish();
          expect(printing.delivered).toBe(printing.written);
        }),
        { numRuns: 5_000 },
      );
    },
  );

  it('a reader that comes back within the ring is put forward by no snapshot', () => {
    fc.assert(
      fc.property(sizes, eventsWithCuts, (chosen, events) => {
        const printing = new Printing({ ...chosen, ringBytes: 100_000 });
        printing.play(events);
        printing.finish();
        expect(printing.delivered).toBe(printing.written);
        expect(printing.snapshots).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  it('a reader that comes back after the ring went round is put forward by one snapshot', () => {
    const printing = new Printing({ ringBytes: 100, windowBytes: 50, ackEveryBytes: 20 });
    printing.play([{ type: 'write', bytes: 300 }]);
    printing.finish();
    expect(printing.snapshots).toBe(1);
    expect(printing.delivered).toBe(300);
  });
});

const boundBytes = fc.integer({ min: 1, max: 200 });

const sizes = fc.record({
  ringBytes: fc.integer({ min: 1, max: 300 }),
  windowBytes: fc.integer({ min: 1, max: 100 }),
  ackEveryBytes: fc.integer({ min: 1, max: 200 }),
});
