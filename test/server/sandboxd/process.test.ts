/** The daemon as a process: what floods, noise and stalled readers cost it, and that it ends cleanly. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { attach, type BareClient, connect } from './support/bare-client.js';
import { noise } from './support/noise.js';
import { SOAK, seededRandom } from './support/random.js';
import { type SandboxdProcess, spawnSandboxd } from './support/sandboxd-process.js';

let daemon: SandboxdProcess;
beforeAll(async () => {
  daemon = await spawnSandboxd();
});
afterAll(() => daemon[Symbol.asyncDispose]());

const MB = 1e6;
const FLOOD = new URL('support/flood.mjs', import.meta.url).pathname;
const CAT = ['/bin/sh', '-c', 'stty raw -echo; printf .; exec cat'];

it(proves('a flood of silent peers costs little, and nothing when it is over', 'WS-02'), {
  timeout: 120_000,
}, async () => {
  using user = await typist(daemon);
  await using other = await spawnSandboxd();
  using control = await typist(other);
  const before = daemon.memoryBytes();
  const descriptors = daemon.descriptors();
  const flood = spawn(process.execPath, [FLOOD, daemon.url, SOAK ? '1000' : '200']);
  const { most, ...times } = await typeBeside(user, control, SOAK ? 60_000 : 4_000);
  const counted = once(flood.stdout, 'data');
  flood.stdin.end('end\n');
  expect(Number(String(await counted))).toBeGreaterThan(100);
  expectQuick(times);
  expect(most - before).toBeLessThan(50 * MB);
  await eventually(
    () => daemon.descriptors() <= descriptors,
    () => `${daemon.descriptors()} of ${descriptors}`,
  );
});

it(proves('random frames cost nothing that stays', 'WS-04'), { timeout: 300_000 }, async () => {
  const random = seededRandom();
  const round = async (frames: number): Promise<void> => {
    for (let at = 0; at < frames / 2; at += 16) {
      const clients = await Promise.all(Array.from({ length: 16 }, () => connect(daemon.url)));
      for (const client of clients) client.socket.send(noise(random));
      for (const client of clients)
        expect((await client.closed()).code, `seed ${random.seed}`).toBe(1008);
    }
    using known = await connect(daemon.url);
    known.send({ type: 'auth', token: daemon.token() });
    await known.frame('auth_ok');
    for (let at = 0; at < frames / 2; at++) {
      known.socket.send(noise(random));
      if (at % 200 === 199) {
        known.send({ type: 'ping', id: at });
        await known.until((frame) => frame.type === 'pong' && frame.id === at);
        known.frames.length = 0;
      }
    }
  };
  await round(2_000);
  const before = daemon.memoryBytes();
  await round(SOAK ? 100_000 : 3_000);
  await eventually(
    () => daemon.memoryBytes() - before < 32 * MB,
    () => `${(daemon.memoryBytes() - before) / MB} MB more`,
  );
  expect(daemon.log().includes('"a frame failed"'), `seed ${random.seed}`).toBe(false);
});

it(proves('a reader that stalls costs its shell at most 16 MiB', 'PT-05'), {
  timeout: 120_000,
}, async () => {
  using user = await typist(daemon);
  await using other = await spawnSandboxd();
  using control = await typist(other);
  const before = daemon.memoryBytes();
  using reader = await attach(
    daemon.url,
    daemon.token(),
    { shell_id: 'new', client_id: 'r', command: ['/usr/bin/yes'] },
    { acks: false },
  );
  reader.socket.pause();
  const { most, ...times } = await typeBeside(user, control, SOAK ? 60_000 : 3_000);
  expectQuick(times);
  // Beyond its ring of 4 MiB.
  expect(most - before).toBeLessThan(20 * 2 ** 20);
  reader.socket.resume();
  const seen = reader.bytes().length;
  reader.ack();
  const timer = setInterval(() => reader.ack(), 5);
  await eventually(() => reader.bytes().length > seen + 4 * 2 ** 20);
  clearInterval(timer);
  let at = 0;
  for (const { offset, data } of reader.chunks) {
    expect(offset).toBe(at);
    at += data.length;
  }
  reader.send({ type: 'signal', signal: 'SIGKILL' });
});

it('asked to end, it ends cleanly with shells open', async () => {
  using user = await attach(daemon.url, daemon.token(), { shell_id: 'new', command: CAT });
  expect(await daemon.end()).toBe(0);
  expect(await user.closed()).toEqual({ code: 1001, reason: 'Server going away' });
});

/** A shell that gives back what is typed. */
async function typist(at: SandboxdProcess): Promise<BareClient> {
  const client = await attach(at.url, at.token(), { shell_id: 'new', command: CAT });
  await client.shows('.');
  return client;
}

interface Times {
  readonly user: number[];
  readonly control: number[];
}

/** Types at both in turn: the control is a daemon of its own that has nothing else to do, and tells what this machine can do now. */
async function typeBeside(
  user: BareClient,
  control: BareClient,
  ms: number,
): Promise<Times & { readonly most: number }> {
  const times: Times = { user: [], control: [] };
  let most = 0;
  const until = performance.now() + ms;
  while (performance.now() < until) {
    times.user.push(await echo(user));
    times.control.push(await echo(control));
    most = Math.max(most, daemon.memoryBytes());
    await systemClock.sleep(10);
  }
  return { ...times, most };
}

/** 50 ms, or on a machine that is too busy for that, twice what the control took. */
function expectQuick({ user, control }: Times): void {
  const p99 = (times: number[]): number =>
    times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
  expect(p99(user)).toBeLessThan(Math.max(50, 2 * p99(control)));
}

async function echo(client: BareClient): Promise<number> {
  const seen = client.bytes().length;
  const begin = performance.now();
  client.type('k');
  while (client.bytes().length === seen) await new Promise((resolve) => setImmediate(resolve));
  return performance.now() - begin;
}
