import { describe, expect, it } from 'vitest';
import { AilsdError } from '../../src/protocol/errors.js';
import { DATA_HEADER_BYTES } from '../../src/protocol/frame-binary.js';
import { decodeFrame, encodeFrame } from '../../src/protocol/frame-codec.js';
import type { ControlFrame, DataFrame } from '../../src/protocol/frames.js';
import { type AnyFrameSet, FRAME_SETS, recordedFrames } from '../fixtures/frames/recorded.js';
import { proves } from '../requirements.js';

const INPUTS = 200_000;
const SEED = Number(process.env['AILSD_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

describe(`decoding`, () => {
  it(proves(
    `gives a frame or a typed error for any of ${INPUTS} hostile messages`,
    'PR-08',
  ), () => {
    const random = seededRandom(SEED);
    const hostile = hostileMessages(random);
    const counts = { frames: 0, INVALID_REQUEST: 0, PAYLOAD_TOO_LARGE: 0 };
    for (let i = 0; i < INPUTS; i++) {
      const message = hostile();
      const frames = pick(random, Object.values(FRAME_SETS));
      const maxBytes = random() < 0.01 ? 40 : undefined;
      try {
        const decoded = decodeFrame(frames, message, maxBytes);
        if (decoded.ok) {
          counts.frames += 1;
          expectSettled(frames, decoded.frame);
        } else {
          counts[expectTyped(decoded.error)] += 1;
        }
      } catch (cause) {
        const shown = typeof message === 'string' ? message : Buffer.from(message).toString('hex');
        throw new Error(`seed ${SEED}, input ${i}: ${shown.slice(0, 500)}`, { cause });
      }
    }
    // The inputs are worth something only if each outcome is reached often.
    expect(counts.frames).toBeGreaterThan(INPUTS / 50);
    expect(counts.INVALID_REQUEST).toBeGreaterThan(INPUTS / 4);
    expect(counts.PAYLOAD_TOO_LARGE).toBeGreaterThan(INPUTS / 1000);
  }, 60_000);

  it.each([
    ['a million open brackets', '['.repeat(1_000_000)],
    ['arrays in arrays', `${'['.repeat(500_000)}${']'.repeat(500_000)}`],
    ['objects in objects', `${'{"type":'.repeat(60_000)}1${'}'.repeat(60_000)}`],
    ['depth in a known field', inField('cols', `${'['.repeat(500_000)}${']'.repeat(500_000)}`)],
    [
      'depth in an unknown field of a bad frame',
      `{"type":"resize","x":${'[{"x":'.repeat(100_000)}1${'}]'.repeat(100_000)}}`,
    ],
    ['a quarter of a million arguments that are none', inArguments(`[${'1,'.repeat(250_000)}1]`)],
    ['fifty thousand arguments with NUL', inArguments(`[${'"\\u0000",'.repeat(50_000)}""]`)],
    [
      'a hundred thousand bad variables',
      inField('env', `{${Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join()}}`),
    ],
    ['half a million items in a list', `{"type":"presence","viewers":[${'1,'.repeat(500_000)}1]}`],
    [
      'lists in lists, wrong to the last',
      `{"type":"stage","transfer_id":"t","send":[${`{"parts":[${'1,'.repeat(1000)}1]},`.repeat(490)}1]}`,
    ],
    [
      'all the entries that fit, each of them wrong',
      `{"type":"scanned","entries":[${'{"kind":"file"},'.repeat(4095)}1]}`,
    ],
    ['far too many changes', `{"type":"transition","changes":[${'{},'.repeat(300_000)}1]}`],
    ['a number of a million digits', inField('cols', '9'.repeat(1_000_000))],
    ['a name of a million characters', `{"type":"${'x'.repeat(1_000_000)}"}`],
    ['nothing', ''],
    ['a million NULs', '\0'.repeat(1_000_000)],
    ['a lone half of a pair', '\ud800'],
  ])(proves('is quick to refuse %s', 'PR-08'), (_, message) => {
    for (const frames of Object.values(FRAME_SETS)) {
      const start = performance.now();
      const decoded = decodeFrame(frames, message);
      expect(performance.now() - start).toBeLessThan(1000);
      if (decoded.ok) expect.fail('was accepted');
      expect(expectTyped(decoded.error)).toBe('INVALID_REQUEST');
    }
  });

  it(proves('leaves every prototype as it was', 'PR-08'), () => {
    decodeFrame(
      FRAME_SETS['shell client'],
      '{"type":"start","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"env":{"__proto__":"x"}}',
    );
    expect('polluted' in {}).toBe(false);
  });
});

function inField(field: string, json: string): string {
  return `{"type":"start","argv":["x"],"${field}":${json}}`;
}

/** Shells and exec call them differently. */
function inArguments(json: string): string {
  return `{"type":"start","argv":${json},"command":${json}}`;
}

function expectTyped(error: AilsdError): 'INVALID_REQUEST' | 'PAYLOAD_TOO_LARGE' {
  if (!(error instanceof AilsdError)) expect.fail('is not one of our errors');
  if (error.message.length > 300) expect.fail('is too long');
  // The words of a schema that brought none of its own.
  if (/invalid input|undefined|not of the right form/i.test(error.message))
    expect.fail(error.message);
  if (/\bmust\b.*\bmust\b/.test(error.message)) expect.fail(error.message);
  const { code } = error;
  return code === 'INVALID_REQUEST' || code === 'PAYLOAD_TOO_LARGE' ? code : expect.fail(code);
}

/** What was accepted is a frame of the set in every respect: it can be sent, and comes back the same. */
function expectSettled(frames: AnyFrameSet, frame: ControlFrame | DataFrame): void {
  const text = encodeFrame(frame, 'json');
  const again = decodeFrame(frames, text);
  if (!again.ok) expect.fail(`its own encoding is refused: ${again.error.message}`);
  expect(encodeFrame(again.frame, 'json')).toBe(text);
}

// The messages -------------------------------------------------------------------------------------------------------

type Random = () => number;

/** mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick<T>(random: Random, items: readonly T[]): T {
  const [item] = items.slice(Math.floor(random() * items.length));
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}

function upTo(random: Random, most: number): number {
  return Math.floor(random() * (most + 1));
}

function hostileMessages(random: Random): () => string | Uint8Array {
  const recorded = recordedFrames().map(({ message }) => message);
  const texts = recorded.filter((message) => typeof message === 'string');
  const binaries = recorded.filter((message) => typeof message !== 'string');
  const fields = [...new Set(texts.flatMap((text) => Object.keys(JSON.parse(text))))];
  const types = Object.values(FRAME_SETS).flatMap(({ control, data }) => [
    ...Object.keys(control),
    ...data,
  ]);
  return () => {
    const kind = random();
    if (kind < 0.15) return randomBytes(random, upTo(random, 40));
    if (kind < 0.3) return mutatedBytes(random, pick(random, binaries));
    if (kind < 0.4) return randomText(random, upTo(random, 40));
    if (kind < 0.7) return mutatedText(random, pick(random, texts));
    if (kind < 0.998) return randomFrame(random, types, fields);
    return nested(random, 10_000 + upTo(random, 10_000));
  };
}

function randomBytes(random: Random, length: number): Uint8Array {
  const bytes = Uint8Array.from({ length }, () => upTo(random, 255));
  if (length > 0 && random() < 0.5) bytes[0] = 0x10 + upTo(random, 3);
  return bytes;
}

function mutatedBytes(random: Random, bytes: Uint8Array): Uint8Array {
  const mutated = bytes.slice(0, random() < 0.3 ? upTo(random, bytes.length) : bytes.length);
  for (let i = upTo(random, 3); i > 0; i--) {
    mutated[upTo(random, Math.min(mutated.length, DATA_HEADER_BYTES + 4))] = upTo(random, 255);
  }
  return mutated;
}

const SPECIAL = [
  '\ud800',
  '\udc00',
  '\0',
  '\ufeff',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '-',
  'e9',
  'é',
  '🐚',
  '\\ud800',
  '\\u0000',
  '=',
  ' ',
  '\n',
];

function randomText(random: Random, length: number): string {
  let text = '';
  for (let i = 0; i < length; i++) {
    text += random() < 0.5 ? pick(random, SPECIAL) : String.fromCharCode(upTo(random, 0xffff));
  }
  return text;
}

function mutatedText(random: Random, text: string): string {
  let mutated = text;
  for (let i = 1 + upTo(random, 3); i > 0; i--) {
    const at = upTo(random, mutated.length);
    const [before, after] = [mutated.slice(0, at), mutated.slice(at)];
    const how = random();
    if (how < 0.25) mutated = before + after.slice(1 + upTo(random, 5));
    else if (how < 0.5) mutated = before + pick(random, SPECIAL) + after;
    else if (how < 0.7) mutated = before + String.fromCharCode(upTo(random, 127)) + after.slice(1);
    else if (how < 0.8) mutated = before + after.slice(0, upTo(random, 20)) + after;
    else mutated = mutated.replace(/\d+/, () => JSON.stringify(hostileValue(random, 0)) ?? '');
  }
  return mutated;
}

function randomFrame(random: Random, types: readonly string[], fields: readonly string[]): string {
  const entries: [string, unknown][] = [
    ['type', random() < 0.95 ? pick(random, types) : hostileValue(random, 2)],
  ];
  for (let i = upTo(random, 8); i > 0; i--) {
    entries.push([
      random() < 0.9 ? pick(random, fields) : pick(random, NAMES),
      hostileValue(random, 2),
    ]);
  }
  // By hand, so that names may come twice and `__proto__` is one of them.
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`;
}

const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  'x',
  '0',
  'A=B',
  '\ud800',
];
const VALUES = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  80,
  0.5,
  255,
  1000,
  1001,
  65_535,
  65_536,
  1e9,
  2 ** 53,
  2 ** 53 - 1,
  1e308,
  '',
  '80',
  'new',
  'sh_1',
  'SIGINT',
  'base64',
  'AAAA',
  'take',
  'writer',
  'remote',
  'stdout',
  '\0',
  '\ud800',
  '../x',
  'x'.repeat(300),
];

function hostileValue(random: Random, depth: number): unknown {
  const kind = random();
  if (depth === 0 || kind < 0.7) return pick(random, VALUES);
  if (kind < 0.85)
    return Array.from({ length: upTo(random, 4) }, () => hostileValue(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length: upTo(random, 4) }, () => [
      pick(random, NAMES),
      hostileValue(random, depth - 1),
    ]),
  );
}

function nested(random: Random, depth: number): string {
  const [open, close] = pick(random, [
    ['[', ']'],
    ['{"type":', '}'],
    ['{"env":', '}'],
  ] as const);
  return `${open.repeat(depth)}1${close.repeat(random() < 0.8 ? depth : upTo(random, depth))}`;
}
