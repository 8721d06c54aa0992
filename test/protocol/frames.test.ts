import { describe, expect, it } from 'vitest';
import { AilsdError } from '../../src/protocol/errors.js';
import { execClientFrames, execServerFrames } from '../../src/protocol/exec-frames.js';
import { decodeFrame } from '../../src/protocol/frame-codec.js';
import {
  ARGV_MAX_BYTES,
  ENV_MAX_BYTES,
  ENV_MAX_VARIABLES,
  ENV_NAME_MAX_CHARS,
  HISTORY_MAX_LINES,
  PATH_MAX_CHARS,
  SCREEN_MAX_CHARS,
  TIMEOUT_MAX_MS,
  TOKEN_MAX_CHARS,
  VIEWERS_MAX,
} from '../../src/protocol/frame-fields.js';
import {
  type ControlSchema,
  type DataType,
  type FrameSet,
  MESSAGE_MAX_BYTES,
  UNAUTHENTICATED_MESSAGE_MAX_BYTES,
} from '../../src/protocol/frames.js';
import { shellClientFrames, shellServerFrames } from '../../src/protocol/shell-frames.js';
import { IGNORE_MAX_PATTERNS, PARTS_MAX, SYNC_LIST_MAX } from '../../src/protocol/sync-fields.js';
import { syncClientFrames, syncServerFrames } from '../../src/protocol/sync-frames.js';
import { tunnelClientFrames } from '../../src/protocol/tunnel-frames.js';
import { proves } from '../requirements.js';

type AnySet = FrameSet<ControlSchema, DataType>;

function accepts(frames: AnySet, ...sent: object[]): void {
  for (const one of sent) {
    const decoded = decodeFrame(frames, JSON.stringify(one));
    expect(decoded.ok, JSON.stringify(one).slice(0, 200)).toBe(true);
  }
}

/** Each is refused, as a bad request, naming the field. */
function refuses(frames: AnySet, field: string, ...sent: object[]): void {
  for (const one of sent) {
    const text = JSON.stringify(one);
    const decoded = decodeFrame(frames, text);
    if (decoded.ok) expect.fail(`was accepted: ${text.slice(0, 200)}`);
    expect(decoded.error).toBeInstanceOf(AilsdError);
    expect(decoded.error).toMatchObject({ code: 'INVALID_REQUEST', details: { field } });
    expect(decoded.error.message).toMatch(ONE_SENTENCE);
  }
}

/** The frame, the field, and once what it must be. */
const ONE_SENTENCE =
  /^the [a-z_]+ frame: [\w.-]+ (is missing: it )?must be (?!.*\bmust be\b)[\w*].*[^.]$/;

const resize = { type: 'resize', cols: 80, rows: 24 };
const start = { type: 'start' };
const run = { type: 'start', argv: ['true'] };

describe('a size', () => {
  it('is a whole number from 1 to 1000, and never a text', () => {
    accepts(shellClientFrames, { ...resize, cols: 1 }, { ...resize, rows: 1000 });
    for (const bad of [0, -1, 1001, 1e9, 1e300, 80.5, '80', null, true, [80], {}]) {
      refuses(shellClientFrames, 'cols', { ...resize, cols: bad }, { ...start, cols: bad });
      refuses(shellClientFrames, 'rows', { ...resize, rows: bad }, { ...start, rows: bad });
      refuses(execClientFrames, 'cols', { ...resize, cols: bad }, { ...run, cols: bad });
    }
    refuses(shellClientFrames, 'rows', { type: 'resize', cols: 80 });
  });

  it('too large for any number is refused like any other', () => {
    const decoded = decodeFrame(shellClientFrames, '{"type":"resize","cols":1e999,"rows":24}');
    expect(decoded).toMatchObject({ ok: false, error: { details: { field: 'cols' } } });
  });
});

describe('an offset', () => {
  const bad = [-1, 0.5, 2 ** 53, 1e300, '0', null, [0]];

  it('is a whole number that is exact, up to 2^53 - 1', () => {
    const most = Number.MAX_SAFE_INTEGER;
    accepts(shellClientFrames, { type: 'ack', offset: 0 }, { type: 'ack', offset: most });
    accepts(shellClientFrames, { type: 'stdin', data: '', offset: most });
    for (const offset of bad) {
      refuses(shellClientFrames, 'offset', { type: 'ack', offset }, { ...start, offset });
      refuses(shellClientFrames, 'offset', { type: 'stdin', data: '', offset });
      refuses(shellClientFrames, 'input_offset', { ...start, input_offset: offset });
      refuses(execClientFrames, 'stdout_offset', { ...run, stdout_offset: offset });
      refuses(execClientFrames, 'limits.stdout_bytes', {
        ...run,
        limits: { stdout_bytes: offset },
      });
    }
    refuses(shellClientFrames, 'offset', { type: 'ack' });
  });
});

describe('a token', () => {
  it(`is 1 to ${TOKEN_MAX_CHARS} visible ASCII characters`, () => {
    accepts(shellClientFrames, { type: 'auth', token: 'x'.repeat(TOKEN_MAX_CHARS) });
    for (const token of ['', 'x'.repeat(TOKEN_MAX_CHARS + 1), 'a b', 'a\n', 'é', '\0', 7, null]) {
      refuses(shellClientFrames, 'token', { type: 'auth', token });
    }
    refuses(shellClientFrames, 'token', { type: 'auth' });
  });

  it('is never repeated in an error', () => {
    for (const text of [
      '{"type":"auth","token":"eyJsecret secret"}',
      '{"type":"auth","token":"eyJsecret',
      'eyJsecret',
      '{"type":"eyJsecret"}',
      '{"type":"start","env":{"eyJsecret=":"eyJsecret"}}',
      '{"type":"start","command":["eyJsecret\\u0000"]}',
    ]) {
      const decoded = decodeFrame(shellClientFrames, text);
      if (decoded.ok) expect.fail('was accepted');
      const { message, details, stack, cause } = decoded.error;
      expect(JSON.stringify([message, details, stack, String(cause)])).not.toContain('eyJsecret');
    }
  });
});

describe('a program and its arguments', () => {
  it('may hold anything an argument can', () => {
    accepts(execClientFrames, {
      ...run,
      argv: ['a', '', '-x', ' ', '"\'', '$(x)\n', '🐚\u{10ffff}'],
    });
  });

  it('are texts, the first not empty', () => {
    for (const argv of [[], [''], 'ls', { 0: 'ls' }, [1], ['ls', null], ['a\0'], ['a', '\ud800']]) {
      refuses(execClientFrames, 'argv', { ...run, argv });
      refuses(shellClientFrames, 'command', { ...start, command: argv });
    }
  });

  it('are 128 KiB together, counted in bytes with a terminator each', () => {
    const most = ARGV_MAX_BYTES - 1;
    accepts(execClientFrames, { ...run, argv: ['x'.repeat(most)] });
    accepts(execClientFrames, { ...run, argv: ['x', ...Array(ARGV_MAX_BYTES - 2).fill('')] });
    refuses(
      execClientFrames,
      'argv',
      { ...run, argv: ['x'.repeat(most + 1)] },
      { ...run, argv: ['x'.repeat(most), ''] },
      { ...run, argv: ['é'.repeat(ARGV_MAX_BYTES / 2)] },
      { ...run, argv: ['x', ...Array(ARGV_MAX_BYTES - 1).fill('')] },
    );
  });

  it('may be left out only to go on with a command that has an id', () => {
    accepts(
      execClientFrames,
      { type: 'start', command_id: 'cmd_1' },
      { ...run, command_id: 'cmd_1' },
    );
    refuses(execClientFrames, 'argv', { type: 'start' }, { type: 'start', cwd: '/' });
    refuses(execClientFrames, 'command_id', { type: 'start', command_id: '../x' });
  });
});

describe('an environment', () => {
  const withEnv = (env: unknown): object => ({ ...start, env });

  it('has names without =, NUL and newline, and values without NUL', () => {
    accepts(shellClientFrames, withEnv({}), withEnv({ PATH: '/bin', 'odd name': '', é: 'a=b\nc' }));
    accepts(shellClientFrames, withEnv({ constructor: 'x', toString: 'y', '0': 'z' }));
    for (const name of [
      '',
      'A=B',
      'A\0',
      'A\n',
      '\rA',
      '\ud800',
      'x'.repeat(ENV_NAME_MAX_CHARS + 1),
    ]) {
      refuses(shellClientFrames, 'env', withEnv({ [name]: 'x' }));
    }
    for (const value of [1, null, ['x'], 'a\0', '\udc00']) {
      refuses(shellClientFrames, 'env', withEnv({ A: value }));
      refuses(execClientFrames, 'env', { ...run, env: { A: value } });
    }
    refuses(shellClientFrames, 'env', withEnv(null), withEnv([]), withEnv('A=B'), withEnv(1));
  });

  it('has a bound on its variables and on its bytes', () => {
    const many = (count: number): object =>
      withEnv(Object.fromEntries(Array.from({ length: count }, (_, i) => [`V${i}`, ''])));
    accepts(shellClientFrames, many(ENV_MAX_VARIABLES));
    refuses(shellClientFrames, 'env', many(ENV_MAX_VARIABLES + 1));
    accepts(shellClientFrames, withEnv({ A: 'x'.repeat(ENV_MAX_BYTES - 3) }));
    refuses(shellClientFrames, 'env', withEnv({ A: 'x'.repeat(ENV_MAX_BYTES - 2) }));
  });

  it('with a variable called __proto__ is refused, not applied without it', () => {
    const decoded = decodeFrame(shellClientFrames, '{"type":"start","env":{"__proto__":"x"}}');
    expect(decoded).toMatchObject({ ok: false, error: { details: { field: 'env' } } });
  });
});

describe('the other fields', () => {
  it('have bounds too', () => {
    refuses(
      shellClientFrames,
      'shell_id',
      { ...start, shell_id: '' },
      { ...start, shell_id: 'a/b' },
    );
    refuses(shellClientFrames, 'client_id', { ...start, client_id: 'x'.repeat(129) });
    refuses(shellClientFrames, 'term', { ...start, term: '../xterm' }, { ...start, term: '' });
    accepts(shellClientFrames, { ...start, cwd: 'x'.repeat(PATH_MAX_CHARS) });
    refuses(shellClientFrames, 'cwd', { ...start, cwd: '' }, { ...start, cwd: 'a\0' });
    refuses(shellClientFrames, 'cwd', { ...start, cwd: 'x'.repeat(PATH_MAX_CHARS + 1) });
    refuses(shellClientFrames, 'size_policy', { ...start, size_policy: 'largest' });
    refuses(shellClientFrames, 'observe', { ...start, observe: 'yes' });
    accepts(shellClientFrames, { ...start, history: HISTORY_MAX_LINES });
    refuses(shellClientFrames, 'history', { ...start, history: HISTORY_MAX_LINES + 1 });
    refuses(shellClientFrames, 'signal', { type: 'signal', signal: 'SIGNOT' }, { type: 'signal' });
    refuses(shellClientFrames, 'signal', { type: 'signal', signal: 9 });
    refuses(shellClientFrames, 'action', { type: 'control', action: 'steal' });
    accepts(execClientFrames, { ...run, timeout_ms: TIMEOUT_MAX_MS });
    refuses(execClientFrames, 'timeout_ms', { ...run, timeout_ms: 0 });
    refuses(execClientFrames, 'timeout_ms', { ...run, timeout_ms: TIMEOUT_MAX_MS + 1 });
    refuses(execClientFrames, 'limits', { ...run, limits: 5 });
    refuses(execClientFrames, 'stream', { type: 'ack', offset: 1 });
    accepts(tunnelClientFrames, { ...start, port: 1 }, { ...start, port: 65_535 });
    for (const port of [0, 65_536, '80', -1, 1.5, null]) {
      refuses(tunnelClientFrames, 'port', { ...start, port });
    }
  });

  it('of answers have them as well, since a client trusts no server blindly', () => {
    const snapshot = { type: 'snapshot', offset: 0, cols: 80, rows: 24, screen: '' };
    accepts(shellServerFrames, { ...snapshot, screen: 'x'.repeat(SCREEN_MAX_CHARS) });
    refuses(shellServerFrames, 'screen', { ...snapshot, screen: 'x'.repeat(SCREEN_MAX_CHARS + 1) });
    const viewers = (count: number): object => ({
      type: 'presence',
      viewers: Array(count).fill({ actor: 'human', role: 'writer' }),
    });
    accepts(shellServerFrames, viewers(VIEWERS_MAX));
    refuses(shellServerFrames, 'viewers', viewers(VIEWERS_MAX + 1));
    refuses(shellServerFrames, 'viewers.0', { type: 'presence', viewers: [5] });
    refuses(shellServerFrames, 'viewers.0.actor', {
      type: 'presence',
      viewers: [{ role: 'writer' }],
    });
    refuses(shellServerFrames, 'expires_at', { type: 'auth_ok', expires_at: 'tomorrow' });
    const exit = { type: 'exit', origin: 'remote', timed_out: false, oom: false, offset: 1 };
    accepts(shellServerFrames, exit, { ...exit, exit_code: 255 }, { ...exit, signal: 'SIGKILL' });
    refuses(shellServerFrames, 'origin', { ...exit, origin: 'elsewhere' });
    refuses(
      shellServerFrames,
      'exit_code',
      { ...exit, exit_code: -1 },
      { ...exit, exit_code: null },
    );
    refuses(execServerFrames, 'stdout_offset', exit);
    const error = { type: 'error', code: 'INTERNAL', message: '', retryable: true };
    accepts(shellServerFrames, error);
    refuses(shellServerFrames, 'code', { ...error, code: 'not a code' });
  });
});

describe('sync', () => {
  const digest = 'a'.repeat(64);
  const scanned = (...entries: unknown[]): object => ({
    type: 'scanned',
    scan_id: 's',
    snapshot: digest,
    entries,
  });
  const file = { kind: 'file', sha256: digest, size: 1, executable: false };
  const stage = { type: 'stage', transfer_id: 't' };
  const transition = (change: object): object => ({
    type: 'transition',
    transition_id: 'n',
    changes: [{ path: 'a', expect: { kind: 'absent' }, to: { kind: 'folder' }, ...change }],
  });

  it('paths are relative, with / between names, and stay below the root by their spelling', () => {
    for (const path of ['', 'a', 'a/b c/.d', '...', 'a..b/..c', '-rf', 'a\nb', '日本', 'C:']) {
      accepts(syncServerFrames, scanned({ path, kind: 'folder' }));
      accepts(syncClientFrames, transition({ path }), { ...start, root: path });
    }
    accepts(syncClientFrames, transition({ path: 'x'.repeat(PATH_MAX_CHARS) }));
    for (const path of [
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      '../a',
      'a/..',
      'a/../b',
      'a/./b',
      'a\\b',
      '..\\a',
      'a\0',
      '\ud800',
      'x'.repeat(PATH_MAX_CHARS + 1),
      7,
      null,
    ]) {
      refuses(syncServerFrames, 'entries.0.path', scanned({ path, kind: 'folder' }));
      refuses(syncServerFrames, 'paths.0', { type: 'changed', paths: [path] });
      refuses(syncClientFrames, 'changes.0.path', transition({ path }));
      refuses(syncClientFrames, 'root', { ...start, root: path });
      refuses(syncClientFrames, 'paths.0', { type: 'scan', scan_id: 's', paths: [path] });
      refuses(syncClientFrames, 'fetch.0.path', { ...stage, fetch: [{ path, sha256: digest }] });
    }
  });

  it('an entry says all that its kind has', () => {
    refuses(syncServerFrames, 'entries.0.sha256', scanned({ ...file, path: 'a', sha256: 'A' }));
    refuses(syncServerFrames, 'entries.0.size', scanned({ ...file, path: 'a', size: -1 }));
    refuses(
      syncServerFrames,
      'entries.0.executable',
      scanned({ ...file, path: 'a', executable: 1 }),
    );
    refuses(syncServerFrames, 'entries.0.target', scanned({ path: 'a', kind: 'link' }));
    refuses(syncServerFrames, 'entries.0.target', scanned({ path: 'a', kind: 'link', target: '' }));
    refuses(syncServerFrames, 'entries.0.problem', scanned({ path: 'a', kind: 'problem' }));
    for (const kind of ['socket', 'absent', '', 7, undefined]) {
      refuses(syncServerFrames, 'entries.0.kind', scanned({ ...file, path: 'a', kind }));
    }
    refuses(syncServerFrames, 'entries.1', scanned({ path: '', kind: 'folder' }, 5));
    refuses(syncServerFrames, 'snapshot', { type: 'scanned', scan_id: 's', entries: [] });
  });

  it('a change always says what it expects to find', () => {
    accepts(syncClientFrames, transition({ expect: file, to: { kind: 'absent' } }));
    refuses(syncClientFrames, 'changes.0.expect', transition({ expect: undefined }));
    refuses(syncClientFrames, 'changes.0.expect', transition({ expect: null }));
    refuses(syncClientFrames, 'changes.0.expect.kind', transition({ expect: {} }));
    refuses(syncClientFrames, 'changes.0.expect.kind', transition({ expect: { kind: 'any' } }));
    refuses(syncClientFrames, 'changes.0.expect.sha256', transition({ expect: { kind: 'file' } }));
    refuses(syncClientFrames, 'changes.0.to', transition({ to: undefined }));
    refuses(syncClientFrames, 'changes.0.to.kind', transition({ to: { kind: 'problem' } }));
    refuses(syncClientFrames, 'changes.0.by.actor', transition({ by: { actor: 'cat' } }));
  });

  it('a result is done, a conflict with what is there, or a problem by its code', () => {
    const transitioned = (result: unknown): object => ({
      type: 'transitioned',
      transition_id: 'n',
      results: [result],
    });
    accepts(syncServerFrames, transitioned({ outcome: 'conflict', current: { kind: 'absent' } }));
    refuses(syncServerFrames, 'results.0.current', transitioned({ outcome: 'conflict' }));
    refuses(syncServerFrames, 'results.0.problem', transitioned({ outcome: 'problem' }));
    refuses(syncServerFrames, 'results.0.outcome', transitioned({ outcome: 'maybe' }));
  });

  it('a stage sends, fetches, resumes or ends: one of them alone', () => {
    const ways = { send: [], fetch: [], resume: 0, end: true };
    refuses(syncClientFrames, 'send', stage);
    for (const [name, value] of Object.entries(ways)) {
      accepts(syncClientFrames, { ...stage, [name]: value });
      for (const [other, too] of Object.entries(ways)) {
        if (other !== name) {
          refuses(syncClientFrames, 'send', { ...stage, [name]: value, [other]: too });
        }
      }
    }
    refuses(syncClientFrames, 'end', { ...stage, end: false });
    refuses(syncClientFrames, 'resume', { ...stage, resume: -1 });
  });

  it('parts are of a base, and make up the size', () => {
    const send = (item: object): object => ({
      ...stage,
      send: [{ sha256: digest, size: 3, ...item }],
    });
    const parts = [{ size: 1 }, { size: 2, from: 7 }];
    accepts(syncClientFrames, send({}), send({ base: digest, parts }));
    refuses(
      syncClientFrames,
      'send.0.parts',
      send({ parts }),
      send({ base: digest }),
      send({ base: digest, parts: [] }),
      send({ base: digest, parts, size: 4 }),
      send({ base: digest, parts: [{ size: 3, from: -1 }] }),
      send({ base: digest, parts: [{ size: -3 }, { size: 6 }] }),
      send({ base: digest, parts: 'all' }),
    );
    const many = (count: number): object =>
      send({ base: digest, parts: Array(count).fill({ size: 1 }), size: count });
    accepts(syncClientFrames, many(PARTS_MAX));
    refuses(syncClientFrames, 'send.0.parts', many(PARTS_MAX + 1));
  });

  it('hints are of some paths, or of all', () => {
    accepts(syncServerFrames, { type: 'changed', paths: 'all' }, { type: 'changed', paths: [] });
    refuses(syncServerFrames, 'paths', { type: 'changed' }, { type: 'changed', paths: 'none' });
  });

  it('every list has its bound', () => {
    const of = (item: unknown, count: number): unknown[] => Array(count).fill(item);
    for (const [count, judge] of [
      [SYNC_LIST_MAX, (set: AnySet, _: string, sent: object) => accepts(set, sent)],
      [SYNC_LIST_MAX + 1, refuses],
    ] as const) {
      judge(syncServerFrames, 'entries', scanned(...of({ path: 'a', kind: 'folder' }, count)));
      judge(syncServerFrames, 'gone', { ...scanned(), gone: of({ path: 'a' }, count) });
      judge(syncServerFrames, 'paths', { type: 'changed', paths: of('a', count) });
      judge(syncServerFrames, 'items', {
        type: 'staged',
        transfer_id: 't',
        state: 'open',
        offset: 0,
        items: of({ bytes: 0 }, count),
      });
      judge(syncServerFrames, 'results', {
        type: 'transitioned',
        transition_id: 'n',
        results: of({ outcome: 'done' }, count),
      });
      judge(syncClientFrames, 'paths', { type: 'scan', scan_id: 's', paths: of('a', count) });
      judge(syncClientFrames, 'send', { ...stage, send: of({ sha256: digest, size: 1 }, count) });
      judge(syncClientFrames, 'fetch', {
        ...stage,
        fetch: of({ path: 'a', sha256: digest }, count),
      });
      const change = { path: 'a', expect: { kind: 'absent' }, to: { kind: 'folder' } };
      judge(syncClientFrames, 'changes', { ...transition({}), changes: of(change, count) });
    }
    accepts(syncClientFrames, { ...start, root: '', ignore: of('*', IGNORE_MAX_PATTERNS) });
    refuses(syncClientFrames, 'ignore', {
      ...start,
      root: '',
      ignore: of('*', IGNORE_MAX_PATTERNS + 1),
    });
  });
});

describe('what is refused', () => {
  it.each([
    [{ ...resize, cols: 0 }, 'the resize frame: cols must be a whole number from 1 to 1000'],
    [
      { type: 'resize', cols: 1 },
      'the resize frame: rows is missing: it must be a whole number from 1 to 1000',
    ],
    [
      { type: 'auth', token: '' },
      `the auth frame: token must be 1 to ${TOKEN_MAX_CHARS} visible ASCII characters`,
    ],
    [{ type: 'stdin', data: 7 }, 'the stdin frame: data must be text'],
    [
      { type: 'stdin', data: '', encoding: 'hex' },
      'the stdin frame: encoding must be base64, or left out',
    ],
    [{ ...start, observe: 1 }, 'the start frame: observe must be true or false'],
    [
      { type: 'control', action: 'steal' },
      'the control frame: action must be one of take, request, release',
    ],
    [
      { ...start, cwd: '' },
      'the start frame: cwd must be text of 1 to 4096 characters, without NUL and half surrogates',
    ],
  ])('is told what it must be, in one sentence: %j', (sent, message) => {
    const decoded = decodeFrame(shellClientFrames, JSON.stringify(sent));
    expect(decoded.ok ? undefined : decoded.error.message).toBe(message);
  });

  it('is told so too where fields depend on each other', () => {
    const decoded = decodeFrame(execClientFrames, '{"type":"start"}');
    expect(decoded.ok ? undefined : decoded.error.message).toBe(
      'the start frame: argv is missing: it must be given, unless command_id names a command to go on with',
    );
  });
});

describe('a time', () => {
  const authOk = (expires_at: unknown): object => ({ type: 'auth_ok', expires_at });

  it('is in UTC, with its seconds, and says Z', () => {
    accepts(
      shellServerFrames,
      authOk('2026-02-27T20:20:00Z'),
      authOk('2026-02-27T20:20:00.5Z'),
      authOk('2024-02-29T23:59:59.123456789Z'),
    );
    for (const bad of [
      '2026-02-27T20:20:00+02:00',
      '2026-02-27T20:20:00+00:00',
      '2026-02-27T20:20:00-00:00',
      '2026-02-27T20:20:00',
      '2026-02-27T20:20Z',
      '2026-02-27',
      '2026-02-30T00:00:00Z',
      '2026-02-27 20:20:00Z',
      '2026-02-27t20:20:00z',
      '2026-02-27T24:00:00Z',
      `2026-02-27T20:20:00.${'0'.repeat(10)}Z`,
      '',
      0,
    ]) {
      refuses(shellServerFrames, 'expires_at', authOk(bad));
    }
  });
});

describe('data', () => {
  it('is text without half surrogates, or strict base64', () => {
    const stdin = { type: 'stdin' };
    accepts(shellClientFrames, { ...stdin, data: '' }, { ...stdin, data: '🐚' });
    refuses(shellClientFrames, 'data', stdin, { ...stdin, data: 5 }, { ...stdin, data: null });
    refuses(
      shellClientFrames,
      'data',
      { ...stdin, data: 'a\ud83d' },
      { ...stdin, data: '\udc1aa' },
    );
    refuses(shellClientFrames, 'encoding', { ...stdin, data: '', encoding: 'hex' });
    refuses(shellClientFrames, 'encoding', { ...stdin, data: '', encoding: null });
    for (const data of ['', 'AA==', 'AAA=', 'AAAA', '+/+/']) {
      accepts(shellClientFrames, { ...stdin, data, encoding: 'base64' });
    }
    for (const data of [
      'A',
      'AA',
      'AAA',
      'AA=',
      'A===',
      '====',
      '=',
      'AAAA=',
      'AA==AAAA',
      'A=AA',
      'AB==',
      'AAB=',
      'AA A',
      'AAA\n',
      '-_-_',
      'éAAA',
      'AAA\u0141',
      '\ud800AAA',
    ]) {
      refuses(shellClientFrames, 'data', { ...stdin, data, encoding: 'base64' });
    }
  });
});

describe('a message', () => {
  function refusal(text: string | Uint8Array, maxBytes?: number): AilsdError {
    const decoded = decodeFrame(shellClientFrames, text, maxBytes);
    if (decoded.ok) expect.fail('was accepted');
    return decoded.error;
  }

  it(proves('that is no JSON object is a typed error', 'PR-08'), () => {
    for (const text of [
      '',
      ' ',
      '{',
      'null',
      '1',
      '"auth"',
      '[]',
      '{}',
      '{"type":7}',
      '\ufeff{}',
      'NaN',
    ]) {
      expect(refusal(text)).toMatchObject({ code: 'INVALID_REQUEST' });
    }
  });

  it(proves('of a type that this side does not send here is a typed error', 'PR-08'), () => {
    for (const type of [
      'stdout',
      'auth_ok',
      'AUTH',
      'auth ',
      '__proto__',
      'constructor',
      'toString',
      '',
    ]) {
      expect(refusal(JSON.stringify({ type, data: '' }))).toMatchObject({
        code: 'INVALID_REQUEST',
        details: { field: 'type' },
      });
    }
  });

  it('with a key twice means the last of them', () => {
    const decoded = decodeFrame(shellClientFrames, '{"type":"auth","type":"ping","id":1,"id":2}');
    expect(decoded).toStrictEqual({ ok: true, frame: { type: 'ping', id: 2 } });
  });

  it('longer than its bound is too large, in bytes and not in characters', () => {
    const stdin = (data: string): string => `{"type":"stdin","data":"${data}"}`;
    const room = MESSAGE_MAX_BYTES - stdin('').length;
    expect(decodeFrame(shellClientFrames, stdin('x'.repeat(room))).ok).toBe(true);
    expect(refusal(stdin('x'.repeat(room + 1)))).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      details: { max_bytes: MESSAGE_MAX_BYTES },
      row: { close: 'tooBig' },
    });
    expect(refusal(stdin('é'.repeat(room / 2 + 1))).code).toBe('PAYLOAD_TOO_LARGE');
    expect(refusal('['.repeat(MESSAGE_MAX_BYTES + 1)).code).toBe('PAYLOAD_TOO_LARGE');
    expect(refusal(new Uint8Array(MESSAGE_MAX_BYTES + 1)).code).toBe('PAYLOAD_TOO_LARGE');
  });

  it('before authentication has a smaller bound, with room for the longest token', () => {
    const bound = UNAUTHENTICATED_MESSAGE_MAX_BYTES;
    const auth = JSON.stringify({ type: 'auth', token: 'x'.repeat(TOKEN_MAX_CHARS) });
    expect(decodeFrame(shellClientFrames, auth, bound)).toMatchObject({ ok: true });
    expect(refusal(`{"type":"ping"}${' '.repeat(bound)}`, bound).code).toBe('PAYLOAD_TOO_LARGE');
    expect(refusal(new Uint8Array(bound + 1), bound).code).toBe('PAYLOAD_TOO_LARGE');
  });
});
