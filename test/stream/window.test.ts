import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReceiveWindow, SendWindow } from '../../src/stream/window.js';
import { proves } from '../requirements.js';

describe('the sender', () => {
  it('may send a window ahead of the last ack, and no further', () => {
    const window = new SendWindow(100);
    expect(window.send(60)).toBe('sent');
    expect(window.available).toBe(40);
    expect(window.send(41)).toBe('blocked');
    expect(window.sent).toBe(60);
    expect(window.send(40)).toBe('sent');
    expect(window.isBlocked).toBe(true);
  });

  it('goes on as far as it was acknowledged', () => {
    const window = new SendWindow(100);
    window.send(100);
    expect(window.ack(30)).toEqual({ kind: 'acked', bytes: 30 });
    expect(window.isBlocked).toBe(false);
    expect(window.available).toBe(30);
  });

  it('is not fooled by an ack that is late or too early', () => {
    const window = new SendWindow(100);
    window.send(50);
    window.ack(30);
    expect(window.ack(29)).toEqual({ kind: 'stale', start: 30 });
    expect(window.ack(51)).toEqual({ kind: 'ahead', end: 50 });
    expect(window.available).toBe(80);
  });

  it('has its whole window again on a new connection, from wherever the reader is', () => {
    const window = new SendWindow(100);
    window.send(100);
    window.restart(40);
    expect(window.sent).toBe(40);
    expect(window.available).toBe(100);
  });

  it('never loses count, however far the stream has come', () => {
    const end = Number.MAX_SAFE_INTEGER;
    const window = new SendWindow(100, end - 10);
    expect(window.send(10)).toBe('sent');
    expect(() => window.send(1)).toThrow(RangeError);
    expect(window.sent).toBe(end);
    expect(window.ack(end)).toEqual({ kind: 'acked', bytes: 10 });
  });

  it(
    proves('has no more under way than its window, whatever is sent and acknowledged', 'ST-02'),
    () => {
      const step = fc.record({
        send: fc.nat({ max: 300 }),
        ack: fc.integer({ min: 0, max: 5_000 }),
        restart: fc.option(fc.nat({ max: 5_000 }), { freq: 10 }),
      });
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 200 }),
          fc.array(step, { maxLength: 80, size: 'max' }),
          (windowBytes, story) => {
            const window = new SendWindow(windowBytes);
            for (const { send, ack, restart } of story) {
              const { available, sent } = window;
              expect(window.send(send)).toBe(send <= available ? 'sent' : 'blocked');
              expect(window.sent).toBe(send <= available ? sent + send : sent);
              window.ack(ack);
              if (restart !== null) window.restart(restart);
              expect(window.acked).toBeLessThanOrEqual(window.sent);
              expect(window.sent - window.acked + window.available).toBe(windowBytes);
              expect(window.available).toBeGreaterThanOrEqual(0);
            }
          },
        ),
        { numRuns: 500 },
      );
    },
  );
});

describe('the reader', () => {
  const options = { ackEveryBytes: 50, maxDelayMs: 20 };

  it('owes nothing while it has consumed nothing', () => {
    const window = new ReceiveWindow(options);
    expect(window.dueAtMs).toBeUndefined();
    expect(window.isDue(1_000_000)).toBe(false);
  });

  it('acknowledges much at once', () => {
    const window = new ReceiveWindow(options);
    window.consume(49, 7);
    expect(window.isDue(7)).toBe(false);
    window.consume(50, 8);
    expect(window.isDue(8)).toBe(true);
    expect(window.take()).toBe(50);
  });

  it('acknowledges little after the delay, counted from the first byte', () => {
    const window = new ReceiveWindow(options);
    window.consume(1, 100);
    window.consume(2, 115);
    expect(window.dueAtMs).toBe(120);
    expect(window.isDue(119)).toBe(false);
    expect(window.isDue(120)).toBe(true);
    expect(window.take()).toBe(2);
  });

  it('owes nothing after an ack, also one that left early with another frame', () => {
    const window = new ReceiveWindow(options);
    window.consume(10, 0);
    expect(window.take()).toBe(10);
    expect(window.dueAtMs).toBeUndefined();
    window.consume(59, 1);
    expect(window.isDue(1)).toBe(false);
    window.consume(60, 2);
    expect(window.isDue(2)).toBe(true);
  });

  it('owes nothing for what it had consumed before', () => {
    const window = new ReceiveWindow(options, 100);
    window.consume(100, 0);
    window.consume(40, 0);
    expect(window.dueAtMs).toBeUndefined();
    expect(window.take()).toBe(100);
  });

  it('never owes a byte for longer than the delay', () => {
    const step = fc.record({ bytes: fc.nat({ max: 60 }), ms: fc.nat({ max: 30 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (story) => {
        const window = new ReceiveWindow(options);
        let nowMs = 0;
        let consumed = 0;
        let acked = 0;
        let owedSinceMs: number | undefined;
        for (const { bytes, ms } of story) {
          nowMs += ms;
          consumed += bytes;
          window.consume(consumed, nowMs);
          if (consumed > acked) owedSinceMs ??= nowMs;
          const isLate = owedSinceMs !== undefined && nowMs - owedSinceMs >= options.maxDelayMs;
          expect(window.isDue(nowMs)).toBe(isLate || consumed - acked >= options.ackEveryBytes);
          if (!window.isDue(nowMs)) continue;
          acked = window.take();
          expect(acked).toBe(consumed);
          owedSinceMs = undefined;
        }
      }),
    );
  });
});
