import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CLOSES } from '../../../src/protocol/closes.js';
import { proves } from '../../requirements.js';
import { ailsd, BIN } from '../../support/cli.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { startFakeBroker } from '../../support/fake-broker.js';
import { type PtyProgram, programInPty } from '../../support/pty.js';
import { sandboxAccess } from '../../support/sandbox-access.js';
import { answerUpgrade, scriptedShell } from '../../support/scripted-shell.js';

const folder = mkdtempSync(join(tmpdir(), 'ailsd-attach-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Prints how the terminal is set before and after, and what the command ended with. */
const WRAPPER = join(folder, 'wrapper.sh');
writeFileSync(
  WRAPPER,
  `before=$(stty -g); echo "PID $$"
"$@"; code=$?
after=$(stty -g); echo; [ "$before" = "$after" ] && echo "SAME $code" || echo "CHANGED $code"`,
);

function attach(port: number, args: readonly string[] = [], env: Record<string, string> = {}) {
  const access = { AILSD_SANDBOX: sandboxAccess({ port }), ...env };
  return programInPty('/bin/sh', [WRAPPER, process.execPath, BIN, 'attach', ...args], {
    env: access,
  });
}

/** The process below the wrapper. */
function pidOf(program: PtyProgram): number {
  const wrapper = /PID (\d+)/.exec(program.raw())?.[1] ?? '0';
  return Number(readFileSync(`/proc/${wrapper}/task/${wrapper}/children`, 'utf8').trim());
}

/** What a rude program leaves behind. */
const RUDE =
  '\x1b]2;rude\x07\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?25l\x1b[?1004h\x1b=\x1b[?1h\x1b[1;5rRUDE';
const MENDED = [
  '\x1b[?1049l',
  '\x1b[?1000l',
  '\x1b[?1006l',
  '\x1b[?2004l',
  '\x1b[?25h',
  '\x1b[?1004l',
  '\x1b>',
  '\x1b[?1l',
  '\x1b[r',
  '\x1b[23;0t',
];

describe('ailsd attach', () => {
  it('without a terminal it says what to use in scripts, and ends with 125', async () => {
    const { code, stdout, stderr } = await ailsd(['attach', 'thr_1']);
    expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
    expect(stderr).toContain('NOT_A_TERMINAL');
    expect(stderr).toContain('ailsd exec');
    const json = await ailsd(['attach', 'thr_1', '--json']);
    expect(JSON.parse(json.stderr).error).toMatchObject({ code: 'NOT_A_TERMINAL', exit_code: 125 });
  });

  it('keys go to the shell as they are, its output comes as it is, and its code is the code', async () => {
    await using server = await scriptedShell({ typed: (bytes, shell) => shell.output(bytes) });
    using program = attach(server.port);
    await eventually(() => server.attempts === 1 && server.frames.length > 0);
    expect(server.frames[0]).toMatchObject({ cols: 80, rows: 24, term: 'xterm-256color' });
    const keys = 'a\x03\x04\x1a\x1c\x11\x13\x7f\x16\x0f\x00';
    program.type(keys);
    await eventually(() => server.input().length === keys.length);
    expect(Buffer.from(server.input()).toString()).toBe(keys);
    // A bare newline only moves down: nothing adds a carriage return to it.
    server.output('\x1b[2J\x1b[Hab\ncd');
    await program.shows('ab\n  cd');
    program.resize(100, 30);
    await eventually(() => server.frames.some(({ type }) => type === 'resize'));
    expect(server.frames).toContainEqual({ type: 'resize', cols: 100, rows: 30 });
    server.exit(7);
    await program.shows('SAME 7');
  });

  const endings: [string, number, (program: PtyProgram) => void][] = [
    ['SIGINT', 130, (program) => process.kill(pidOf(program), 'SIGINT')],
    ['SIGTERM', 143, (program) => process.kill(pidOf(program), 'SIGTERM')],
    ['SIGHUP', 129, (program) => process.kill(pidOf(program), 'SIGHUP')],
    ['leaving', 0, (program) => program.type('\r~.')],
    ['a crash', 125, (program) => process.kill(pidOf(program), 'SIGUSR2')],
  ];

  it.each(endings)('the terminal is as before after %s', async (name, code, end) => {
    await using server = await scriptedShell();
    const crash = join(folder, 'crash.cjs');
    writeFileSync(crash, `process.on('SIGUSR2', () => { throw new Error('crashed'); });`);
    const env = name === 'a crash' ? { NODE_OPTIONS: `--require ${crash}` } : {};
    using program = attach(server.port, [], env);
    await eventually(() => server.frames.length > 0);
    server.output(RUDE);
    await program.shows('RUDE');
    end(program);
    await program.shows(`SAME ${code}`);
    const after = program.raw().slice(program.raw().indexOf('RUDE'));
    for (const sequence of MENDED) expect(after, JSON.stringify(sequence)).toContain(sequence);
    if (name === 'a crash') expect(program.screen()).toContain('INTERNAL');
  });

  it('after the program itself ended, too', async () => {
    await using server = await scriptedShell();
    using program = attach(server.port);
    await eventually(() => server.frames.length > 0);
    server.output(RUDE);
    server.exit(0);
    await program.shows('SAME 0');
    for (const sequence of MENDED) expect(program.raw()).toContain(sequence);
  });

  it('our keys work on a dead line, and a line on the screen says that it is dead', async () => {
    await using server = await scriptedShell();
    await using proxy = await cuttingProxy(server.port);
    using program = attach(proxy.port);
    await eventually(() => server.frames.length > 0);
    server.output('prompt$ ');
    await program.shows('prompt$');
    await proxy.refuse(true);
    await program.shows('no connection for');
    expect(program.screen().split('\n').at(-1)).toContain('no connection for');
    program.type('\r~?');
    await program.shows('Keys of ailsd');
    program.type('\r~.');
    await program.shows('SAME 0');
  });

  it('the words about a dead line are gone when it is back, and the screen is drawn again', async () => {
    await using server = await scriptedShell({ screen: 'the whole screen' });
    await using proxy = await cuttingProxy(server.port);
    using program = attach(proxy.port);
    await eventually(() => server.frames.length > 0);
    server.output('prompt$ ');
    await program.shows('prompt$');
    await proxy.refuse(true);
    program.type('typed in the dark');
    await program.shows('no connection for');
    await proxy.refuse(false);
    await program.shows('the whole screen');
    expect(program.screen()).not.toContain('no connection');
    await eventually(() => server.input().length > 0);
    expect(Buffer.from(server.input()).toString()).toBe('typed in the dark');
    server.exit(0);
    await program.shows('SAME 0');
  });

  it('suspended, the terminal is the user’s; brought back, the screen is drawn again', async () => {
    await using server = await scriptedShell({ screen: 'drawn again' });
    using program = attach(server.port);
    await eventually(() => server.frames.length > 0);
    server.output(RUDE);
    await program.shows('RUDE');
    const pid = pidOf(program);
    const state = (): string =>
      /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
    program.type('\r~\x1a');
    await eventually(() => state() === 'T');
    // What it wrote before it stopped may still be on its way to us.
    await eventually(() => MENDED.every((sequence) => program.raw().includes(sequence)));
    process.kill(pid, 'SIGCONT');
    await program.shows('drawn again');
    program.type('x');
    await eventually(() => Buffer.from(server.input()).toString() === '\rx');
    server.exit(0);
    await program.shows('SAME 0');
  });

  const refusals = [
    ['missingToken', 'TOKEN_MISSING'],
    ['tokenExpired', 'TOKEN_EXPIRED'],
    ['invalidToken', 'UNAUTHENTICATED'],
    ['unauthorizedRoom', 'FORBIDDEN'],
    ['notAllowed', 'FORBIDDEN'],
  ] as const;

  it.each(refusals)(
    proves('after 1008 %s it does not try again, and ends with 125 and %s', 'WS-05'),
    async (name, word) => {
      await using server = await scriptedShell();
      using program = attach(server.port);
      await eventually(() => server.frames.length > 0);
      server.output('here');
      await program.shows('here');
      server.close(CLOSES[name].code, CLOSES[name].reason);
      await program.shows('SAME 125');
      expect(program.screen()).toContain(word);
      expect(server.attempts).toBe(1);
    },
  );

  it(proves('after 403 it does not try again either', 'WS-05'), async () => {
    await using server = await scriptedShell({ refuse: (socket) => answerUpgrade(socket, 403) });
    using program = attach(server.port);
    await program.shows('SAME 125');
    expect(program.screen()).toContain('FORBIDDEN');
    expect(server.attempts).toBe(1);
  });

  it(
    proves('with a login that can be refreshed, Token expired is met with one more try', 'WS-05'),
    async () => {
      const { code, reason } = CLOSES.tokenExpired;
      await using server = await scriptedShell({
        start: (ws) => {
          ws.close(code, reason);
          return true;
        },
      });
      const sandboxUrl = `http://127.0.0.1:${server.port}`;
      await using broker = await startFakeBroker({ sandboxUrl });
      using program = attach(server.port, ['thr_1'], { ...broker.env, AILSD_SANDBOX: '' });
      await program.shows('SAME 125');
      expect(program.screen()).toContain('TOKEN_EXPIRED');
      expect(server.tokens).toEqual(broker.tokens);
      expect(server.attempts).toBe(2);
    },
  );

  it(
    proves('a token that is renewed in time is sent on, and nothing is interrupted', 'WS-05'),
    async () => {
      await using server = await scriptedShell();
      const sandboxUrl = `http://127.0.0.1:${server.port}`;
      await using broker = await startFakeBroker({ sandboxUrl, lifeSeconds: 3 });
      using program = attach(server.port, ['thr_1'], { ...broker.env, AILSD_SANDBOX: '' });
      await eventually(() => server.frames.some(({ type }) => type === 'auth'));
      expect(server.attempts).toBe(1);
      server.exit(0);
      await program.shows('SAME 0');
    },
  );

  it('with --no-reconnect a cut is the end: 255', async () => {
    await using server = await scriptedShell();
    await using proxy = await cuttingProxy(server.port);
    using program = attach(proxy.port, ['--no-reconnect']);
    await eventually(() => server.frames.length > 0);
    server.output('here');
    await program.shows('here');
    proxy.cut();
    await program.shows('SAME 255');
    expect(program.screen()).toContain('TRANSPORT_LOST');
  });

  it('with --observe nothing that is typed is sent, and our keys work', async () => {
    await using server = await scriptedShell();
    using program = attach(server.port, ['--observe']);
    await eventually(() => server.frames.length > 0);
    expect(server.frames[0]).toMatchObject({ observe: true });
    server.output('watched');
    await program.shows('watched');
    program.type('x\r~.');
    await program.shows('SAME 0');
    expect(server.input()).toHaveLength(0);
  });

  it('its options reach the shell', async () => {
    await using server = await scriptedShell();
    const args = ['-w', '/srv', '-e', 'A=1', '-e', 'B=x=y', '--history', '20', '--cmd', 'top'];
    using program = attach(server.port, [...args, '--escape-char', '%']);
    await eventually(() => server.frames.length > 0);
    expect(server.frames[0]).toMatchObject({
      shell_id: 'new',
      cwd: '/srv',
      env: { A: '1', B: 'x=y' },
      history: 20,
      command: ['/bin/sh', '-c', 'top'],
    });
    server.output('here');
    await program.shows('here');
    program.type('\r~.\r%.');
    await program.shows('SAME 0');
    await eventually(() => server.input().length > 0);
    expect(Buffer.from(server.input()).toString()).toBe('\r~.\r');
  });

  it('--record writes what was seen as asciicast v2, without tokens, for the user alone, and never over a file', async () => {
    await using server = await scriptedShell();
    const file = join(folder, 'seen.cast');
    using program = attach(server.port, ['--record', file]);
    await eventually(() => server.frames.length > 0);
    server.output('gr\xc3\xbc');
    const token = `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}.${'c'.repeat(20)}`;
    server.output(`token ${token.slice(0, 30)}`);
    server.output(`${token.slice(30)} end\r\n`);
    await program.shows(token.slice(0, 10));
    program.resize(90, 20);
    await eventually(() => server.frames.some(({ type }) => type === 'resize'));
    server.exit(0);
    await program.shows('SAME 0');
    const [header = '', ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(JSON.parse(header)).toMatchObject({ version: 2, width: 80, height: 24 });
    const events: [number, string, string][] = lines.map((line) => JSON.parse(line));
    const text = events.flatMap(([, kind, data]) => (kind === 'o' ? [data] : [])).join('');
    expect(text).toContain('token [secret] end');
    expect(events.some(([, kind, data]) => kind === 'r' && data === '90x20')).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    using again = attach(server.port, ['--record', file]);
    await again.shows('SAME 125');
    expect(again.screen()).toContain('ALREADY_EXISTS');
  });

  it('--json tells the end on stderr, beside the bytes of the shell', async () => {
    await using server = await scriptedShell();
    using program = attach(server.port, ['--json']);
    await eventually(() => server.frames.length > 0);
    server.exit(3);
    await program.shows('SAME 3');
    const line = /\{.*\}/.exec(program.raw())?.[0] ?? '';
    expect(JSON.parse(line)).toMatchObject({
      thread_id: 'thr_1',
      shell_id: 'sh_scripted',
      ended: 'exit',
      exit_code: 3,
    });
  });
});
