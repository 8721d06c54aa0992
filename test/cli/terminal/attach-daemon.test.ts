import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { type Served, serveSandbox } from '../../server/sandboxd/support/sandboxd.js';
import { ailsd } from '../../support/cli.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { ailsdInPty, type PtyProgram } from '../../support/pty.js';
import { newSeed, seededRandom } from '../../support/random.js';
import { rawAttach } from '../../support/raw-pty.js';
import { sandboxAccess } from '../../support/sandbox-access.js';

const SOAK = process.env['AILSD_SOAK'] !== undefined;

let served: Served;
beforeAll(async () => {
  served = await serveSandbox({ recording: true });
});
afterAll(() => served[Symbol.asyncDispose]());

function access(port = served.port, claims: Record<string, unknown> = {}): Record<string, string> {
  const token = served.token(claims);
  return {
    AILSD_SANDBOX: sandboxAccess({
      port,
      path: `/s/${served.id}`,
      token,
      sandboxId: served.id,
      thread: 'thr_test',
    }),
  };
}

/** The terminal is the shell's from here on: before, keys would be echoed and changed on this side. */
async function attached(program: PtyProgram): Promise<void> {
  await eventually(() => program.raw().includes('\x1b[22;0t'));
}

describe('ailsd attach to a real sandbox', () => {
  it('a shell, its size, its keys and its code', async () => {
    using program = ailsdInPty(['attach', '--shell', 'new'], { env: access() });
    await attached(program);
    program.type('echo one; stty size\r');
    await program.shows('one\n24 80');
    // Only when it says so is it there to be interrupted, with the terminal as a program finds it.
    program.type("sh -c 'echo $((6*7)); exec cat'\r");
    await eventually(() => /^42$/m.test(program.screen()), program.screen);
    program.type('typed\x03');
    await program.shows('^C');
    program.type('exit 7\r');
    expect(await program.ended()).toBe(7);
  });

  it('a new size reaches the program', async () => {
    const command = 'while :; do stty size; sleep 0.02; done';
    using program = ailsdInPty(['attach', '--cmd', command], { env: access() });
    await program.shows('24 80');
    program.resize(100, 30);
    await program.shows('30 100');
    program.type('\r~.');
    expect(await program.ended()).toBe(0);
  });

  it('a cut in the middle of a line is not seen, and nothing typed is lost or doubled', async () => {
    await using proxy = await cuttingProxy(served.port);
    using program = ailsdInPty(['attach', '--shell', 'new'], { env: access(proxy.port) });
    await attached(program);
    program.type('echo one\r');
    await program.shows('\none');
    program.type('echo t');
    proxy.cut();
    program.type('wo\r');
    await program.shows('\ntwo');
    proxy.cut('fin');
    program.type('exit 3\r');
    expect(await program.ended()).toBe(3);
    expect(program.screen().match(/^two$/gm)).toHaveLength(1);
    expect(program.screen()).not.toContain('ailsd:');
  });

  it('leaving leaves the shell, and coming back finds its screen', async () => {
    using first = ailsdInPty(['attach', '--shell', 'new'], { env: access() });
    await attached(first);
    first.type('PS1="$ "; clear; echo $((40+2)) is the answer\r');
    await first.shows('42 is the answer');
    first.type('\r~.');
    expect(await first.ended()).toBe(0);
    const shell = /--shell (\S+)/.exec(first.raw())?.[1] ?? '';
    using second = ailsdInPty(['attach', '--shell', shell], { env: access() });
    await second.shows('42 is the answer');
    second.type('exit 5\r');
    expect(await second.ended()).toBe(5);
  });

  it('a full screen is the same after a cut of seconds, its last row included', async () => {
    await using proxy = await cuttingProxy(served.port);
    const script =
      'i=1; while [ $i -le 24 ]; do printf "\\033[%d;1Hrow %d here" $i $i; i=$((i+1)); done; printf "\\033[5;7H"; read x';
    using program = ailsdInPty(['attach', '--cmd', `printf "\\033[?1049h"; ${script}`], {
      env: access(proxy.port),
    });
    await program.shows('row 24 here');
    const before = program.screen();
    await proxy.refuse(true);
    await program.shows('no connection for');
    await proxy.refuse(false);
    await eventually(
      () => program.screen() === before,
      () => `${program.screen()}\n--- was ---\n${before}`,
    );
    program.type('\r');
    expect(await program.ended()).toBe(0);
  });

  it('an observer sees and does not touch', async () => {
    using writer = ailsdInPty(['attach', '--shell', 'new'], { env: access() });
    await attached(writer);
    writer.type('echo watch me\r');
    await writer.shows('\nwatch me');
    const list = await ailsd(['shell', 'list', '--json'], { env: access() });
    const { items } = JSON.parse(list.stdout);
    const shell = items.at(-1).id;
    using observer = ailsdInPty(['attach', '--shell', shell, '--observe'], {
      env: access(served.port, { scope: 'shell:ro' }),
    });
    await observer.shows('watch me');
    observer.type('rm -rf\r');
    observer.resize(50, 10);
    writer.type('stty size\r');
    await writer.shows('24 80');
    expect(writer.screen()).not.toContain('rm -rf');
    observer.type('~.');
    expect(await observer.ended()).toBe(0);
    writer.type('exit\r');
    expect(await writer.ended()).toBe(0);
  });

  it(proves(
    'output survives cuts byte for byte, through the command and the terminal',
    'PT-01',
  ), async () => {
    const seed = newSeed();
    const [bytes, cuts] = SOAK ? [64 * 1024 * 1024, 1000] : [3 * 1024 * 1024, 40];
    const random = seededRandom(seed);
    await using proxy = await cuttingProxy(served.port, {
      random,
      meanBytes: bytes / cuts,
      maxCuts: cuts,
    });
    const file = join(served.folder, 'workspace', 'random.bin');
    const sent = randomBytes(bytes);
    writeFileSync(file, sent, { mode: 0o644 });
    using program = rawAttach(
      ['--quiet', '--cmd', `stty raw -echo; printf BEGIN; exec cat ${file}`],
      access(proxy.port),
    );
    expect(await program.ended(), `seed ${seed}`).toBe(0);
    const seen = program.bytes();
    const begin = seen.indexOf('BEGIN') + 5;
    const hash = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
    expect(hash(seen.subarray(begin, begin + bytes)), `seed ${seed}`).toBe(hash(sent));
    // What follows only mends the terminal.
    expect(seen.length - begin - bytes, `seed ${seed}`).toBeLessThan(1000);
    expect(proxy.cuts, `seed ${seed}`).toBeGreaterThan(cuts / 3);
  }, 180_000);

  it(proves('each key is applied once, in order, typed through cuts', 'PT-02'), async () => {
    const seed = newSeed();
    const [keys, cuts] = SOAK ? [100_000, 500] : [4_000, 30];
    const random = seededRandom(seed);
    let hasBegun = false;
    const text = Array.from({ length: keys }, (_, key) => `${key};`).join('');
    await using proxy = await cuttingProxy(served.port, {
      random,
      // A key is some bytes more on the wire than in itself; those typed in bursts share a frame.
      meanBytes: (text.length * 3) / cuts,
      maxCuts: cuts,
      isOn: () => hasBegun,
    });
    const file = join(served.folder, 'workspace', `keys-${seed}`);
    using program = rawAttach(
      [
        '--quiet',
        '--escape-char',
        'none',
        '--cmd',
        `stty raw -echo; printf BEGIN; exec head -c ${text.length} > ${file}`,
      ],
      access(proxy.port),
    );
    await eventually(() => program.bytes().includes('BEGIN'));
    hasBegun = true;
    for (let at = 0; at < text.length; ) {
      const length = 1 + Math.floor(random() * 40);
      program.write(text.slice(at, at + length));
      at += length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await program.ended(), `seed ${seed}`).toBe(0);
    expect(readFileSync(file, 'utf8') === text, `seed ${seed}`).toBe(true);
    expect(proxy.cuts, `seed ${seed}`).toBeGreaterThan(3);
  }, 180_000);
});

describe('ailsd shell', () => {
  it('lists, ends and reads shells', async () => {
    using program = ailsdInPty(['attach', '--shell', 'new'], { env: access() });
    await attached(program);
    program.type('echo \x1b[31mred\x1b[0m $((20+22))\r');
    await program.shows('42');
    const env = access();
    const listed = await ailsd(['shell', 'list', '--json'], { env });
    const shell = JSON.parse(listed.stdout).items.at(-1);
    expect(shell).toMatchObject({ state: 'running', cols: 80, rows: 24 });
    const text = await ailsd(['shell', 'list'], { env });
    expect(text.stdout).toContain(shell.id);
    await eventually(async () => {
      const log = await ailsd(['shell', 'log', shell.id], { env });
      expect(log.stdout).not.toContain('\x1b');
      return log.code === 0 && log.stdout.includes('42');
    });
    const cast = await ailsd(['shell', 'log', shell.id, '--format', 'asciicast'], { env });
    expect(JSON.parse(cast.stdout.split('\n')[0] ?? '')).toMatchObject({ version: 2, width: 80 });
    const json = await ailsd(['shell', 'log', shell.id, '--json'], { env });
    expect(JSON.parse(json.stdout)).toHaveProperty('events');
    const killed = await ailsd(['shell', 'kill', shell.id], { env });
    expect(killed).toMatchObject({ code: 0, stderr: '' });
    expect(await program.ended()).not.toBe(0);
    const gone = await ailsd(['shell', 'kill', 'sh_nothing'], { env });
    expect(gone.code).toBe(3);
  });
});
