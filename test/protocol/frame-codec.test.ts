import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  type ExecClientFrame,
  type ExecServerFrame,
  execClientFrames,
  execServerFrames,
} from '../../src/protocol/exec-frames.js';
import {
  chooseWire,
  decodeFrame,
  encodeFrame,
  SUBPROTOCOLS,
  type Wire,
} from '../../src/protocol/frame-codec.js';
import {
  type ControlSchema,
  DATA_MAX_BYTES,
  type DataType,
  type FrameSet,
  MESSAGE_MAX_BYTES,
} from '../../src/protocol/frames.js';
import {
  type ShellClientFrame,
  type ShellServerFrame,
  shellClientFrames,
  shellServerFrames,
} from '../../src/protocol/shell-frames.js';
import {
  type SyncClientFrame,
  type SyncServerFrame,
  syncClientFrames,
  syncServerFrames,
} from '../../src/protocol/sync-frames.js';
import {
  type TunnelClientFrame,
  type TunnelServerFrame,
  tunnelClientFrames,
  tunnelServerFrames,
} from '../../src/protocol/tunnel-frames.js';
import { proves } from '../requirements.js';

const WIRES: readonly Wire[] = ['json', 'binary'];
const seed = process.env['AILSD_TEST_SEED'];
fc.configureGlobal(seed === undefined ? {} : { seed: Number(seed) });

// The fields ---------------------------------------------------------------------------------------------------------

const offset = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
const size = fc.integer({ min: 1, max: 1000 });
const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/);
const token = fc.stringMatching(/^[\x21-\x7e]{1,200}$/);
const term = fc.constantFrom('xterm-256color', 'dumb', 'screen.xterm+x');
const actor = fc.constantFrom('human' as const, 'agent' as const);
const role = fc.constantFrom('writer' as const, 'observer' as const);
const sizePolicy = fc.constantFrom(
  'driver' as const,
  'smallest' as const,
  'latest' as const,
  'fixed' as const,
);
const sha256 = fc.stringMatching(/^[0-9a-f]{64}$/);
const time = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2999-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString());

/** Any characters at all, but for NUL. */
function text(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc
    .string({ unit: 'binary', minLength, maxLength })
    .map((any) => any.replaceAll('\0', '0').slice(0, maxLength))
    .filter((any) => !/\p{Surrogate}/u.test(any));
}

const path = text(1, 100);
const argv = fc
  .tuple(text(1, 20), fc.array(text(0, 20), { maxLength: 6 }))
  .map(([program, rest]) => [program, ...rest]);
const env = fc.dictionary(
  text(1, 20).filter((name) => !/[=\r\n]/.test(name) && name !== '__proto__'),
  text(0, 30),
  { maxKeys: 6, noNullPrototype: true },
);

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf, 0x61);

/** Text cut between any two bytes: mostly not UTF-8 at one end or both. */
const cutText = fc
  .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), fc.nat(), fc.nat())
  .map(([any, from, length]) => {
    const bytes = new TextEncoder().encode(any);
    return bytes.slice(from % bytes.length, (from % bytes.length) + (length % 12));
  });
const data = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 60 }).map((any) => new TextEncoder().encode(any)),
  cutText,
  fc.constantFrom(EVERY_BYTE, BYTE_ORDER_MARK, new Uint8Array()),
);

const outcome = {
  origin: fc.constantFrom(
    'remote' as const,
    'ailsd' as const,
    'transport' as const,
    'quota' as const,
    'lease' as const,
  ),
  exit_code: fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constant(0xc000_0005)),
  signal: fc.constantFrom('SIGKILL', 'SIGRTMIN+3'),
  timed_out: fc.boolean(),
  oom: fc.boolean(),
};
const OUTCOME = ['origin', 'timed_out', 'oom'] as const;

// The frames: leaving one out, or a field with a wrong name or kind, is a type error --------------------------------

type Arbitraries<F extends { type: string }> = {
  [T in F['type']]: fc.Arbitrary<Extract<F, { type: T }>>;
};

/** All fields are there or not, but for those named. */
function frame<T extends string, M extends object, K extends keyof M>(
  type: T,
  fields: { [P in keyof M]: fc.Arbitrary<M[P]> },
  required: readonly K[],
) {
  return fc
    .record(fields, { requiredKeys: [...required], noNullPrototype: true })
    .map((some) => ({ type, ...some }));
}

const signal = frame(
  'signal',
  { signal: fc.constantFrom('SIGINT' as const, 'SIGTSTP' as const, 'SIGKILL' as const) },
  ['signal'],
);
const resize = frame('resize', { cols: size, rows: size }, ['cols', 'rows']);
const ack = frame('ack', { offset }, ['offset']);
const eof = frame('eof', { offset }, []);

const clientFrames = {
  auth: frame('auth', { token }, ['token']),
  stdin: frame('stdin', { data, offset }, ['data']),
  eof,
  ping: frame('ping', { id: offset }, []),
  close: frame('close', {}, []),
};
const serverFrames = {
  auth_ok: frame(
    'auth_ok',
    { session_id: text(1, 128), expires_at: time, scopes: fc.array(text(1, 64), { maxLength: 6 }) },
    [],
  ),
  stdout: frame('stdout', { data, offset }, ['data']),
  ack,
  pong: frame('pong', { id: offset }, []),
  error: frame(
    'error',
    {
      code: fc.constantFrom('INVALID_REQUEST', 'A_CODE_OF_TOMORROW'),
      message: text(0, 200),
      retryable: fc.boolean(),
      request_id: id,
      field: text(1, 60),
      capability: fc.constant('shell'),
      retry_after_ms: offset,
    },
    ['code', 'message', 'retryable'],
  ),
};

const shellClient: Arbitraries<ShellClientFrame> = {
  ...clientFrames,
  start: frame(
    'start',
    {
      shell_id: fc.oneof(id, fc.constant('new')),
      offset,
      input_offset: offset,
      client_id: id,
      cols: size,
      rows: size,
      size_policy: sizePolicy,
      history: fc.integer({ min: 0, max: 100_000 }),
      observe: fc.boolean(),
      term,
      cwd: path,
      env,
      command: argv,
    },
    [],
  ),
  resize,
  signal,
  control: frame(
    'control',
    { action: fc.constantFrom('take' as const, 'request' as const, 'release' as const) },
    ['action'],
  ),
  ack,
};

const shellServer: Arbitraries<ShellServerFrame> = {
  ...serverFrames,
  ready: frame(
    'ready',
    {
      shell_id: id,
      state: fc.constantFrom('fresh' as const, 'resumed' as const, 'snapshot' as const),
      role,
      offset,
      input_offset: offset,
      cols: size,
      rows: size,
      size_policy: sizePolicy,
    },
    ['shell_id', 'state', 'role', 'offset', 'input_offset', 'cols', 'rows'],
  ),
  snapshot: frame(
    'snapshot',
    { offset, cols: size, rows: size, screen: text(0, 300), more: fc.boolean() },
    ['offset', 'cols', 'rows', 'screen'],
  ),
  resize: frame('resize', { cols: size, rows: size, offset }, ['cols', 'rows']),
  control: frame(
    'control',
    {
      event: fc.constantFrom(
        'granted' as const,
        'taken' as const,
        'requested' as const,
        'released' as const,
        'refused' as const,
      ),
      role,
      actor,
      subject: text(1, 100),
    },
    ['event', 'role'],
  ),
  presence: frame(
    'presence',
    {
      viewers: fc.array(
        fc.record(
          { actor, role, client_id: id, subject: text(1, 60) },
          { requiredKeys: ['actor', 'role'], noNullPrototype: true },
        ),
        { maxLength: 5 },
      ),
    },
    ['viewers'],
  ),
  exit: frame('exit', { ...outcome, offset }, [...OUTCOME, 'offset']),
};

const execClient: Arbitraries<ExecClientFrame> = {
  ...clientFrames,
  start: fc
    .tuple(
      fc.oneof(
        fc.record({ argv }),
        fc.record({ command_id: id }),
        fc.record({ argv, command_id: id }),
      ),
      frame(
        'start',
        {
          stdout_offset: offset,
          stderr_offset: offset,
          cwd: path,
          env,
          timeout_ms: fc.integer({ min: 1, max: 86_400_000 }),
          limits: fc.record(
            { stdout_bytes: offset, stderr_bytes: offset },
            { requiredKeys: [], noNullPrototype: true },
          ),
          tty: fc.boolean(),
          cols: size,
          rows: size,
          term,
        },
        [],
      ),
    )
    .map(([what, how]) => ({ ...how, ...what })),
  resize,
  signal,
  ack: frame('ack', { stream: fc.constantFrom('stdout' as const, 'stderr' as const), offset }, [
    'stream',
    'offset',
  ]),
};

const execServer: Arbitraries<ExecServerFrame> = {
  ...serverFrames,
  stderr: frame('stderr', { data, offset }, ['data']),
  ready: frame(
    'ready',
    {
      command_id: id,
      state: fc.constantFrom('fresh' as const, 'resumed' as const),
      stdout_offset: offset,
      stderr_offset: offset,
      input_offset: offset,
    },
    ['command_id', 'state', 'stdout_offset', 'stderr_offset', 'input_offset'],
  ),
  exit: frame(
    'exit',
    {
      ...outcome,
      stdout_offset: offset,
      stderr_offset: offset,
      stdout_truncated: fc.boolean(),
      stderr_truncated: fc.boolean(),
      stdout_sha256: sha256,
      stderr_sha256: sha256,
    },
    [...OUTCOME, 'stdout_offset', 'stderr_offset', 'stdout_truncated', 'stderr_truncated'],
  ),
};

/** A wrapper so that optional fields are there or not. */
function some<M extends object, K extends keyof M>(
  fields: { [P in keyof M]: fc.Arbitrary<M[P]> },
  required: readonly K[],
) {
  return fc.record(fields, { requiredKeys: [...required], noNullPrototype: true });
}

const syncPath = fc
  .array(text(1, 20), { maxLength: 4 })
  .map((names) => names.map((name) => name.replace(/[/\\]|^\.{1,2}$/g, '_')).join('/'));
const by = some({ actor, subject: text(1, 20), tool_call_id: text(1, 20), at: time }, ['actor']);
const problem = some({ code: fc.constantFrom('UNREADABLE', 'CASE_CLASH'), message: text(0, 40) }, [
  'code',
  'message',
]);
const file = { kind: fc.constant('file' as const), sha256, size: offset, executable: fc.boolean() };
const folder = { kind: fc.constant('folder' as const) };
const link = { kind: fc.constant('link' as const), target: text(1, 40) };
const FILE = ['kind', 'sha256', 'size', 'executable'] as const;
const state = fc.oneof(
  fc.record({ kind: fc.constant('absent' as const) }, { noNullPrototype: true }),
  fc.record(file, { noNullPrototype: true }),
  fc.record(folder, { noNullPrototype: true }),
  fc.record(link, { noNullPrototype: true }),
);
const entry = fc.oneof(
  some({ path: syncPath, ...file, by }, ['path', ...FILE]),
  some({ path: syncPath, ...folder, by }, ['path', 'kind']),
  some({ path: syncPath, ...link, by }, ['path', 'kind', 'target']),
  some({ path: syncPath, kind: fc.constant('problem' as const), problem }, [
    'path',
    'kind',
    'problem',
  ]),
  some({ path: syncPath, kind: fc.constant('ignored' as const) }, ['path', 'kind']),
);
const part = some({ size: fc.nat(), from: offset }, ['size']);
const sendItem = fc.oneof(
  fc.record({ sha256, size: offset }, { noNullPrototype: true }),
  fc.tuple(sha256, sha256, fc.array(part, { maxLength: 4 })).map(([digest, base, parts]) => ({
    sha256: digest,
    size: parts.reduce((sum, { size: bytes }) => sum + bytes, 0),
    base,
    parts,
  })),
);
const fetchItem = some(
  { path: syncPath, sha256, from: offset, size: offset, blocks: fc.constant('fixed' as const) },
  ['path', 'sha256'],
);
const list = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 4 });
const watch = frame('watch', {}, []);
const transferAck = frame('ack', { transfer_id: id, offset }, ['transfer_id', 'offset']);

const syncClient: Arbitraries<SyncClientFrame> = {
  auth: clientFrames.auth,
  stdin: clientFrames.stdin,
  ping: clientFrames.ping,
  close: clientFrames.close,
  start: frame(
    'start',
    { root: syncPath, ignore: list(text(1, 20)), include_git: fc.boolean(), client_id: id },
    ['root'],
  ),
  scan: frame('scan', { scan_id: id, since: sha256, paths: list(syncPath) }, ['scan_id']),
  watch,
  stage: fc.oneof(
    frame('stage', { transfer_id: id, send: list(sendItem) }, ['transfer_id', 'send']),
    frame('stage', { transfer_id: id, fetch: list(fetchItem) }, ['transfer_id', 'fetch']),
    frame('stage', { transfer_id: id, resume: offset }, ['transfer_id', 'resume']),
    frame('stage', { transfer_id: id, end: fc.constant(true as const) }, ['transfer_id', 'end']),
  ),
  transition: frame(
    'transition',
    {
      transition_id: id,
      changes: list(
        some({ path: syncPath, expect: state, to: state, by }, ['path', 'expect', 'to']),
      ),
    },
    ['transition_id', 'changes'],
  ),
  ack: transferAck,
};

const syncServer: Arbitraries<SyncServerFrame> = {
  auth_ok: serverFrames.auth_ok,
  stdout: serverFrames.stdout,
  pong: serverFrames.pong,
  ready: frame(
    'ready',
    {
      root: syncPath,
      instance: id,
      writable: fc.boolean(),
      case_sensitive: fc.boolean(),
      keeps_executable: fc.boolean(),
      normal_form: fc.constantFrom('nfc' as const, 'nfd' as const),
    },
    ['root', 'writable', 'case_sensitive', 'keeps_executable'],
  ),
  scanned: frame(
    'scanned',
    {
      scan_id: id,
      instance: id,
      snapshot: sha256,
      since: sha256,
      entries: list(entry),
      gone: list(some({ path: syncPath, by }, ['path'])),
      more: fc.boolean(),
    },
    ['scan_id', 'snapshot', 'entries'],
  ),
  changed: frame(
    'changed',
    { paths: fc.oneof(fc.constant('all' as const), list(syncPath)), problem },
    ['paths'],
  ),
  staged: frame(
    'staged',
    {
      transfer_id: id,
      state: fc.constantFrom('open' as const, 'done' as const),
      offset,
      items: list(some({ bytes: offset, problem }, ['bytes'])),
    },
    ['transfer_id', 'state', 'offset', 'items'],
  ),
  transitioned: frame(
    'transitioned',
    {
      transition_id: id,
      results: list(
        fc.oneof(
          some({ outcome: fc.constant('done' as const) }, ['outcome']),
          some({ outcome: fc.constant('conflict' as const), current: state, by }, [
            'outcome',
            'current',
          ]),
          some({ outcome: fc.constant('problem' as const), problem }, ['outcome', 'problem']),
        ),
      ),
    },
    ['transition_id', 'results'],
  ),
  ack: transferAck,
  error: fc
    .tuple(serverFrames.error, some({ about: id }, []))
    .map(([error, more]) => ({ ...error, ...more })),
};

const port = fc.integer({ min: 1, max: 65_535 });
const tunnelClient: Arbitraries<TunnelClientFrame> = {
  ...clientFrames,
  start: frame('start', { port }, ['port']),
  ack,
};
const tunnelServer: Arbitraries<TunnelServerFrame> = {
  ...serverFrames,
  ready: frame('ready', { port }, ['port']),
  eof,
};

function comesBack<S extends ControlSchema, D extends DataType>(
  endpoint: string,
  frames: FrameSet<S, D>,
  arbitraries: Record<string, fc.Arbitrary<{ type: string }>>,
): void {
  it.each(Object.keys(arbitraries))(
    proves(`${endpoint}: any %s frame comes back as it went, in both codecs`, 'PR-07'),
    (type) => {
      const arbitrary = arbitraries[type] ?? expect.fail('there is no such frame');
      fc.assert(
        fc.property(arbitrary, (sent) => {
          for (const wire of WIRES) {
            expect(decodeFrame(frames, encodeFrame(sent, wire))).toStrictEqual({
              ok: true,
              frame: sent,
            });
          }
        }),
        { numRuns: 200 },
      );
    },
  );
}

describe('every frame', () => {
  comesBack('shell client', shellClientFrames, shellClient);
  comesBack('shell server', shellServerFrames, shellServer);
  comesBack('exec client', execClientFrames, execClient);
  comesBack('exec server', execServerFrames, execServer);
  comesBack('sync client', syncClientFrames, syncClient);
  comesBack('sync server', syncServerFrames, syncServer);
  comesBack('tunnel client', tunnelClientFrames, tunnelClient);
  comesBack('tunnel server', tunnelServerFrames, tunnelServer);

  it.each([
    ['shell client', shellClientFrames],
    ['shell server', shellServerFrames],
    ['exec client', execClientFrames],
    ['exec server', execServerFrames],
    ['sync client', syncClientFrames],
    ['sync server', syncServerFrames],
    ['tunnel client', tunnelClientFrames],
    ['tunnel server', tunnelServerFrames],
  ] as const)('of the %s is filed under its own type', (_, { control }) => {
    for (const [name, schema] of Object.entries(control)) {
      expect(schema.shape.type.def.values).toEqual([name]);
    }
  });
});

describe('bytes', () => {
  function both(bytes: Uint8Array): void {
    for (const wire of WIRES) {
      const sent = { type: 'stdout', offset: 7, data: bytes } as const;
      expect(decodeFrame(shellServerFrames, encodeFrame(sent, wire))).toStrictEqual({
        ok: true,
        frame: sent,
      });
    }
  }

  it(proves('of every value arrive, together and each alone', 'PR-09'), () => {
    both(EVERY_BYTE);
    for (const byte of EVERY_BYTE) both(Uint8Array.of(byte));
  });

  it(proves('of characters cut at every border arrive and join up again', 'PR-09'), () => {
    const bytes = new TextEncoder().encode('日本語 ✓ é 🐚 \u{10ffff}');
    for (let from = 0; from <= bytes.length; from++) {
      for (let to = from; to <= bytes.length; to++) both(bytes.slice(from, to));
    }
  });

  it(proves('that begin with a byte order mark keep it', 'PR-09'), () => {
    both(BYTE_ORDER_MARK);
    both(BYTE_ORDER_MARK.slice(0, 3));
    both(Uint8Array.of(0xff, 0xfe, 0x61, 0x00));
  });

  it(proves('that only look like UTF-8 (overlong, surrogates, too high) arrive', 'PR-09'), () => {
    both(Uint8Array.of(0xc0, 0x80));
    both(Uint8Array.of(0xe0, 0x80, 0xaf));
    both(Uint8Array.of(0xed, 0xa0, 0x80));
    both(Uint8Array.of(0xf4, 0x90, 0x80, 0x80));
    both(Uint8Array.of(0xf8, 0x88, 0x80, 0x80, 0x80));
  });

  it('of the largest chunk fit into one message, whatever they are', () => {
    for (const byte of [0x00, 0x1b, 0x22, 0x5c, 0x61, 0xff]) {
      const chunk = new Uint8Array(DATA_MAX_BYTES).fill(byte);
      for (const wire of WIRES) {
        const offset = Number.MAX_SAFE_INTEGER;
        const message = encodeFrame({ type: 'stdout', offset, data: chunk }, wire);
        expect(message.length).toBeLessThanOrEqual(MESSAGE_MAX_BYTES);
        expect(decodeFrame(shellServerFrames, message).ok).toBe(true);
      }
    }
  });

  it('are coded without Buffer, as in a browser', () => {
    vi.stubGlobal('Buffer', undefined);
    try {
      both(EVERY_BYTE);
      both(BYTE_ORDER_MARK);
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('a client that knows only the seeds', () => {
  it('logs in and types as they show it', () => {
    expect(decodeFrame(shellClientFrames, '{ "type": "auth", "token": "eyJ.e30.sig" }')).toEqual({
      ok: true,
      frame: { type: 'auth', token: 'eyJ.e30.sig' },
    });
    expect(
      decodeFrame(shellClientFrames, '{ "type": "stdin", "data": "ls -la\\n" }'),
    ).toStrictEqual({
      ok: true,
      frame: { type: 'stdin', data: new TextEncoder().encode('ls -la\n') },
    });
  });

  it('reads plain JSON with the names it expects, and more beside them', () => {
    const data = new TextEncoder().encode('total 42\n');
    expect(encodeFrame({ type: 'auth_ok' }, 'json')).toBe('{"type":"auth_ok"}');
    expect(encodeFrame({ type: 'stdout', data }, 'json')).toBe(
      '{"type":"stdout","data":"total 42\\n"}',
    );
    expect(JSON.parse(String(encodeFrame({ type: 'stdout', offset: 9, data }, 'json')))).toEqual({
      type: 'stdout',
      offset: 9,
      data: 'total 42\n',
    });
  });

  it('that answers as they show it is understood', () => {
    for (const said of [
      '{ "type": "auth_ok", "session_id": "..." }',
      '{ "type": "auth_ok" }',
      '{ "type": "stdout", "data": "total 42\\n..." }',
    ]) {
      expect(decodeFrame(shellServerFrames, said).ok).toBe(true);
    }
  });

  it('may send fields nobody here knows', () => {
    const said = '{"type":"resize","cols":80,"rows":24,"pixels":[1,2],"__proto__":{"cols":1}}';
    expect(decodeFrame(shellClientFrames, said)).toStrictEqual({
      ok: true,
      frame: { type: 'resize', cols: 80, rows: 24 },
    });
  });
});

describe('what is sent', () => {
  it('is what the client likes best of what is known, and JSON when it does not say', () => {
    expect(chooseWire([SUBPROTOCOLS.binary, SUBPROTOCOLS.json])).toBe('binary');
    expect(chooseWire(['graphql-ws', SUBPROTOCOLS.json, SUBPROTOCOLS.binary])).toBe('json');
    expect(chooseWire(['AILSD.V1.BINARY', '__proto__'])).toBeUndefined();
    expect(chooseWire([])).toBeUndefined();
  });

  it('in binary is bytes for streams, and text for everything else', () => {
    const data = Uint8Array.of(0x61);
    expect(encodeFrame({ type: 'stdout', data }, 'binary')).toBeInstanceOf(Uint8Array);
    expect(encodeFrame({ type: 'stdout', data }, 'json')).toBeTypeOf('string');
    expect(encodeFrame({ type: 'close' }, 'binary')).toBe('{"type":"close"}');
  });
});
