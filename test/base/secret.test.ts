import { format, inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/base/clock.js';
import { createLogger } from '../../src/base/logger.js';
import { Secret } from '../../src/base/secret.js';
import { proves } from '../requirements.js';

const secret = new Secret('hunter2');

describe('printing', () => {
  it.each<[string, () => string]>([
    ['String()', () => String(secret)],
    ['a template', () => `${secret}`],
    ['joining', () => [secret, secret].join()],
    ['toLocaleString', () => secret.toLocaleString()],
    ['JSON', () => JSON.stringify({ deep: [{ secret }] })],
    [
      'inspection',
      () => inspect({ deep: { secret } }, { depth: 9, showHidden: true, getters: true }),
    ],
    ['format %s', () => format('%s', secret)],
    ['format %o', () => format('%o', secret)],
    ['format %O', () => format('%O %j', secret, secret)],
    ['an error', () => inspect(new Error(`bad ${secret}`, { cause: secret }))],
    ['a URL', () => new URL(`https://host/?key=${secret}`).href],
    ['a map', () => inspect(new Map([[secret, secret]]))],
    ['a log line', () => logged({ secret, list: [secret], deep: { of: { secret } } })],
    [
      'the log line of an error about it',
      () => logged({ error: new Error('x', { cause: secret }) }),
    ],
  ])(proves('by %s shows [secret] and never the text', 'ST-05'), (_way, print) => {
    const printed = print();
    expect(decodeURIComponent(printed)).toContain('[secret]');
    expect(printed).not.toContain('hunter2');
  });

  it(proves('a copy or a listing of its fields holds nothing', 'ST-05'), () => {
    expect({ ...secret }).toEqual({});
    expect(Object.getOwnPropertyNames(secret)).toEqual([]);
    expect(structuredClone(secret)).toEqual({});
  });
});

function logged(fields: Record<string, unknown>): string {
  let line = '';
  const write = (text: string) => {
    line += text;
  };
  createLogger({ write, clock: new ManualClock(), level: 'debug' }).info('x', fields);
  return line;
}

describe('using', () => {
  it('reveals its text to who asks for it', () => {
    expect(secret.reveal()).toBe('hunter2');
  });

  it('equals another with the same text and none else', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        expect(new Secret(a).equals(new Secret(a))).toBe(true);
        expect(new Secret(a).equals(new Secret(b))).toBe(a === b);
        expect(new Secret(a).equals(new Secret(a + b))).toBe(b === '');
        expect(new Secret(a + b).equals(new Secret(a))).toBe(b === '');
      }),
    );
  });

  it('is not taken in by a NUL for a missing character', () => {
    expect(new Secret('a').equals(new Secret('a\0'))).toBe(false);
    expect(new Secret('').equals(new Secret('\0'))).toBe(false);
  });
});
