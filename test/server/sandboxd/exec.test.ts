/** Commands over a bare WebSocket: their bytes apart and unchanged, their exit after the last of them, each run once. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { newSeed, seededRandom } from '../../support/random.js';
import type { Frame } from './support/bare-client.js';
import { connectExec, type ExecClient, type ExecClientOptions } from './support/exec-client.js';
import { type Served, serveSandbox } from './support/sandboxd.js';

const MIB = 1024 * 1024;
const isSoak = process.env['AILSD_SOAK'] === '1';

let served: Served;
let isolated: Served;
beforeAll(async () => {
  served = await serveSandbox({ commands: 64 });
  isolated = await serveSandbox({ isolation: 'namespaces' });
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await isolated[Symbol.asyncDispose]();
});

function connect(options?: ExecClientOptions, at: Served = served): Promise<ExecClient> {
  return connectExec(`${at.ws}/v1/exec/ws`, at.token({ scope: 'process' }), options);
}

async function run(client: ExecClient, start: object) {
  client.restart();
  client.send({ type: 'start', ...start });
  client.send({ type: 'eof' });
  return client.frame('exit');
}

function sh(script: string, ...args: string[]): { argv: string[] } {
  return { argv: ['sh', '-c', script, 'sh', ...args] };
}

describe.each([true, false])('with binary frames: %s', (binary) => {
  it('outputs come apart, unchanged, and before the exit', async () => {
    using client = await connect({ binary });
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    await writeFile(join(served.folder, 'workspace', 'bytes'), all);
    const exit = await run(client, sh('cat bytes; tail -c 3 bytes >&2; exit 3'));
    expect(exit).toMatchObject({ exit_code: 3, origin: 'remote', timed_out: false, oom: false });
    expect(client.bytes()).toEqual(all);
    expect(client.bytes('stderr')).toEqual(all.subarray(253));
    const sha256 = createHash('sha256').update(all).digest('hex');
    expect(exit).toMatchObject({ stdout_offset: 256, stdout_sha256: sha256, stderr_offset: 3 });
  });
});

it('input ends when the client says so, and a program that reads none is no failure', async () => {
  using client = await connect();
  client.send({ type: 'start', argv: ['cat'] });
  client.stdin(0, 'one ');
  client.stdin(4, 'two');
  client.stdin(0, 'one two');
  await eventually(() => client.inputAcked === 7);
  client.send({ type: 'eof', offset: 7 });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
  expect(client.text()).toBe('one two');
  client.restart();
  client.send({ type: 'start', argv: ['true'] });
  client.stdin(0, randomBytes(200_000));
  client.send({ type: 'eof' });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
  expect(client.frames.map(({ type }) => type)).toEqual(['ready', 'exit']);
});

it('input with a gap before it is refused, by its offset', async () => {
  using client = await connect();
  client.send({ type: 'start', argv: ['cat'] });
  client.stdin(5, 'late');
  expect(await client.frame('error')).toMatchObject({ code: 'INVALID_REQUEST', field: 'offset' });
  client.stdin(0, 'early');
  client.send({ type: 'eof', offset: 5 });
  await client.frame('exit');
  expect(client.text()).toBe('early');
});

it.each(['none', 'namespaces'])(
  'a program may open its streams by name, with isolation %s',
  async (kind) => {
    using client = await connect({}, kind === 'none' ? served : isolated);
    client.send({ type: 'start', ...sh('cat /dev/stdin | tee /dev/stderr >/dev/stdout') });
    client.stdin(0, 'through');
    client.send({ type: 'eof' });
    expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
    expect([client.text(), client.text('stderr')]).toEqual(['through', 'through']);
  },
);

it('a signal reaches the program', async () => {
  using client = await connect();
  client.send({
    type: 'start',
    ...sh('trap "echo caught; exit 9" USR1; echo on; while :; do sleep 0.02; done'),
  });
  await eventually(() => client.text() === 'on\n');
  client.send({ type: 'signal', signal: 'SIGUSR1' });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 9 });
  expect(client.text()).toBe('on\ncaught\n');
});

it('a terminal only where one is asked for', async () => {
  using client = await connect();
  const script = sh('test -t 1 && stty size; echo "$TERM"');
  await run(client, script);
  expect(client.text()).toBe('\n');
  await run(client, { ...script, tty: true, cols: 90, rows: 20, term: 'vt100' });
  expect(client.text()).toBe('20 90\r\nvt100\r\n');
  client.restart();
  client.send({ type: 'start', argv: ['cat'], tty: true });
  client.stdin(0, 'typed\r');
  await eventually(() => client.text().includes('typed\r\ntyped\r\n'));
  client.send({ type: 'eof' });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
});

it('1,000 of 1,000 fast programs deliver their 20,480 bytes before their exit', async () => {
  const clients = await Promise.all([1, 2, 3, 4].map(() => connect()));
  let whole = 0;
  await Promise.all(
    clients.map(async (client) => {
      for (let round = 0; round < 250; round++) {
        const exit = await run(client, { argv: ['head', '-c', '20480', '/dev/zero'] });
        expect(exit).toMatchObject({ exit_code: 0, stdout_offset: 20480 });
        if (client.bytes().length === 20480) whole += 1;
      }
    }),
  );
  for (const client of clients) client[Symbol.dispose]();
  expect(whole).toBe(1000);
}, 60_000);

describe.each(['none', 'namespaces'] as const)('with isolation %s', (kind) => {
  const at = (): Served => (kind === 'none' ? served : isolated);

  it(proves('arguments arrive unchanged, and too many are refused', 'EX-02'), async () => {
    using client = await connect({}, at());
    const odd = [
      'a b',
      `'"\\`,
      'two\nlines',
      '$(id) `id` $HOME $' + '{X}',
      '',
      '-rf',
      '--',
      '*',
      'ü€😀',
      'k=v',
    ];
    const show = 'for one; do printf "%s\\0" "$one"; done';
    await run(client, sh(show, ...odd));
    expect(client.text().split('\0').slice(0, -1)).toEqual(odd);
    const fixed = ['printf', '%s', ''].join('\0').length + 1;
    const long = 'x'.repeat(128 * 1024 - fixed);
    await run(client, { argv: ['printf', '%s', long] });
    expect(client.text()).toBe(long);
    client.restart();
    client.send({ type: 'start', argv: ['printf', '%s', `${long}x`] });
    expect(await client.frame('error')).toMatchObject({ code: 'INVALID_REQUEST', field: 'argv' });
  });

  it(
    proves('exit codes and deaths pass through; 127 is not found, 126 not executable', 'EX-02'),
    async () => {
      using client = await connect({}, at());
      const codes =
        kind === 'none' || isSoak
          ? Array.from({ length: 256 }, (_, code) => code)
          : [0, 1, 7, 125, 128, 137, 254, 255];
      for (const code of codes) {
        const exit = await run(client, sh(`exit ${code}`));
        expect(exit).toMatchObject({ exit_code: code, origin: 'remote' });
      }
      const deadly =
        kind === 'none' || isSoak ? DEADLY : (['SIGTERM', 'SIGKILL', 'SIGSEGV'] as const);
      for (const signal of deadly) {
        const exit = await run(client, sh(`kill -${constants.signals[signal]} $$`));
        expect(exit).toMatchObject({ signal, origin: 'remote' });
        expect(exit.exit_code).toBeUndefined();
      }
      expect(await run(client, { argv: ['no-such-program'] })).toMatchObject({ exit_code: 127 });
      expect(client.text('stderr')).toContain('no-such-program');
      expect(await run(client, { argv: ['/etc/passwd'] })).toMatchObject({ exit_code: 126 });
      expect(await run(client, { argv: ['no=such'] })).toMatchObject({ exit_code: 127 });
    },
  );
});

/** Those whose default is to end a process. */
const DEADLY = [
  ...(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE'] as const),
  ...(['SIGKILL', 'SIGUSR1', 'SIGSEGV', 'SIGUSR2', 'SIGPIPE', 'SIGALRM', 'SIGTERM'] as const),
  ...([
    'SIGSTKFLT',
    'SIGXCPU',
    'SIGXFSZ',
    'SIGVTALRM',
    'SIGPROF',
    'SIGIO',
    'SIGPWR',
    'SIGSYS',
  ] as const),
];

it(proves(
  '1 GiB of output is cut at its limit, counted and hashed, with memory flat',
  'EX-02',
), async () => {
  const bytes = 1024 * MIB;
  using client = await connect();
  const before = process.memoryUsage().rss;
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 10);
  const limits = { stdout_bytes: MIB };
  const exit = await run(client, { argv: ['head', '-c', `${bytes}`, '/dev/zero'], limits });
  clearInterval(timer);
  expect(exit).toMatchObject({ exit_code: 0, stdout_truncated: true, stdout_offset: bytes });
  expect(client.next.stdout).toBe(MIB);
  expect((most - before) / MIB).toBeLessThan(64);
}, 60_000);

it(proves(
  'a slow reader of output holds the program back, and gets all of it',
  'EX-02',
), async () => {
  const bytes = (isSoak ? 1024 : 128) * MIB;
  const hash = createHash('sha256');
  let seen = 0;
  using client = await connect({
    onData: (_, data) => {
      hash.update(data);
      seen += data.length;
    },
  });
  const before = process.memoryUsage().rss;
  client.send({ type: 'start', ...sh('echo $$ >pid; exec head -c "$1" /dev/zero', `${bytes}`) });
  await client.frame('ready');
  client.socket.pause();
  const written = await stable(async () => writtenBy(join(served.folder, 'workspace', 'pid')));
  expect(written).toBeGreaterThan(0);
  expect(written).toBeLessThan(16 * MIB);
  client.socket.resume();
  const exit = await client.frame('exit');
  expect(seen).toBe(bytes);
  expect(hash.digest('hex')).toBe(exit.stdout_sha256);
  expect((process.memoryUsage().rss - before) / MIB).toBeLessThan(96);
}, 120_000);

it(proves(
  '64 MiB of input wait for a slow reader, and for nobody who closed it',
  'EX-02',
), async () => {
  const total = 64 * MIB;
  using client = await connect();
  const before = process.memoryUsage().rss;
  const script =
    'sleep 0.2; dd bs=1M count=2 iflag=fullblock status=none | wc -c; sleep 0.2; wc -c';
  client.send({ type: 'start', ...sh(script) });
  let most = 0;
  const chunk = Buffer.alloc(128 * 1024, 'x');
  let sent = 0;
  // As a client that keeps a window does.
  while (sent < total) {
    await eventually(() => sent - client.inputAcked <= MIB);
    client.stdin(sent, chunk);
    sent += chunk.length;
    most = Math.max(most, process.memoryUsage().rss);
  }
  client.send({ type: 'eof', offset: total });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
  expect(client.text().split(/\s+/).slice(0, 2)).toEqual([`${2 * MIB}`, `${total - 2 * MIB}`]);
  expect((most - before) / MIB).toBeLessThan(96);
  client.restart();
  client.send({ type: 'start', ...sh('exec <&-; sleep 0.1; echo done') });
  for (let at = 0; at < total; at += chunk.length) client.stdin(at, chunk);
  client.send({ type: 'eof', offset: total });
  expect(await client.frame('exit')).toMatchObject({ exit_code: 0 });
  expect(client.text()).toBe('done\n');
}, 60_000);

it('much in and much out at once, without waiting for each other', async () => {
  using client = await connect({ onData: () => undefined });
  client.send({ type: 'start', argv: ['cat'] });
  const chunk = Buffer.alloc(512 * 1024, 'x');
  for (let at = 0; at < 64 * MIB; at += chunk.length) client.stdin(at, chunk);
  client.send({ type: 'eof' });
  await client.frame('exit');
  expect(client.next.stdout).toBe(64 * MIB);
}, 60_000);

describe('a cut line', () => {
  it('both outputs and the input go on exactly, and the command ran once', async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    await using proxy = await cuttingProxy(served.port, {
      random,
      meanBytes: 150_000,
      maxCuts: 60,
    });
    const input = randomBytes(2 * MIB);
    const id = `cmd-cut-${seed}`;
    const url = `ws://127.0.0.1:${proxy.port}/s/${served.id}/v1/exec/ws`;
    const script = 'echo ran >>runs; tee copy; cat copy >&2';
    const got = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    const next = { stdout: 0, stderr: 0 };
    let exit: { exit_code?: number } | undefined;
    let acked = 0;
    while (exit === undefined) {
      using client = await connectExec(url, served.token({ scope: 'process' }), {
        from: next,
        onData: (stream, data) => {
          got[stream].push(data);
          next[stream] += data.length;
        },
      });
      if (client.isClosed) continue;
      client.send({
        type: 'start',
        ...sh(script),
        command_id: id,
        stdout_offset: next.stdout,
        stderr_offset: next.stderr,
      });
      const ready = await client.frame('ready').catch(() => undefined);
      if (ready === undefined) continue;
      acked = ready.input_offset;
      for (let at = acked; at < input.length; at += 65_536) {
        while (!client.isClosed && at - Math.max(acked, client.inputAcked) > 4 * 65_536)
          await new Promise((resolve) => setTimeout(resolve, 1));
        if (client.isClosed) break;
        client.stdin(at, input.subarray(at, at + 65_536));
      }
      if (!client.isClosed) client.send({ type: 'eof', offset: input.length });
      exit = await client.frame('exit').catch(() => undefined);
    }
    const told = `seed ${seed}, ${proxy.cuts} cuts`;
    expect(proxy.cuts, told).toBeGreaterThan(10);
    expect(exit, told).toMatchObject({ exit_code: 0 });
    expect(Buffer.concat(got.stdout).equals(input), told).toBe(true);
    expect(Buffer.concat(got.stderr).equals(input), told).toBe(true);
    expect(await readFile(join(served.folder, 'workspace', 'runs'), 'utf8'), told).toBe('ran\n');
  }, 60_000);

  it('more than memory holds waits in a file for the client that was away', async () => {
    const first = await connect();
    first.send({ type: 'start', ...sh('echo go; sleep 0.1; seq 1 3000000') });
    const { command_id } = await first.frame('ready');
    await eventually(() => first.text() === 'go\n');
    first.socket.terminate();
    await eventually(async () => (await state(command_id)).state === 'ended');
    const second = await connect({ from: { stdout: 3, stderr: 0 } });
    second.send({ type: 'start', command_id, stdout_offset: 3 });
    expect(await second.frame('ready')).toMatchObject({ state: 'resumed', stdout_offset: 3 });
    const exit = await second.frame('exit');
    const text = `go\n${second.text()}`;
    expect(createHash('sha256').update(text).digest('hex')).toBe(exit.stdout_sha256);
    second[Symbol.dispose]();
  }, 60_000);

  it('an exit that was missed is told to the client that comes back, however often', async () => {
    const first = await connect();
    first.send({ type: 'start', argv: ['sh', '-c', 'exit 42'], command_id: 'cmd-missed' });
    await first.frame('exit');
    first[Symbol.dispose]();
    for (let round = 0; round < 3; round++) {
      using again = await connect();
      again.send({ type: 'start', argv: ['sh', '-c', 'exit 43'], command_id: 'cmd-missed' });
      expect(await again.frame('ready')).toMatchObject({ state: 'resumed' });
      expect(await again.frame('exit')).toMatchObject({ exit_code: 42 });
    }
  });

  it('twenty starts of one id at once are one command', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => connect()));
    for (const client of clients)
      client.send({ type: 'start', ...sh('echo ran >>once; sleep 0.3'), command_id: 'cmd-once' });
    const states = await Promise.all(clients.map((client) => client.frame('ready')));
    expect(states.filter(({ state }) => state === 'fresh')).toHaveLength(1);
    for (const client of clients) client[Symbol.dispose]();
    await eventually(async () => (await state('cmd-once')).state === 'ended');
    expect(await readFile(join(served.folder, 'workspace', 'once'), 'utf8')).toBe('ran\n');
  });
});

async function state(id: string): Promise<Frame> {
  const headers = { authorization: `Bearer ${served.token({ scope: 'process' })}` };
  const answer = await fetch(`${served.http}/v1/commands/${id}`, { headers });
  return answer.json();
}

/** The value once it has not changed for a while. */
async function stable(read: () => Promise<number>): Promise<number> {
  let last = -1;
  let since = performance.now();
  await eventually(async () => {
    const value = await read();
    if (value !== last) since = performance.now();
    last = value;
    return value > 0 && performance.now() - since > 300;
  });
  return last;
}

async function writtenBy(pidFile: string): Promise<number> {
  const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
  const io = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  return Number(/^wchar: (\d+)$/m.exec(io)?.[1] ?? 0);
}
