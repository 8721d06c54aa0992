import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EscapeKeys, type KeyEvent } from '../../../src/cli/terminal/escape-keys.js';

function typed(keys: EscapeKeys, ...chunks: string[]): string {
  const events = chunks.flatMap((chunk) => keys.take(Buffer.from(chunk, 'latin1')));
  return joined(events);
}

/** Commands in brackets, input as it is. */
function joined(events: readonly KeyEvent[]): string {
  return events
    .map((event) =>
      event.kind === 'command' ? `[${event.command}]` : Buffer.from(event.bytes).toString('latin1'),
    )
    .join('');
}

describe('keys of ours', () => {
  it.each([
    ['at the very beginning', ['~.'], '[detach]'],
    ['after Enter', ['ls\r~.'], 'ls\r[detach]'],
    ['after a newline, as a paste has it', ['ls\n~.'], 'ls\n[detach]'],
    ['one key at a time', ['\r', '~', '.'], '\r[detach]'],
    ['within a line they are not', ['a~.'], 'a~.'],
    ['twice is once', ['\r~~.'], '\r~.'],
    ['before another key it is itself', ['\r~/x'], '\r~/x'],
    ['help and redraw', ['~?~R'], '[help][redraw]'],
    ['then a line goes on as usual', ['~?ls\r'], '[help]ls\r'],
    ['not in pasted text', ['\x1b[200~a\r~.\x1b[201~'], '\x1b[200~a\r~.\x1b[201~'],
    ['again after it', ['\x1b[200~a\x1b[201~', '\r~.'], '\x1b[200~a\x1b[201~\r[detach]'],
    ['Ctrl-C after it belongs to the shell', ['\r~\x03'], '\r~\x03'],
  ])('%s', (_, chunks, expected) => {
    expect(typed(new EscapeKeys('~'), ...chunks)).toBe(expected);
  });

  it('another character can be chosen, and none', () => {
    expect(typed(new EscapeKeys('%'), '\r~.\r%.')).toBe('\r~.\r[detach]');
    expect(typed(new EscapeKeys(undefined), '\r~.')).toBe('\r~.');
  });

  it('mean the same however the terminal cuts them into chunks', () => {
    const text = fc
      .array(fc.constantFrom('~', '\r', 'a', '.', '?', 'R', '\x1b[200~', '\x1b[201~', '\xff'), {
        maxLength: 30,
      })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(60)), (all, cuts) => {
        const whole = typed(new EscapeKeys('~'), all);
        const at = [0, ...cuts.filter((cut) => cut < all.length).sort((a, b) => a - b), all.length];
        const chunks = at.slice(1).map((end, index) => all.slice(at[index], end));
        expect(typed(new EscapeKeys('~'), ...chunks)).toBe(whole);
      }),
    );
  });
});
