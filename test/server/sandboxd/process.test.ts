/** The daemon as a process: what floods, noise and stalled readers cost it, and that it ends cleanly. */
import { connect as connectTcp } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
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
const CAT = ['/bin/sh', '-c', 'stty raw -echo; printf .; exec cat'];

it(proves('a flood of silent peers costs little, and nothing when it is over', 'WS-02'), {
  timeout: 120_000,
}, async () => {
  using user = await attach(daemon.url, daemon.token(), {
    shell_id: 'new',
    client_id: 'u',
    command: CAT,
  });
  await user.shows('.');
  const before = daemon.memoryBytes();
  const descriptors = daemon.descriptors();
  const times: number[] = [];
  let most = 0;
  let refused = 0;
  const until = performance.now() + (SOAK ? 60_000 : 3_000);
  const silent = new Set<WebSocket>();
  const half = Array.from({ length: SOAK ? 1_000 : 300 }, () => {
    const socket = connectTcp(daemon.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /s/x HTTP/1.1\r\nHost: x\r\nX-Half');
    return socket;
  });
  const renew = (): void => {
    if (performance.now() > until) return;
    const socket = new WebSocket(daemon.url);
    silent.add(socket);
    socket.on('error', () => undefined);
    socket.on('unexpected-response', (_request, response) => {
      if (response.statusCode === 503 && response.headers['retry-after'] === '1') refused += 1;
      response.destroy();
      socket.terminate();
    });
    socket.on('close', () => {
      silent.delete(socket);
      setTimeout(renew, 1_000);
    });
  };
  for (let at = 0; at < (SOAK ? 1_000 : 200); at++) renew();
  const timed = performance.now() + 1_000;
  while (performance.now() < until) {
    const ms = await echo(user);
    // Opening them all at once keeps this process busy, not the other: only then the clock tells something.
    if (performance.now() > timed) times.push(ms);
    most = Math.max(most, daemon.memoryBytes());
    await systemClock.sleep(10);
  }
  for (const socket of silent) socket.terminate();
  for (const socket of half) socket.destroy();
  expect(refused).toBeGreaterThan(100);
  expect(times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]).toBeLessThan(50);
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
  using user = await attach(daemon.url, daemon.token(), {
    shell_id: 'new',
    client_id: 'u2',
    command: CAT,
  });
  await user.shows('.');
  const before = daemon.memoryBytes();
  using reader = await attach(
    daemon.url,
    daemon.token(),
    { shell_id: 'new', client_id: 'r', command: ['/usr/bin/yes'] },
    { acks: false },
  );
  reader.socket.pause();
  const times: number[] = [];
  const until = performance.now() + (SOAK ? 60_000 : 3_000);
  while (performance.now() < until) {
    times.push(await echo(user));
    await systemClock.sleep(10);
  }
  expect(times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]).toBeLessThan(50);
  // Beyond its ring of 4 MiB.
  expect(daemon.memoryBytes() - before).toBeLessThan(20 * 2 ** 20);
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

async function echo(client: BareClient): Promise<number> {
  const seen = client.bytes().length;
  const begin = performance.now();
  client.type('k');
  while (client.bytes().length === seen) await new Promise((resolve) => setImmediate(resolve));
  return performance.now() - begin;
}
