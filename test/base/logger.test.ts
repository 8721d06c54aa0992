import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/base/clock.js';
import {
  createLogger,
  type LogLevel,
  MAX_LINE_CHARACTERS,
  silentLogger,
} from '../../src/base/logger.js';
import { proves } from '../requirements.js';

function memoryLogger(level: LogLevel = 'info') {
  const lines: string[] = [];
  const clock = new ManualClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  const logger = createLogger({ write: (line) => lines.push(line), clock, level });
  return { logger, lines };
}

/** The fields of the one line that logging these makes. */
function printed(value: unknown, level: LogLevel = 'info'): unknown {
  const { logger, lines } = memoryLogger(level);
  logger.error('x', { value });
  return JSON.parse(lines.join(''))['value'];
}

describe('a line', () => {
  it('is one JSON object: time, level, message, then the fields', () => {
    const { logger, lines } = memoryLogger();
    logger.info('shell opened', { shell: 'sh_1', ms: 12 });
    expect(lines).toEqual([
      '{"time":"2026-01-02T03:04:05.006Z","level":"info","message":"shell opened","shell":"sh_1","ms":12}\n',
    ]);
  });

  it('is written when its level is asked for', () => {
    const { logger, lines } = memoryLogger('warn');
    logger.debug('a');
    logger.info('b');
    logger.warn('c');
    logger.error('d');
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(['c', 'd']);
  });

  it('of a child has the fields of its ancestors; the nearest says what counts', () => {
    const { logger, lines } = memoryLogger();
    const child = logger.child({ a: 1, b: 1, c: 1 }).child({ b: 2, c: 2 });
    child.info('x', { c: 3 });
    logger.info('y');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { a: 1, b: 2, c: 3 },
      { message: 'y' },
    ]);
    expect(lines[1]).not.toContain('"a"');
  });

  it('cannot be made to lie about its time, level or message', () => {
    const { logger, lines } = memoryLogger();
    logger.child({ level: 'debug' }).info('real', { message: 'forged', time: 'never' });
    expect(JSON.parse(lines.join(''))).toEqual({
      time: '2026-01-02T03:04:05.006Z',
      level: 'info',
      message: 'real',
    });
  });

  it('stays one line, moves no cursor and hides nothing, whatever text it holds', () => {
    const { logger, lines } = memoryLogger();
    const nasty =
      'a\nb\r\u001b[2J\u009b2J\u007f\u202e\u2066\u2028\u2029\u200f\u200b\u2060\ufeff\u00ad\u{e0041}';
    logger.info(nasty, { [nasty]: nasty });
    expect(lines.join('')).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(lines.join(''))).toMatchObject({ message: nasty, [nasty]: nasty });
  });
});

it('every character that is not seen is escaped, and every other left alone', () => {
  const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
  const escaped = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}"\\]/u;
  for (let from = 0; from < 0x11_0000; from += 0x400) {
    const { logger, lines } = memoryLogger();
    const all = Array.from({ length: 0x400 }, (_, at) => String.fromCodePoint(from + at));
    logger.info(all.join(''));
    const line = lines.join('').slice(0, -1);
    const raw = line.slice(line.indexOf('"message":"') + 11, -2).replace(/\\(?:u....|.)/g, '');
    // Compared here, so that a failure names the block and does not print it.
    const isRight = {
      value: JSON.parse(line).message === all.join(''),
      escaped: !unseen.test(line),
      alone: raw === all.filter((one) => !escaped.test(one)).join(''),
    };
    const block = `U+${from.toString(16)}`;
    expect({ block, ...isRight }).toEqual({ block, value: true, escaped: true, alone: true });
  }
});

describe('values', () => {
  it('an error shows name, message, code and causes, and its stack only at debug', () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET', request: 'headers' });
    const error = new Error('outer', { cause });
    const expected = {
      name: 'Error',
      message: 'outer',
      cause: { name: 'TypeError', message: 'inner', code: 'ECONNRESET' },
    };
    expect(printed(error)).toEqual(expected);
    expect(printed(error, 'debug')).toMatchObject({
      ...expected,
      stack: expect.stringContaining('logger.test'),
    });
  });

  it('an error shows the words it keeps for the log, and what it is the sum of', () => {
    const first = Object.assign(new Error('one'), { internal: 'for the log alone' });
    expect(printed(new AggregateError([first, 'two'], 'both'))).toEqual({
      name: 'AggregateError',
      message: 'both',
      errors: [{ name: 'Error', message: 'one', internal: 'for the log alone' }, 'two'],
    });
  });

  it('bytes show their number only', () => {
    expect(printed(Buffer.from('hunter2'))).toBe('[7 bytes]');
  });

  it('what JSON has no word for is shown as text', () => {
    expect(
      printed([
        10n,
        Number.NaN,
        Symbol('s'),
        () => 1,
        null,
        undefined,
        new Date(0),
        new Date(Number.NaN),
      ]),
    ).toEqual([
      '10',
      'NaN',
      'Symbol(s)',
      '[function]',
      null,
      null,
      '1970-01-01T00:00:00.000Z',
      null,
    ]);
  });

  it('a field without a value is left out', () => {
    expect(printed({ a: undefined, b: 1 })).toEqual({ b: 1 });
  });

  it('what refers to itself is cut there, and what is only used twice is not', () => {
    const twice = { a: 1 };
    const cyclic: Record<string, unknown> = { x: twice, y: twice };
    cyclic['self'] = cyclic;
    expect(printed(cyclic)).toEqual({ x: { a: 1 }, y: { a: 1 }, self: '[circular]' });
  });

  it('what cannot be read does not spoil the line', () => {
    const trap = {
      get boom() {
        throw new Error('boom');
      },
    };
    expect(printed({ trap, fine: 1 })).toEqual({ trap: '[unreadable]', fine: 1 });
    const { logger, lines } = memoryLogger();
    logger.info('x', trap);
    expect(JSON.parse(lines.join(''))).toMatchObject({ message: 'x', fields: '[unreadable]' });
  });
});

describe('values that fight back', () => {
  /** The memory under the view has shrunk: even its length cannot be asked for. */
  function viewOfNothing(): DataView {
    const buffer: unknown = Reflect.construct(ArrayBuffer, [8, { maxByteLength: 8 }]);
    if (!(buffer instanceof ArrayBuffer)) throw new Error('there are no resizable buffers');
    const view = new DataView(buffer, 4);
    Reflect.apply(Reflect.get(buffer, 'resize'), buffer, [0]);
    return view;
  }

  it.each([
    ['a revoked proxy', revoked({})],
    ['a revoked list', revoked([])],
    ['a view whose memory is gone', viewOfNothing()],
    ['a proxy that throws at everything', new Proxy({}, throwing())],
    ['a toJSON that gives a revoked proxy', { toJSON: () => revoked({}) }],
    ['an error whose message throws', Object.defineProperty(new Error(), 'message', throwing())],
  ])('%s is shown as unreadable, as a field and as all of them', (_, value) => {
    expect(printed(value)).toBe('[unreadable]');
    const { logger, lines } = memoryLogger();
    logger.info('m', { ...{}, value });
    logger.child({ value }).info('m');
    Reflect.apply(logger.info, logger, ['m', value]);
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(['m', 'm', 'm']);
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({ fields: '[unreadable]' });
  });
});

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** Every trap of a proxy, and every half of a property. */
function throwing(): PropertyDescriptor & ProxyHandler<object> {
  const no = (): never => {
    throw new Error('no');
  };
  return { get: no, has: no, ownKeys: no, getPrototypeOf: no, getOwnPropertyDescriptor: no };
}

describe('bounds', () => {
  it(proves('long texts, lists and objects are cut, and say by how much', 'ST-02'), () => {
    expect(printed('x'.repeat(5_000))).toBe(`${'x'.repeat(4_096)}[904 more]`);
    expect(printed(Array.from({ length: 100 }, () => 1))).toHaveLength(65);
    expect(printed(Array.from({ length: 100 }, () => 1))).toContain('[36 more]');
    const wide = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, at]));
    expect(printed(wide)).toMatchObject({ k63: 63, '[cut]': 36 });
  });

  it('what is wide at every level is cut in all', () => {
    const row = Array.from({ length: 60 }, () => 7);
    const table = JSON.stringify(printed(Array.from({ length: 60 }, () => row)));
    expect(table.match(/\b7\b/g)?.length).toBeLessThan(520);
    expect(table).toMatch(/"\[39 more\]"\],"\[51 more\]"\]$/);
  });

  it('what is deep is cut at a depth', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100; level++) deep = { deep };
    expect(JSON.stringify(printed(deep))).toContain('[too deep]');
    expect(JSON.stringify(printed({ toJSON: deeper }))).toContain('[too deep]');
  });

  it('a line that is still too long goes out without its fields', () => {
    const { logger, lines } = memoryLogger();
    logger.info('x', { list: Array.from({ length: 60 }, () => 'y'.repeat(4_000)) });
    expect(lines.join('').length).toBeLessThan(200);
    expect(JSON.parse(lines.join(''))).toMatchObject({ message: 'x', '[cut]': expect.any(Number) });
  });

  it(proves('any value at all makes one bounded line of JSON', 'ST-02'), () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), anything), (message, fields) => {
        const { logger, lines } = memoryLogger('debug');
        logger.info(message, fields);
        const line = lines.join('');
        expect(line.length).toBeLessThanOrEqual(MAX_LINE_CHARACTERS + 1);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(JSON.parse(line)).toMatchObject({ level: 'info', message });
      }),
      { numRuns: 1_000 },
    );
  });
});

function deeper(): unknown {
  return { toJSON: deeper };
}

it('the silent logger and its children say nothing', () => {
  const child = silentLogger.child({ a: 1 });
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    expect(child[level]('x', { a: 1 })).toBeUndefined();
  }
});
