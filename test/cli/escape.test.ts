import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeLines, escapeText } from '../../src/cli/escape.js';
import { jsonText } from '../../src/cli/output.js';
import { proves } from '../requirements.js';
import { ailsd } from '../support/cli.js';

const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u00ad\u200b\u2028\u2029\u3164\ufeff\p{Surrogate}]/u;

describe('text from outside', () => {
  it('is printed with escapes for what would act on a terminal', () => {
    expect(escapeText('plain, ünïcödé, 日本 and 👍')).toBe('plain, ünïcödé, 日本 and 👍');
    expect(escapeText('\u001b]52;c;AAAA\u0007')).toBe('\\x1b]52;c;AAAA\\x07');
    expect(escapeText('a\r\nb\tc')).toBe('a\\r\\nb\\tc');
    expect(escapeText('\u009b31m')).toBe('\\x9b31m');
    expect(escapeText('safe\u202egpj.exe')).toBe('safe\\u202egpj.exe');
    expect(escapeText('\ud800x')).toBe('\\ud800x');
    expect(escapeText('\u{e0041}')).toBe('\\u{e0041}');
    expect(escapeLines('a\r\nb\tc')).toBe('a\\r\nb\tc');
  });

  it(proves('never holds a control or bidi character afterwards, whatever it was', 'CM-05'), () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeText(text)).not.toMatch(UNSAFE);
      }),
      { numRuns: 5_000 },
    );
  });

  it('is the same value in JSON, with nothing in it that acts on a terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = jsonText({ text }, false);
        expect(JSON.parse(json)).toEqual({ text });
        expect(json).not.toMatch(UNSAFE);
      }),
      { numRuns: 5_000 },
    );
  });

  it(proves('is escaped in errors, in results and in notices', 'CM-05'), async () => {
    const hostile = 'x\u001b[31m\u202e\u009b\r\ny';
    const runs = await Promise.all([
      ailsd([hostile]),
      ailsd(['version', `--${hostile}`]),
      ailsd(['config', 'get', hostile]),
      ailsd(['config', 'list'], { env: { AILSD_URL: hostile } }),
      ailsd(['config', 'list', '--profile', hostile]),
      ailsd(['config', 'path'], { env: { AILSD_CONFIG_DIR: `/tmp/${hostile}` } }),
      ailsd(['config', 'list'], { env: { AILSD_THREAD: hostile } }),
      ailsd([hostile, '--json']),
    ]);
    for (const { stdout, stderr } of runs) {
      expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.toMatch(UNSAFE);
      expect(`${stdout}${stderr}`).toMatch(/\\x1b|\\u001b/);
    }
  });
});
