import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModeTracker } from '../../../src/cli/terminal/mode-tracker.js';

function trackerAfter(...chunks: (string | Uint8Array)[]): ModeTracker {
  const tracker = new ModeTracker();
  for (const chunk of chunks)
    tracker.take(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk);
  return tracker;
}

describe('what a program has set', () => {
  it.each([
    ['nothing', 'plain text\r\n', ''],
    ['the mouse', '\x1b[?1000;1006h', '\x1b[?1000l\x1b[?1006l'],
    ['the mouse, and undid it itself', '\x1b[?1002h\x1b[?1002l', ''],
    ['pasting in brackets', '\x1b[?2004h', '\x1b[?2004l'],
    ['no cursor', '\x1b[?25l', '\x1b[?25h'],
    ['focus events', '\x1b[?1004h', '\x1b[?1004l'],
    ['the other screen first', '\x1b[?1003h\x1b[?1049h', '\x1b[?1049l\x1b[?1003l'],
    ['application keys', '\x1b[?1h\x1b=', '\x1b[?1l\x1b>'],
    ['a scroll region', '\x1b[2;10r', '\x1b7\x1b[r\x1b8'],
    ['line drawing', '\x1b(0qqq', '\x1b(B\x0f'],
    ['a style', '\x1b[1;31mred', '\x1b[0m'],
    ['a style, and its end', '\x1b[1;31mred\x1b[0m', ''],
    ['another cursor', '\x1b[4 q', '\x1b[0 q'],
    ['a title put aside', '\x1b[22;0t', '\x1b[23;0t'],
    ['a key protocol', '\x1b[>1u', '\x1b[<1u'],
    ['other keys', '\x1b[>4;2m', '\x1b[>4m'],
    ['a background', '\x1b]11;#000000\x1b\\', '\x1b]111\x1b\\'],
    ['insert mode', '\x1b[4h', '\x1b[4l'],
    ['everything, then a reset', '\x1b[?1000h\x1b=\x1b[1m\x1bc', ''],
    ['the mouse and no cursor, then a soft reset', '\x1b[?1000h\x1b[?25l\x1b[!p', '\x1b[?1000l'],
    ['a mode inside of a title, which is none', '\x1b]0;[?25l\x07', ''],
    ['a mode after a title that was broken off', '\x1b]0;abc\x1b[?25l', '\x1b[?25h'],
  ])('%s', (_, output, repair) => {
    expect(trackerAfter(output).repair()).toBe(repair);
  });

  it('is the same however the output is cut into chunks', () => {
    const part = fc.constantFrom(
      'text',
      '\x1b[?1000h',
      '\x1b[?25l',
      '\x1b[?1049h',
      '\x1b[?1049l',
      '\x1b]2;a title\x07',
      '\x1b]8;;http://x\x1b\\',
      '\x1bPq#0\x1b\\',
      '\x1b(0',
      '\x1b=',
      '\x1b[2;5r',
      '\x1b[38;5;1m',
      '\x1b\x1b[?2004h',
      '\xff\xfe',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), fc.array(fc.nat(150)), (parts, cuts) => {
        const all = parts.join('');
        const at = [0, ...cuts.filter((cut) => cut < all.length).sort((a, b) => a - b), all.length];
        const chunks = at.slice(1).map((end, index) => all.slice(at[index], end));
        const whole = trackerAfter(all);
        const cut = trackerAfter(...chunks);
        expect(cut.repair()).toBe(whole.repair());
        expect(cut.isInSequence).toBe(whole.isInSequence);
      }),
    );
  });

  it('any bytes are read without an error, and undone twice it is nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (chunks) => {
        const tracker = trackerAfter(...chunks);
        if (tracker.isInSequence) return;
        tracker.take(Buffer.from(tracker.repair(), 'latin1'));
        expect(tracker.isAlternate).toBe(false);
      }),
    );
  });

  it('a sequence that never ends is let go', () => {
    expect(trackerAfter(`\x1b[${'1;'.repeat(500)}`, 'x\x1b[?25l').repair()).toBe('\x1b[?25h');
  });
});
