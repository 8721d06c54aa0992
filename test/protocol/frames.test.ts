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
    expect(decoded.error.message).toContain('must');
  }
}

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
