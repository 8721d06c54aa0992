/** What every sandbox made of namespaces must hold, whoever the daemon runs as. */

import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { spawn as spawnPty } from '@lydell/node-pty';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Launcher } from '../../../../src/server/sandboxd/isolation/launcher.js';
import { eventually } from '../../../support/eventually.js';
import {
  openSandboxes,
  processesWith,
  run,
  runScript,
  type Sandboxes,
  start,
} from './sandboxes.js';

export function isolationSuite(who: string, prepare: () => void): void {
  describe(`a sandbox of namespaces, its daemon ${who}`, () => {
    let sandboxes: Sandboxes;
    let shared: Launcher;

    beforeAll(async () => {
      prepare();
      sandboxes = await openSandboxes();
      shared = await sandboxes.open();
    });
    afterAll(() => sandboxes[Symbol.asyncDispose]());

    it('says what it enforces', () => {
      const { report } = sandboxes.isolation;
      expect(report).toMatchObject({ kind: 'namespaces', egress_control: true, pid_limit: true });
      if (!report.memory_limit) expect(report.reason).toMatch(/control groups/);
    });

    describe.each(['shell', 'command'] as const)('a %s', (kind) => {
      it('runs under another name than its daemon, without any privilege', async () => {
        const script =
          'id -un; pwd; echo "$HOME"; grep -E "^(NoNewPrivs|CapEff|CapPrm|CapInh|CapAmb):" /proc/self/status; touch made';
        const { code, out, err } = await runScript(shared, script, { kind });
        expect({ code, err }).toEqual({ code: 0, err: '' });
        expect(out.split('\n').slice(0, 3)).toEqual(['sandbox', '/workspace', '/home/sandbox']);
        expect(out).toMatch(/NoNewPrivs:\t1/);
        expect(out.match(/Cap(?:Eff|Prm|Inh|Amb):\t0{16}/g)).toHaveLength(4);
        const made = await stat(join(shared.workspace, 'made'));
        expect(made.uid).toBe(shared.owner?.uid ?? process.getuid?.());
        if (process.getuid?.() === 0) expect(made.uid).toBeGreaterThan(0);
      });

      it('finds nothing of the host: no file, process, variable, descriptor or folder name', async () => {
        const secret = `host-secret-${Math.random()}`;
        await writeFile(join(sandboxes.dir, 'access.json'), secret);
        process.env['AILSD_TEST_SECRET'] = secret;
        const host = await start(shared, ['sleep', '60'], { env: {} });
        const script = `
          env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
          cat /etc/shadow ${sandboxes.dir}/access.json /proc/1/root/etc/shadow 2>&1
          ls -d /root ${sandboxes.dir} /var/lib/* /sys /opt /mnt /srv /boot 2>/dev/null
          ls -l /proc/self/fd | grep -v '/proc/' | wc -l; ls /home; cat /proc/self/mountinfo | wc -l
          ls -l /proc/*/fd 2>/dev/null | grep -E '/dev/p[t]' `;
        // A terminal of somebody else is open in the daemon meanwhile.
        const other = spawnPty('sleep', ['60'], { cwd: '/', env: {} });
        try {
          const { out, err } = await runScript(shared, script, { kind, env: { ONLY: 'mine' } });
          expect(out).not.toContain(secret);
          expect(out).not.toContain('root:$');
          expect(out).toContain('ONLY=mine');
          expect(out).toMatch(/shadow: No such file/);
          expect(out).not.toMatch(/^\/(root|sys|opt|mnt|srv|boot|var\/lib)/m);
          expect(out).not.toMatch(/-> \/dev\/pt/);
          // A total line, and 0, 1 and 2.
          expect(out).toMatch(/^4$/m);
          expect(err).toBe('');
        } finally {
          delete process.env['AILSD_TEST_SECRET'];
          other.kill('SIGKILL');
          await shared.signal(host.pid, 'SIGKILL');
          await host.ended;
        }
      });

      it('gets its arguments and environment unchanged', async () => {
        const long = 'x'.repeat(128 * 1024 - 1);
        const args = ['', ' a  b ', '$(id)', '`id`', "'", '"', '-rf', '--', 'A=B', '\n', '*', long];
        const { out } = await run(shared, ['printf', '%s|', ...args], { kind });
        expect(out).toBe(`${args.join('|')}|`);
        const env = { A: ' b\n$(id) "\'', EMPTY: '', PATH: '/workspace:/usr/bin:/bin' };
        await writeFile(
          join(shared.workspace, 'odd=name'),
          '#!/bin/sh\necho "$A"; echo "$PATH"\n',
          {
            mode: 0o755,
          },
        );
        const named = await run(shared, ['odd=name'], { kind, env });
        expect(named).toMatchObject({ code: 0, out: `${env.A}\n${env.PATH}\n`, err: '' });
      });

      it('alone sees variables that would change any program', async () => {
        const env = {
          LD_PRELOAD: '/workspace/no.so',
          BASH_ENV: '/workspace/evil',
          ENV: '/workspace/evil',
          NODE_OPTIONS: '--require /workspace/no',
          PATH: '/workspace',
        };
        await writeFile(join(shared.workspace, 'evil'), 'echo evil >&2\n');
        const { code, err } = await run(shared, ['/usr/bin/true'], { kind, env });
        expect(code).toBe(0);
        // The loader complains once for each program it starts under it.
        expect(err.match(/no\.so/g)).toHaveLength(1);
        expect(err).not.toContain('evil');
      });

      it('says 127 of what is not there and 126 of what is no program', async () => {
        expect((await run(shared, ['no-such-program'], { kind })).code).toBe(127);
        expect((await run(shared, ['/etc/passwd'], { kind })).code).toBe(126);
      });

      it('starts in the folder it was told, or not at all', async () => {
        await mkdir(join(shared.workspace, 'in', 'side'), { recursive: true });
        await symlink('/etc', join(shared.workspace, `to-etc-${kind}`));
        await symlink(sandboxes.dir, join(shared.workspace, `to-host-${kind}`));
        const pwd = async (cwd: string) => (await run(shared, ['pwd', '-P'], { kind, cwd })).out;
        expect(await pwd('in/side')).toBe('/workspace/in/side\n');
        expect(await pwd('/usr/lib')).toBe('/usr/lib\n');
        expect(await pwd(`to-etc-${kind}`)).toBe('/etc\n');
        for (const cwd of ['nowhere', `to-host-${kind}`, '/etc/passwd', sandboxes.dir]) {
          await expect(pwd(cwd)).rejects.toMatchObject({ code: 'NOT_FOUND' });
        }
      });
    });

    it("passes a command's end on exactly: every kind of status, and every signal", async () => {
      for (const code of [0, 1, 2, 125, 126, 127, 128, 129, 130, 137, 141, 143, 254, 255]) {
        expect(await runScript(shared, `exit ${code}`)).toMatchObject({ code, signal: null });
      }
      const names = ['SIGHUP', 'SIGINT', 'SIGABRT', 'SIGKILL', 'SIGSEGV', 'SIGPIPE', 'SIGTERM'];
      for (const signal of names) {
        const script = `kill -${signal.slice(3)} $$`;
        expect(await runScript(shared, script)).toMatchObject({ code: null, signal, err: '' });
      }
    });

    it('sends a signal to the program, and to nobody who waits for it', async () => {
      const script = 'trap "echo got; exit 5" TERM USR1; echo on; while :; do sleep 0.01; done';
      for (const signal of ['SIGTERM', 'SIGUSR1'] as const) {
        const running = await start(shared, ['sh', '-c', script]);
        await running.says('on');
        expect(await shared.signal(running.pid, signal)).toBe(true);
        expect(await running.ended).toMatchObject({ code: 5, out: 'on\ngot\n' });
        expect(await shared.signal(running.pid, signal)).toBe(false);
      }
      const plain = await start(shared, ['sleep', '60']);
      await shared.signal(plain.pid, 'SIGINT');
      expect(await plain.ended).toMatchObject({ code: null, signal: 'SIGINT' });
    });

    it('ends the whole tree of a command with it, however its parts hid', async () => {
      const mark = `${900_000 + Math.floor(Math.random() * 99_999)}`;
      const hide = `
        setsid nohup sleep ${mark} >/dev/null 2>&1 &
        (setsid sh -c 'trap "" TERM HUP; (sleep ${mark}; echo late >/workspace/late) & sleep ${mark}' &)
        sleep ${mark} & `;
      const done = await runScript(shared, `${hide} echo over; exit 3`);
      expect(done).toMatchObject({ code: 3, out: 'over\n' });
      await eventually(async () => (await processesWith(mark)) === 0);
      const running = await start(shared, ['sh', '-c', `${hide} echo on; wait`]);
      await running.says('on');
      await eventually(async () => (await processesWith(mark)) >= 4);
      await shared.signal(running.pid, 'SIGKILL');
      expect(await running.ended).toMatchObject({ signal: 'SIGKILL' });
      await eventually(async () => (await processesWith(mark)) === 0);
    });

    it('ends everything at once, and can be used again', async () => {
      const launcher = await sandboxes.open();
      const mark = `${900_000 + Math.floor(Math.random() * 99_999)}`;
      const script = `
        for i in 1 2 3; do setsid nohup sleep ${mark} >/dev/null 2>&1 & done
        (setsid sh -c '(setsid sleep ${mark} &) ; sleep ${mark}' >/dev/null 2>&1 &)
        echo on; sleep ${mark}`;
      const shell = await start(launcher, ['sh', '-c', script], { kind: 'shell' });
      const command = await start(launcher, ['sh', '-c', script]);
      await shell.says('on');
      await command.says('on');
      await eventually(async () => (await processesWith(mark)) >= 10);
      await launcher.killAll(AbortSignal.timeout(10_000));
      expect(await processesWith(mark)).toBe(0);
      await shell.ended;
      await command.ended;
      expect(await run(launcher, ['echo', 'again'])).toMatchObject({ code: 0, out: 'again\n' });
    });

    it('comes back when a program inside has ended what holds it open', async () => {
      const launcher = await sandboxes.open();
      await runScript(launcher, 'kill -9 2; sleep 60', { kind: 'shell' });
      expect(await run(launcher, ['echo', 'again'])).toMatchObject({ code: 0, out: 'again\n' });
    });

    it('shows one shell what another runs, and hides one sandbox from the other', async () => {
      const neighbour = await sandboxes.open();
      const running = await start(shared, ['sh', '-c', 'echo on; sleep 61'], { kind: 'shell' });
      await running.says('on');
      const seen = await runScript(shared, 'ps axo cmd', { kind: 'shell' });
      expect(seen.out).toContain('sleep 61');
      expect((await runScript(neighbour, 'ps axo cmd', { kind: 'shell' })).out).not.toContain(
        'sleep 61',
      );
      await runScript(
        shared,
        'echo mine >/tmp/mine; echo mine >/workspace/mine; echo mine >/dev/shm/mine',
      );
      const looked = await runScript(neighbour, 'ls /tmp /workspace /dev/shm "$HOME"');
      expect(looked.out).not.toContain('mine');
      await runScript(shared, 'pkill -f "sleep 61"', { kind: 'shell' });
      await running.ended;
    });

    it('cannot be written to outside of its own folders', async () => {
      const script = `for at in / /usr /usr/bin /etc /dev /var /run /proc/sys/kernel /home; do
        (echo x >$at/written) 2>/dev/null && echo "$at"; done
        for at in /workspace /tmp /var/tmp "$HOME" /dev/shm; do (echo x >$at/written) || echo "not $at"; done`;
      expect(await runScript(shared, script)).toMatchObject({ code: 0, out: '', err: '' });
    });

    it('reaches nobody in internal-only, not even this host', async () => {
      const server = createServer((socket) => socket.end('hello\n'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = server.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      const connect = (host: string, at: number | undefined, kind = 'tcp') =>
        `timeout 2 bash -c 'exec 3<>/dev/${kind}/${host}/${at} && echo x >&3 && cat <&3' 2>/dev/null && echo reached`;
      const inside = await sandboxes.open({ environment: 'internal-only' });
      for (const kind of ['shell', 'command'] as const) {
        const attempts = [
          connect('127.0.0.1', port),
          connect('169.254.169.254', 80),
          connect('1.1.1.1', 53, 'udp'),
          connect('2606:4700:4700::1111', 443),
          connect('10.0.0.1', 22),
        ];
        const { out } = await runScript(
          inside,
          `${attempts.join('\n')}\ncat /proc/net/dev | tail -n +3`,
          {
            kind,
          },
        );
        expect(out).not.toMatch(/reached|hello/);
        expect(out.trim().split('\n')).toHaveLength(1);
        expect(out).toMatch(/^ *lo:/);
      }
      // The same attempt from where it is allowed: so it was the wall that held.
      expect((await runScript(shared, connect('127.0.0.1', port))).out).toContain('hello');
      server.close();
    });

    it('holds a fork bomb, and a neighbour goes on', async () => {
      const launcher = await sandboxes.open({ pids: 40 });
      const mark = `${900_000 + Math.floor(Math.random() * 99_999)}`;
      const bomb = `bomb() { sleep ${mark} & bomb & bomb; }; echo on; bomb 2>/dev/null; wait`;
      const running = await start(launcher, ['bash', '-c', bomb]);
      await running.says('on');
      await eventually(async () => (await processesWith(mark)) > 5);
      const before = performance.now();
      expect(await run(shared, ['echo', 'fine'])).toMatchObject({ code: 0, out: 'fine\n' });
      expect(performance.now() - before).toBeLessThan(5_000);
      expect(await processesWith(mark)).toBeLessThanOrEqual(45);
      await launcher.killAll(AbortSignal.timeout(10_000));
      expect(await processesWith(mark)).toBe(0);
      await running.ended;
    });

    it('holds a memory hog, and tells where it can', async () => {
      const launcher = await sandboxes.open({ memoryBytes: 64 * 1024 * 1024 });
      const before = await launcher.outOfMemoryKills();
      const ended = await run(launcher, ['tail', '/dev/zero']);
      expect(ended.code).not.toBe(0);
      const { memory_limit: isLimited } = sandboxes.isolation.report;
      if (isLimited) {
        expect(ended.signal).toBe('SIGKILL');
        expect(await launcher.outOfMemoryKills()).toBe((before ?? 0) + 1);
      } else {
        expect(ended.err).toMatch(/memory/);
        expect(before).toBeUndefined();
      }
      expect((await run(launcher, ['echo', 'fine'])).out).toBe('fine\n');
    });

    it('gives a terminal with job control, and survives Ctrl-C of a program that is no shell', async () => {
      const bash = await inTerminal(shared, ['bash', '--norc', '-i']);
      await bash.shows('$ ');
      bash.type('echo $((6*7)); cat\r');
      await bash.shows('42');
      bash.type('one\r');
      // The terminal's echo, and the program's.
      await bash.shows('one', 2);
      bash.type('\x1a');
      await bash.shows('Stopped');
      bash.type('fg\r');
      await bash.shows('cat\r\n', 3);
      bash.type('two\n');
      await bash.shows('two', 2);
      bash.type('\x03');
      await bash.shows('$ ', 3);
      bash.type('jobs; echo end-$?; exit 7\n');
      await bash.shows('end-0');
      expect(await bash.ended).toMatchObject({ exitCode: 7, signal: 0 });

      const plain = await inTerminal(shared, [
        'sh',
        '-c',
        'trap "echo caught" INT; echo on; read x; echo "read $x"; exit 4',
      ]);
      await plain.shows('on\r\n');
      plain.type('\x03');
      await plain.shows('caught');
      plain.type('word\r');
      expect(await plain.ended).toMatchObject({ exitCode: 4 });

      const killed = await inTerminal(shared, ['sh', '-c', 'echo on; exec sleep 100']);
      await killed.shows('on');
      expect(await shared.signal(killed.pid, 'SIGTERM')).toBe(true);
      expect(await killed.ended).toMatchObject({ exitCode: 143 });
    });

    it('starts a program within a moment', async () => {
      const times: Record<string, number[]> = { shell: [], command: [], open: [] };
      for (let round = 0; round < 9; round += 1) {
        for (const kind of ['shell', 'command'] as const) {
          const before = performance.now();
          await run(shared, ['true'], { kind });
          times[kind]?.push(performance.now() - before);
        }
        const before = performance.now();
        const launcher = await sandboxes.open();
        await launcher.launch({ argv: ['true'], env: {}, kind: 'shell' });
        times['open']?.push(performance.now() - before);
        await launcher[Symbol.asyncDispose]();
      }
      const medians = Object.entries(times).map(
        ([name, all]) => [name, Math.round(all.sort((a, b) => a - b)[4] ?? 0)] as const,
      );
      process.stderr.write(
        `median ms, daemon ${who}: ${JSON.stringify(Object.fromEntries(medians))}\n`,
      );
      for (const [, median] of medians) expect(median).toBeLessThan(500);
    });
  });
}

async function inTerminal(launcher: Launcher, argv: readonly [string, ...string[]]) {
  const { file, args, env, cwd } = await launcher.launch({
    argv,
    env: { TERM: 'xterm', PS1: '$ ' },
    kind: 'shell',
  });
  const pty = spawnPty(file, [...args], { env, cwd, cols: 80, rows: 24 });
  let said = '';
  pty.onData((data) => {
    said += data;
  });
  const ended = new Promise<{ exitCode: number; signal?: number | undefined }>((resolve) => {
    pty.onExit(resolve);
  });
  return {
    pid: pty.pid,
    ended,
    type: (text: string) => pty.write(text),
    shows: (text: string, times = 1) =>
      eventually(
        () => said.split(text).length > times,
        () => `it does not show ${text}: ${JSON.stringify(said)}`,
      ),
  };
}
