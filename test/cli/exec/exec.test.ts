import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Served, serveSandbox } from '../../server/sandboxd/support/sandboxd.js';
import { ailsd, BIN, cleanEnvironment, temporaryFolder } from '../../support/cli.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { ailsdInPty } from '../../support/pty.js';
import { sandboxAccess } from '../../support/sandbox-access.js';

const SOAK = process.env['AILSD_SOAK'] !== undefined;
const folder = temporaryFolder();
let served: Served;
beforeAll(async () => {
  served = await serveSandbox({ commands: 200 });
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function access(port = served.port, scope = 'process'): Record<string, string> {
  const token = served.token({ scope });
  const path = `/s/${served.id}`;
  return {
    AILSD_SANDBOX: sandboxAccess({ port, path, token, sandboxId: served.id, thread: 'thr_test' }),
  };
}

const exec = (args: readonly string[], input?: string) =>
  ailsd(['exec', ...args], { env: access(), ...(input === undefined ? {} : { input }) });

function statusIn(path: string) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

describe('ailsd exec', () => {
  it('outputs apart, arguments as they are, and the code', async () => {
    const odd = ['a b', '', '\'"', '$(id)', '--json', '-x', 'new\nline', '--', '*', 'ü'];
    const { code, stdout, stderr } = await exec([
      '--',
      'sh',
      '-c',
      'printf "[%s]" "$@"; echo err >&2; exit 9',
      'sh',
      ...odd,
    ]);
    expect({ code, stderr }).toEqual({ code: 9, stderr: 'err\n' });
    expect(stdout).toBe(odd.map((one) => `[${one}]`).join(''));
  });

  it('every exit code passes through', async () => {
    const codes = SOAK ? Array.from({ length: 256 }, (_, at) => at) : [0, 1, 2, 126, 128, 200, 255];
    for (const code of codes) {
      expect((await exec(['-n', '--', 'sh', '-c', `exit ${code}`])).code).toBe(code);
    }
  }, 180_000);

  it('a command that a signal ended, one that is not there, one that cannot be run', async () => {
    const names = SOAK
      ? ([
          'HUP',
          'INT',
          'QUIT',
          'ILL',
          'ABRT',
          'FPE',
          'KILL',
          'SEGV',
          'PIPE',
          'TERM',
          'USR1',
        ] as const)
      : (['KILL', 'TERM', 'SEGV'] as const);
    for (const name of names) {
      const { code } = await exec(['-n', '--', 'sh', '-c', `kill -${name} $$`]);
      expect(code, name).toBe(128 + constants.signals[`SIG${name}`]);
    }
    expect((await exec(['--', 'no-such-program'])).code).toBe(127);
    expect((await exec(['--', '/etc/passwd'])).code).toBe(126);
  }, 60_000);

  it('its input is ours: a pipe of any bytes, a file, nothing, closed', async () => {
    const bytes = randomBytes(3 * 1024 * 1024);
    const path = join(folder.path, 'input');
    writeFileSync(path, bytes);
    const sha = createHash('sha256').update(bytes).digest('hex');
    const digest = (out: Buffer) => createHash('sha256').update(out).digest('hex');
    // The daemon is in this process: the shell must not block it.
    const run = (line: string) =>
      new Promise<{ code: number | null; out: Buffer }>((resolve) => {
        const env = { ...cleanEnvironment(access()), NODE: process.execPath, BIN, FILE: path };
        const child = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'inherit'] });
        const chunks: Buffer[] = [];
        child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
        child.on('close', (code) => resolve({ code, out: Buffer.concat(chunks) }));
      });
    expect(digest((await run('cat "$FILE" | "$NODE" "$BIN" exec -- cat')).out)).toBe(sha);
    expect(digest((await run('"$NODE" "$BIN" exec -- cat < "$FILE"')).out)).toBe(sha);
    expect(await run('"$NODE" "$BIN" exec -- cat < /dev/null')).toEqual({
      code: 0,
      out: Buffer.of(),
    });
    expect(await run('"$NODE" "$BIN" exec -- cat <&-')).toEqual({ code: 0, out: Buffer.of() });
    // A pipe that never ends is not waited for by a command that gets nothing.
    expect(await run('sleep 3 >&2 | "$NODE" "$BIN" exec -n -- cat')).toMatchObject({ code: 0 });
    // One that does not read is no error of ours.
    expect(await run('cat "$FILE" | "$NODE" "$BIN" exec -- true')).toEqual({
      code: 0,
      out: Buffer.of(),
    });
  }, 60_000);

  it('input typed at a terminal reaches it, and so does its end', async () => {
    using program = ailsdInPty(['exec', '--', 'cat'], { env: access() });
    await eventually(() => served.log().includes('command started'));
    program.type('typed\r');
    await program.shows('typed\ntyped');
    program.type('\x04');
    expect(await program.ended()).toBe(0);
  });

  it('with -t it has a terminal: its size, raw keys, Ctrl-C, and its code', async () => {
    using program = ailsdInPty(['exec', '-t', '--', 'sh'], { env: access() });
    program.type('stty size; tty\r');
    await program.shows('24 80');
    await program.shows('/dev/pts/');
    program.resize(100, 30);
    // A new size comes when it comes.
    program.type('until [ "$(stty size)" = "30 100" ]; do sleep 0.05; done; echo gro""wn\r');
    await program.shows('grown');
    program.type('cat\rabc\x03');
    await program.shows('^C');
    program.type('exit 4\r');
    expect(await program.ended()).toBe(4);
    const { stdout } = await exec(['--', 'tty']);
    expect(stdout).toContain('not a tty');
  });

  it('a reader that has gone ends it, without a word', async () => {
    const env = { ...cleanEnvironment(access()), NODE: process.execPath, BIN };
    const line = '{ "$NODE" "$BIN" exec -- yes; echo "code $?" >&2; } | head -1';
    const child = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    let out = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    await new Promise((resolve) => child.on('close', resolve));
    expect({
      out,
      said: said.replace('ailsd: the command was ended from outside, not by itself\n', ''),
    }).toEqual({
      out: 'y\n',
      said: 'code 141\n',
    });
    await eventually(() => served.daemon.view(served.id)?.running_commands === 0);
  });

  it('signals go to the command; the second of a kind is for us, and the command goes on', async () => {
    const start = (script: string) => {
      const child = spawn(process.execPath, [BIN, 'exec', '-n', '--', 'sh', '-c', script], {
        env: cleanEnvironment(access()),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let out = '';
      let err = '';
      child.stdout.on('data', (chunk) => {
        out += chunk;
      });
      child.stderr.on('data', (chunk) => {
        err += chunk;
      });
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      return { child, ended, out: () => out, err: () => err };
    };
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) {
      const short = name.slice(3);
      const run = start(`trap 'echo got; exit 3' ${short}; echo up; while :; do sleep 0.05; done`);
      await eventually(() => run.out().includes('up'));
      run.child.kill(name);
      expect(await run.ended, name).toBe(3);
      expect(run.out()).toBe('up\ngot\n');
    }
    const deaf = start(`trap '' INT; echo up; while :; do sleep 0.05; done`);
    await eventually(() => deaf.out().includes('up'));
    deaf.child.kill('SIGINT');
    // The first has been passed on when a second would be for us.
    await new Promise((resolve) => setTimeout(resolve, 200));
    deaf.child.kill('SIGINT');
    expect(await deaf.ended).toBe(130);
    const id = /ailsd job wait (cmd_\w+)/.exec(deaf.err())?.[1] ?? '';
    expect(served.daemon.view(served.id)?.running_commands).toBe(1);
    expect((await ailsd(['job', 'kill', id], { env: access() })).code).toBe(0);
    expect(served.daemon.view(served.id)?.running_commands).toBe(0);
  }, 60_000);

  it('a time that is over is a failure, also of a command that says otherwise', async () => {
    const path = join(folder.path, 'timeout.json');
    const script = "trap 'exit 0' TERM; sleep 30 & wait";
    const run = await exec(['--timeout', '1s', '--status-file', path, '--', 'sh', '-c', script]);
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('its time was over');
    expect(statusIn(path)).toMatchObject({ state: 'ended', outcome: { timed_out: true } });
    expect((await exec(['--timeout', '1s', '--', 'sleep', '30'])).code).toBe(143);
  });

  it('folder and variables are its own', async () => {
    mkdirSync(join(served.folder, 'workspace', 'sub'), { recursive: true });
    const args = ['-w', 'sub', '-e', 'A=1 2', '-e', 'B=', '--'];
    const script = 'basename "$PWD"; printf "[%s]" "$A" "$B" "$AILSD_SANDBOX"';
    const { stdout } = await exec([...args, 'sh', '-c', script]);
    expect(stdout).toBe('sub\n[1 2][][]');
    const wrong = await exec(['-w', 'nowhere', '--', 'true']);
    expect(wrong.code).toBe(125);
    expect(wrong.stderr).toContain('INVALID_REQUEST');
  });

  it('as JSON: one document, with what it wrote inside', async () => {
    const text = await exec(['--json', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3']);
    expect(text).toMatchObject({ code: 3, stderr: '' });
    expect(JSON.parse(text.stdout)).toMatchObject({
      state: 'ended',
      thread_id: 'thr_test',
      exit_code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      stdout_bytes: 4,
      stdout_truncated: false,
      outcome: { origin: 'remote', exit_code: 3, signal: null, timed_out: false, oom: false },
    });
    const bytes = JSON.parse((await exec(['--json', '--', 'printf', '\\377\\0'])).stdout);
    expect(bytes).toMatchObject({ stdout: '/wA=', stdout_encoding: 'base64', stdout_bytes: 2 });
    const much = await exec(['--json', '--', 'head', '-c', '6000000', '/dev/zero']);
    expect(JSON.parse(much.stdout)).toMatchObject({
      stdout_bytes: 6_000_000,
      stdout_truncated: true,
    });
  });

  it('the status file always says which it was', async () => {
    const path = join(folder.path, 'status.json');
    const file = ['--status-file', path];
    await exec([...file, '--', 'sh', '-c', 'exit 125']);
    expect(statusIn(path)).toMatchObject({
      state: 'ended',
      exit_code: 125,
      sandbox_id: served.id,
      outcome: { origin: 'remote', exit_code: 125 },
    });
    const denied = { env: access(served.port, 'shell') };
    expect((await ailsd(['exec', ...file, '--', 'true'], denied)).code).toBe(125);
    expect(statusIn(path)).toMatchObject({
      state: 'not_started',
      exit_code: 125,
      outcome: { origin: 'ailsd', exit_code: null },
      error: { code: 'CAPABILITY_DENIED' },
    });
    await using proxy = await cuttingProxy(served.port);
    const script = 'echo up; sleep 1; exit 5';
    const lost = ailsd(['exec', '--no-reconnect', ...file, '--', 'sh', '-c', script], {
      env: access(proxy.port),
    });
    await eventually(() => served.daemon.view(served.id)?.running_commands === 1);
    proxy.cut();
    expect((await lost).code).toBe(255);
    const { state, outcome, command_id: id } = statusIn(path);
    expect({ state, origin: outcome.origin }).toEqual({ state: 'unknown', origin: 'transport' });
    // What was lost here is known there.
    expect((await ailsd(['job', 'wait', id], { env: access() })).code).toBe(5);
    const nowhere = await exec(['--status-file', '/nonexistent/x', '--', 'touch', 'ran']);
    expect(nowhere.code).toBe(125);
    expect(() => readFileSync(join(served.folder, 'workspace', 'ran'))).toThrow();
  });

  it('cuts are not seen', async () => {
    await using proxy = await cuttingProxy(served.port);
    const script = 'for i in 1 2 3 4 5 6; do echo $i; echo e$i >&2; sleep 0.1; done; cat; exit 6';
    const run = ailsd(['exec', '--', 'sh', '-c', script], { env: access(proxy.port), input: 'in' });
    await eventually(() => proxy.connections > 0);
    for (let cuts = 0; cuts < 4; cuts += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      proxy.cut(cuts % 2 === 0 ? 'rst' : 'fin');
    }
    expect(await run).toMatchObject({
      code: 6,
      stdout: '1\n2\n3\n4\n5\n6\nin',
      stderr: 'e1\ne2\ne3\ne4\ne5\ne6\n',
    });
  });

  it('order between the two outputs is kept where both go to one place', async () => {
    const path = join(folder.path, 'both');
    const descriptor = openSync(path, 'w');
    const script =
      'for i in 1 2 3 4 5 6 7 8; do echo o$i; sleep 0.03; echo e$i >&2; sleep 0.03; done';
    const child = spawn(process.execPath, [BIN, 'exec', '-n', '--', 'sh', '-c', script], {
      env: cleanEnvironment(access()),
      stdio: ['ignore', descriptor, descriptor],
    });
    await new Promise((resolve) => child.on('close', resolve));
    closeSync(descriptor);
    const lines = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((at) => [`o${at}`, `e${at}`]);
    expect(readFileSync(path, 'utf8').trim().split('\n')).toEqual(lines);
  });

  it('usage: two dashes, and a command behind them', async () => {
    expect((await exec(['thr_test', 'ls'])).code).toBe(2);
    expect((await exec(['thr_test'])).stderr).toContain('put it behind two dashes');
    expect((await exec(['--'])).stderr).toContain('no command is named');
  });
});

describe('ailsd job', () => {
  it('left alone, found from elsewhere, read, waited for', async () => {
    const script = 'echo one; echo two >&2; sleep 0.5; echo three; exit 4';
    const started = await exec(['--detach', '--', 'sh', '-c', script]);
    expect(started.code).toBe(0);
    const id = started.stdout.trim();
    expect(id).toMatch(/^cmd_\w{26}$/);
    // Another machine: nothing in common but the access.
    using home = temporaryFolder();
    const env = { ...access(), HOME: home.path };
    const list = JSON.parse((await ailsd(['job', 'list', '--json'], { env })).stdout);
    expect(list.items[0]).toMatchObject({ id, state: 'running' });
    const logs = await ailsd(['job', 'logs', id, '--follow'], { env });
    expect(logs).toMatchObject({ code: 0, stdout: 'one\nthree\n', stderr: 'two\n' });
    expect((await ailsd(['job', 'wait', 'thr_test', id], { env })).code).toBe(4);
    const table = await ailsd(['job', 'list'], { env });
    expect(table.stdout).toMatch(new RegExp(`${id} +ended \\(4\\)`));
    const tail = await ailsd(['job', 'logs', id, '--tail', '1', '--json'], { env });
    expect(JSON.parse(tail.stdout).items.at(-1)).toMatchObject({ data: 'three\n' });
  });

  it('a log that is cut goes on where it was', async () => {
    const script = 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done';
    const id = (await exec(['--detach', '--', 'sh', '-c', script])).stdout.trim();
    await using proxy = await cuttingProxy(served.port);
    const logs = ailsd(['job', 'logs', id, '-f'], { env: access(proxy.port) });
    for (let cuts = 0; cuts < 3; cuts += 1) {
      await eventually(() => proxy.connections > cuts);
      await new Promise((resolve) => setTimeout(resolve, 120));
      proxy.cut();
    }
    expect(await logs).toMatchObject({ code: 0, stdout: '1\n2\n3\n4\n5\n6\n7\n8\n' });
  });

  it('ended, it is ended with all it started; one that is not there is not found', async () => {
    const id = (await exec(['--detach', '--', 'sh', '-c', 'sleep 60 & sleep 60'])).stdout.trim();
    expect((await ailsd(['job', 'kill', id], { env: access() })).code).toBe(0);
    expect((await ailsd(['job', 'wait', id], { env: access() })).code).toBe(143);
    expect((await ailsd(['job', 'kill', 'cmd_none'], { env: access() })).code).toBe(3);
    expect((await ailsd(['job', 'wait', 'cmd_none'], { env: access() })).code).toBe(125);
  });
});
