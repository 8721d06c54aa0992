/** Shells with real programs in them: bytes, flow, screens, ends, signals, and several who watch one. */
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock, systemClock } from '../../../src/base/clock.js';
import { createEmulator } from '../../../src/server/sandboxd/shell/emulator.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { attach, type BareClient, connect } from './support/bare-client.js';
import { SOAK } from './support/random.js';
import { type Served, serveSandbox } from './support/sandboxd.js';

let served: Served;
let url: string;
beforeAll(async () => {
  served = await serveSandbox({ shells: 2_000 });
  url = `${served.ws}/v1/shell/ws`;
});
afterAll(() => served[Symbol.asyncDispose]());

const RAW_CAT = ['/bin/sh', '-c', 'stty raw -echo; printf .; exec cat'];

/** A shell whose program gives back what it is sent, byte for byte. */
async function rawCat(start: object = {}, options: object = {}): Promise<BareClient> {
  const client = await attach(
    url,
    served.token(),
    { shell_id: 'new', client_id: 'raw', command: RAW_CAT, ...start },
    options,
  );
  await client.shows('.');
  return client;
}

describe('bytes', () => {
  it('a program that prints and ends at once has lost nothing', { timeout: 180_000 }, async () => {
    const rounds = SOAK ? 1_000 : 40;
    for (let round = 0; round < rounds; round++) {
      const command = ['/bin/sh', '-c', `stty raw; head -c 20480 /dev/zero | tr '\\0' x`];
      using client = await attach(url, served.token(), {
        shell_id: 'new',
        client_id: 'tail',
        command,
      });
      const exit = await client.frame('exit');
      expect(client.bytes().length).toBe(20_480);
      expect(exit).toMatchObject({ exit_code: 0, offset: 20_480 });
      await client.closed();
    }
    await eventually(() => served.daemon.view(served.id)?.open_shells === 0);
  });

  it.each([
    ['binary', true],
    ['JSON', false],
  ])(
    proves('every byte there is goes in and comes out as it was, as %s frames', 'PT-04'),
    async (_, binary) => {
      using client = await rawCat({}, { binary });
      const text = 'äöü→日本語🎈';
      const all = Buffer.concat([
        Buffer.from(Array.from({ length: 256 }, (_byte, at) => at)),
        Buffer.from(text),
        Buffer.from([0xe6, 0x97]),
        Buffer.from([0xff, 0xc3]),
      ]);
      let offset = 0;
      // Cut at every place, so that each character is in two frames once.
      for (let at = 0; at < all.length; at++) {
        const bytes = all.subarray(at, at + 1);
        client.stdin(offset, bytes);
        offset += bytes.length;
      }
      for (const size of [2, 3, 5, 7]) {
        for (let at = 0; at < all.length; at += size) {
          client.stdin(offset, all.subarray(at, at + size));
          offset += Math.min(size, all.length - at);
        }
      }
      await eventually(
        () => client.bytes().length === 1 + all.length * 5,
        () => `${client.bytes().length}`,
      );
      expect(client.bytes().subarray(1)).toEqual(
        Buffer.concat(Array.from({ length: 5 }, () => all)),
      );
    },
  );
});

describe('flow', () => {
  it(proves('one who does not acknowledge holds its own shell, and nobody else’s', 'PT-05'), {
    timeout: 120_000,
  }, async () => {
    const file = `${served.dir}/count`;
    const script = `stty raw -echo; i=0; while :; do i=$((i+1)); printf '%099d\\n' $i; [ $((i%100)) = 0 ] && echo $i > ${file}; done`;
    using neighbour = await rawCat({ client_id: 'neighbour' });
    const before = process.memoryUsage().rss;
    using reader = await attach(
      url,
      served.token(),
      { shell_id: 'new', client_id: 'stalled', command: ['/bin/bash', '-c', script] },
      { acks: false },
    );
    const count = (): number => Number(readOr(file, '0'));
    await eventually(() => count() > 0);
    // It stops by itself: nothing more is printed.
    let last = -1;
    await eventually(async () => {
      const was = last;
      last = count();
      await systemClock.sleep(SOAK ? 5_000 : 300);
      return last > 0 && was === count();
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(64e6);
    await echoes(neighbour, 100);
    // Coming back to it, it goes on, and nothing is missing.
    const stoppedAt = count();
    reader.ack();
    const timer = setInterval(() => reader.ack(), 5);
    await eventually(() => count() > stoppedAt + 2_000);
    clearInterval(timer);
    const text = reader.bytes().toString();
    const lines = text.split('\n').slice(0, -1);
    expect(lines.every((line, at) => Number(line) === at + 1)).toBe(true);
    reader.send({ type: 'signal', signal: 'SIGKILL' });
  });

  it(proves('an observer that does not read gets a screen later and slows nobody', 'PT-05'), {
    timeout: 60_000,
  }, async () => {
    using writer = await attach(url, served.token(), {
      shell_id: 'new',
      client_id: 'w',
      command: ['/bin/sh', '-c', 'stty raw -echo; printf .; read go; seq 1 900000; exec cat'],
    });
    await writer.shows('.');
    const { shell_id } = await writer.frame('ready');
    using observer = await attach(url, served.token({ scope: 'shell:ro', sub: 'usr_2' }), {
      shell_id,
      client_id: 'o',
    });
    observer.socket.pause();
    writer.stdin(0, 'go\n');
    await eventually(
      () => writer.output().includes('900000\n'),
      () => `${writer.bytes().length}`,
    );
    observer.socket.resume();
    await eventually(
      () =>
        observer.frames.filter(({ type }) => type === 'snapshot').length > 1 ||
        observer.output().endsWith('900000\n'),
    );
    observer.ack();
    await observer.until(({ type, screen }) => type === 'snapshot' && screen.includes('900000'));
    for (const frame of [
      { type: 'stdin', data: 'x' },
      { type: 'resize', cols: 5, rows: 5 },
      { type: 'signal', signal: 'SIGKILL' },
    ])
      observer.send(frame);
    await eventually(
      () => observer.frames.filter(({ code }) => code === 'CAPABILITY_DENIED').length === 3,
    );
    writer.stdin(3, 'still\n');
    await writer.shows('still\n');
    writer.send({ type: 'signal', signal: 'SIGKILL' });
  });

  it('Ctrl-C reaches a program that prints without end', async () => {
    using client = await attach(url, served.token(), {
      shell_id: 'new',
      client_id: 'c',
      command: ['/bin/sh', '-c', 'yes; true'],
    });
    await eventually(() => client.bytes().length > 1_000_000);
    const begin = performance.now();
    client.stdin(0, '\x03');
    await client.frame('exit');
    expect(performance.now() - begin).toBeLessThan(1_000);
  });

  it('input that a program does not read holds its sender, and nobody else', async () => {
    using other = await rawCat({ client_id: 'other' });
    using client = await attach(url, served.token(), {
      shell_id: 'new',
      client_id: 'big',
      command: ['/bin/sh', '-c', 'stty raw -echo; printf .; sleep 1; wc -c | tr -d " "; '],
    });
    await client.shows('.');
    const chunk = Buffer.alloc(64 * 1024, 'x');
    for (let at = 0; at < 32; at++) client.stdin(at * chunk.length, chunk);
    await echoes(other, 50);
    await eventually(() =>
      client.frames.some(({ type, offset }) => type === 'ack' && offset === 32 * chunk.length),
    );
    client.send({ type: 'signal', signal: 'SIGKILL' });
  });
});

describe('coming back', () => {
  it(proves('past the ring one gets the screen as it really is', 'PT-06'), {
    timeout: 60_000,
  }, async () => {
    await using own = await serveSandbox({ ringBytes: 256 * 1024 });
    const at = `${own.ws}/v1/shell/ws`;
    const script =
      'printf .; read go; seq 1 150000; printf "\\033]2;the title\\007\\033[31mred\\033[0m \\033[5;10r\\033[?25l\\033[?2004h\\033[?1000h\\033[?1006h\\033[7;3Hhere"; sleep 100';
    const first = await attach(at, own.token(), {
      shell_id: 'new',
      client_id: 'c',
      cols: 80,
      rows: 24,
      command: ['/bin/sh', '-c', script],
    });
    await first.shows('.');
    const { shell_id } = await first.frame('ready');
    const offset = first.bytes().length;
    using watcher = await attach(at, own.token({ scope: 'shell:ro' }), {
      shell_id,
      client_id: 'watch',
    });
    first.stdin(0, 'go\r');
    first.send({ type: 'close' });
    await first.closed();
    await eventually(
      () =>
        watcher.output().endsWith('here') ||
        watcher.frames.some(({ type, screen }) => type === 'snapshot' && screen.includes('here')),
      () => watcher.output().slice(-200),
    );
    using second = await attach(at, own.token(), {
      shell_id,
      client_id: 'c',
      offset,
      input_offset: 3,
    });
    const ready = await second.frame('ready');
    expect(ready.state).toBe('snapshot');
    const { screen, cols, rows } = await second.frame('snapshot');
    expect(screen).toContain('\x1b]2;the title\x1b\\');
    expect(screen.endsWith('\x1b[5;10r\x1b[7;7H\x1b[?1006h\x1b[?25l')).toBe(true);
    expect(screen).toContain('\x1b[?2004h');
    expect(screen).toContain('\x1b[?1000h');
    // A terminal that shows the snapshot looks like one that saw everything.
    const all = createEmulator({ cols, rows });
    const lines = Array.from({ length: 150_000 }, (_, line) => `${line + 1}\r\n`).join('');
    await all.write(
      Buffer.from(
        `.go\r\n${lines}\x1b]2;the title\x07\x1b[31mred\x1b[0m \x1b[5;10r\x1b[?25l\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[7;3Hhere`,
      ),
    );
    const shown = createEmulator({ cols, rows });
    await shown.write(Buffer.from(screen));
    expect(await shown.serialize(0)).toBe(await all.serialize(0));
    expect(screen).toBe(await all.serialize(0));
    second.send({ type: 'signal', signal: 'SIGKILL' });
  });

  it(
    proves(
      'an end that nobody saw is kept for who comes back, told once, and then the shell is gone',
      'PT-06',
    ),
    async () => {
      const clock = new ManualClock(Date.now());
      await using own = await serveSandbox({
        clock: {
          now: () => clock.now(),
          monotonic: () => performance.now(),
          sleep: systemClock.sleep,
        },
      });
      const at = `${own.ws}/v1/shell/ws`;
      const first = await attach(at, own.token(), {
        shell_id: 'new',
        client_id: 'c',
        command: ['/bin/sh', '-c', 'printf .; read go; printf bye; exit 7'],
      });
      await first.shows('.');
      const { shell_id } = await first.frame('ready');
      first.stdin(0, 'go\r');
      first.socket.terminate();
      await eventually(() => own.daemon.view(own.id)?.open_shells === 0);
      await clock.advance(60 * 60 * 1_000);
      using second = await attach(at, own.token(), { shell_id, client_id: 'c', offset: 1 });
      expect(await second.frame('exit')).toMatchObject({ exit_code: 7, origin: 'remote' });
      expect(second.output()).toContain('bye');
      await second.closed();
      using third = await connect(at);
      third.send({ type: 'auth', token: own.token() });
      await eventually(() => {
        third.frames.length = 0;
        third.send({ type: 'start', shell_id });
        return true;
      });
      expect(await third.frame('error')).toMatchObject({ code: 'NOT_FOUND' });
    },
  );
});

describe('signals and hygiene', () => {
  it(proves('keys and signals reach the foreground only, and Ctrl-S wedges nothing', 'PT-07'), {
    timeout: 30_000,
  }, async () => {
    using client = await attach(url, served.token(), {
      shell_id: 'new',
      command: ['/bin/bash', '--norc', '--noprofile', '-i'],
    });
    client.type("PS1='ready> '\r");
    await client.shows("'\r\n");
    client.type('sleep 1000; echo "interrupted $?"\r');
    await systemClock.sleep(300);
    client.type('\x03');
    await client.shows('^C');
    client.type('sleep 999\r');
    await systemClock.sleep(300);
    client.type('\x1a');
    await client.shows('Stopped');
    client.type('jobs; kill %1; fg; echo back\r');
    await client.shows('back');
    // Stopped while a program runs, the terminal goes on by Ctrl-C as it does everywhere.
    client.type('sleep 997\r');
    await systemClock.sleep(300);
    client.type('\x13');
    client.type('\x03');
    await eventually(() => client.output().split('^C').length === 3);
    await client.shows('ready> ');
    client.type('echo "un"wedged\r');
    await client.shows('unwedged');
    client.type('sleep 998\r');
    await systemClock.sleep(300);
    client.send({ type: 'signal', signal: 'SIGTERM' });
    await client.shows('Terminated');
    client.type('echo "ali"ve\r');
    await client.shows('alive');
    for (const [cols, rows] of [
      [0, 24],
      [-1, 24],
      [1e9, 24],
      ['80', 24],
      [80, null],
    ] as const)
      client.send({ type: 'resize', cols, rows });
    await eventually(
      () => client.frames.filter(({ code }) => code === 'INVALID_REQUEST').length === 5,
    );
    client.type('exit\r');
    await client.frame('exit');
  });

  it(proves('shells that come and go leave nothing behind', 'PT-07'), {
    timeout: 300_000,
  }, async () => {
    const rounds = SOAK ? 500 : 45;
    await using own = await serveSandbox();
    const at = `${own.ws}/v1/shell/ws`;
    const descriptors = ptmx();
    for (let round = 0; round < rounds; round++) {
      const command = ['/bin/sh', '-c', 'sleep 1000 & printf .; read x; kill $!; exit 3'];
      using client = await attach(at, own.token(), {
        shell_id: 'new',
        client_id: `h${round}`,
        command,
      });
      await client.shows('.');
      const { shell_id } = await client.frame('ready');
      if (round % 3 === 0) client.stdin(0, 'x\r');
      else if (round % 3 === 1)
        expect(await http('DELETE', `/v1/shells/${shell_id}`, own)).toMatchObject({ status: 204 });
      else {
        client.socket.terminate();
        expect(await http('DELETE', `/v1/shells/${shell_id}`, own)).toMatchObject({ status: 204 });
        continue;
      }
      await client.frame('exit');
      await client.closed();
    }
    await eventually(() => own.daemon.view(own.id)?.open_shells === 0);
    await eventually(
      () => ptmx() <= descriptors,
      () => `${ptmx()} terminals, ${descriptors} before`,
    );
    await eventually(
      () => childrenOf(own.id).length === 0,
      () => JSON.stringify(childrenOf(own.id)),
    );
  });

  it('no program inherits the terminal of another', async () => {
    using first = await rawCat({ client_id: 'a' });
    using second = await attach(url, served.token(), {
      shell_id: 'new',
      command: ['/bin/sh', '-c', 'ls -l /proc/self/fd; echo listed'],
    });
    await second.frame('exit');
    expect(second.output()).toContain('listed');
    expect(second.output()).not.toContain('ptmx');
    first.send({ type: 'signal', signal: 'SIGKILL' });
  });
});

describe('several at one shell', () => {
  it('a human takes over from an agent at once, who is told and may ask for it back', async () => {
    const agentToken = served.token({ act: { sub: 'agent_1' } });
    using agent = await attach(url, agentToken, {
      shell_id: 'new',
      client_id: 'agent',
      command: ['/bin/cat'],
    });
    const { shell_id, role } = await agent.frame('ready');
    expect(role).toBe('writer');
    using human = await attach(url, served.token(), { shell_id, client_id: 'human' });
    expect((await human.frame('ready')).role).toBe('writer');
    expect(await agent.frame('control')).toEqual({
      type: 'control',
      event: 'taken',
      role: 'observer',
      actor: 'human',
      subject: 'usr_1',
    });
    agent.stdin(0, 'no\r');
    expect(await agent.frame('error')).toMatchObject({ code: 'FORBIDDEN' });
    agent.send({ type: 'control', action: 'take' });
    await agent.until(({ event }) => event === 'refused');
    agent.send({ type: 'control', action: 'request' });
    expect(await human.until(({ event }) => event === 'requested')).toMatchObject({
      actor: 'agent',
      subject: 'agent_1',
      role: 'writer',
    });
    human.send({ type: 'control', action: 'release' });
    expect(await agent.until(({ event }) => event === 'granted')).toMatchObject({ role: 'writer' });
    agent.stdin(0, 'yes\r');
    await human.shows('yes\r\nyes');
    const presence = await human.until(
      ({ type, viewers }) => type === 'presence' && viewers.length === 2,
    );
    expect(presence.viewers.map(({ actor }: { actor: string }) => actor).sort()).toEqual([
      'agent',
      'human',
    ]);
  });

  it('another person only watches until the writer lets go', async () => {
    using writer = await attach(url, served.token(), {
      shell_id: 'new',
      client_id: 'a',
      command: ['/bin/cat'],
    });
    const { shell_id } = await writer.frame('ready');
    using other = await attach(url, served.token({ sub: 'usr_2' }), { shell_id, client_id: 'b' });
    expect((await other.frame('ready')).role).toBe('observer');
    other.stdin(0, 'no\r');
    expect(await other.frame('error')).toMatchObject({ code: 'FORBIDDEN' });
    writer.send({ type: 'close' });
    await writer.closed();
    other.stdin(0, 'yes\r');
    await other.shows('yes\r\nyes');
  });

  it('the writer’s window decides; others are told, and observers never resize', async () => {
    using writer = await attach(url, served.token(), {
      shell_id: 'new',
      client_id: 'a',
      cols: 90,
      rows: 20,
      command: RAW_CAT,
    });
    const { shell_id } = await writer.frame('ready');
    using observer = await attach(url, served.token({ sub: 'usr_2' }), {
      shell_id,
      observe: true,
      cols: 10,
      rows: 10,
    });
    expect(await observer.frame('ready')).toMatchObject({ cols: 90, rows: 20, role: 'observer' });
    for (let cols = 91; cols <= 120; cols++) writer.send({ type: 'resize', cols, rows: 21 });
    await observer.until(
      ({ type, cols, rows }) => type === 'resize' && cols === 120 && rows === 21,
    );
    expect(observer.frames.filter(({ type }) => type === 'resize').length).toBeLessThan(6);
    expect(writer.frames.filter(({ type }) => type === 'resize')).toEqual([]);
  });
});

describe('over HTTP', () => {
  it('shells are listed, recorded, and ended', async () => {
    await using own = await serveSandbox({ recording: true });
    const at = `${own.ws}/v1/shell/ws`;
    const token = own.token();
    using client = await attach(at, token, {
      shell_id: 'new',
      client_id: 'c',
      command: ['/bin/sh', '-c', 'echo $SECRET; exec cat'],
      env: { SECRET: token },
    });
    const { shell_id } = await client.frame('ready');
    await client.shows(`${token}\r\n`);
    client.stdin(0, 'hello\r');
    await client.shows('hello\r\nhello');
    const list = await http('GET', '/v1/shells', own);
    expect(JSON.parse(list.text).items).toMatchObject([
      {
        id: shell_id,
        state: 'running',
        viewers: [{ actor: 'human', role: 'writer', subject: 'usr_1' }],
      },
    ]);
    const log = await http('GET', `/v1/shells/${shell_id}/log`, own);
    const [head, ...events] = log.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(head).toMatchObject({ version: 2, width: 80, height: 24 });
    expect(events.some(([, code, text]) => code === 'm' && text === 'input by human usr_1')).toBe(
      true,
    );
    expect(events.some(([, code, text]) => code === 'i' && text === '*****\r')).toBe(true);
    const output = events
      .filter(([, code]) => code === 'o')
      .map(([, , text]) => text)
      .join('');
    expect(output).toContain('hello\r\nhello');
    expect(output).toContain('[secret]');
    expect(log.text).not.toContain(token.slice(-20));
    expect((await http('DELETE', `/v1/shells/${shell_id}`, own)).status).toBe(204);
    expect(await client.frame('exit')).toMatchObject({ origin: 'ailsd' });
    expect((await http('GET', '/healthz', own)).text).toBe('{"status":"ok"}');
  });
});

/** Types so many keys and waits for each; how quickly is weighed where the daemon is a process of its own. */
async function echoes(client: BareClient, keys: number): Promise<void> {
  for (let key = 0; key < keys; key++) {
    const seen = client.bytes().length;
    client.type('k');
    await eventually(() => client.bytes().length > seen);
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise;
  }
}

function ptmx(): number {
  return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).includes('ptmx')).length;
}

function linkOf(fd: string): string {
  try {
    return readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1').includes('tty-index') ? 'ptmx' : '';
  } catch {
    return '';
  }
}

/** Processes below this one, zombies too, but for those a test runner keeps. */
function childrenOf(id: string): string[] {
  return readdirSync('/proc').flatMap((name) => {
    const stat = /^\d+$/.test(name) ? readOr(`/proc/${name}/stat`, '') : '';
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const isZombie = Number(parent) === process.pid && state === 'Z';
    const isOurs = isZombie || readOr(`/proc/${name}/environ`, '').includes(id);
    return isOurs ? [`${name} ${state} ${stat.slice(0, 40)}`] : [];
  });
}

function http(
  method: string,
  path: string,
  at: Served = served,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${at.token()}` };
    const sent = request(`${at.http}${path}`, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end();
  });
}
