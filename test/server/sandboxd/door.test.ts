/** The front door, met by a client that knows no SDK: who gets in, how long it may take, and how it is told no. */

import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { systemClock } from '../../../src/base/clock.js';
import { allows, CAPABILITIES, type Capability } from '../../../src/protocol/capabilities.js';
import { DATAPLANE_ROUTES } from '../../../src/protocol/routes/dataplane.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { attach, bareClient, connect } from './support/bare-client.js';
import { noise } from './support/noise.js';
import { SOAK, seededRandom } from './support/random.js';
import { claimsOf, forge, type Served, serveSandbox } from './support/sandboxd.js';

let served: Served;
let url: string;
beforeAll(async () => {
  served = await serveSandbox({ origins: ['https://app.example'] });
  url = `${served.ws}/v1/shell/ws`;
});
afterAll(() => served[Symbol.asyncDispose]());

const FIVE_SECONDS = { timeout: 20_000 };

describe('five seconds to authenticate', { concurrent: true }, () => {
  it.each([
    ['silent', () => undefined],
    ['that only pings', (socket: WebSocket) => setInterval(() => socket.ping(), 500)],
    ['that drips', (socket: WebSocket) => drip(socket)],
  ])(
    proves('a peer %s is told at five seconds that its token is missing', 'WS-01'),
    FIVE_SECONDS,
    async (_, behave) => {
      // It counts from some moment between these two.
      const before = performance.now();
      using client = await connect(url);
      const after = performance.now();
      const timer = behave(client.socket);
      expect(await client.closed()).toEqual({ code: 1008, reason: 'Missing token' });
      clearInterval(timer);
      expect(performance.now() - before).toBeGreaterThan(4_990);
      expect(performance.now() - after).toBeLessThan(5_600);
    },
  );

  it.each([
    ['stdin', JSON.stringify({ type: 'stdin', data: 'touch /tmp/never\r' })],
    ['start', JSON.stringify({ type: 'start' })],
    ['no JSON', '{'],
    ['noise', randomBytes(64)],
    ['auth without a token', JSON.stringify({ type: 'auth' })],
  ])(proves('a first frame that is %s ends it at once', 'WS-01'), async (_, frame) => {
    using client = await connect(url);
    const shells = served.daemon.view(served.id)?.open_shells;
    client.socket.send(frame);
    expect(await client.closed()).toEqual({ code: 1008, reason: 'Missing token' });
    expect(served.daemon.view(served.id)?.open_shells).toBe(shells);
  });

  it(
    proves('a token at 4.9 seconds is in time, at 5.1 too late', 'WS-01'),
    FIVE_SECONDS,
    async () => {
      using early = await connect(url);
      using late = await connect(url);
      await systemClock.sleep(4_800);
      early.send({ type: 'auth', token: served.token() });
      await early.frame('auth_ok');
      await systemClock.sleep(350);
      if (late.socket.readyState === WebSocket.OPEN)
        late.send({ type: 'auth', token: served.token() });
      expect(await late.closed()).toEqual({ code: 1008, reason: 'Missing token' });
    },
  );
});

describe('floods and origins', () => {
  it(
    proves(
      'beyond its bounds the unauthenticated are turned away, and others do not notice',
      'WS-02',
    ),
    FIVE_SECONDS,
    async () => {
      await using own = await serveSandbox();
      const at = `${own.ws}/v1/shell/ws`;
      using user = await attach(at, own.token(), { client_id: 'u', command: ['/bin/cat'] });
      const before = process.memoryUsage().rss;
      const descriptors = readdirSync('/proc/self/fd').length;
      const silent = Array.from({ length: SOAK ? 1_000 : 150 }, () => bareClient(at));
      const refused: number[] = [];
      for (const { socket } of silent)
        socket.on('unexpected-response', (_request, response) => {
          refused.push(response.statusCode ?? 0);
          expect(response.headers['retry-after']).toBe('1');
          response.destroy();
        });
      const half = Array.from({ length: SOAK ? 1_000 : 150 }, () => {
        const socket = connectTcp(own.port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write('GET /s/x HTTP/1.1\r\nHost: x\r\nX-Half');
        return socket;
      });
      await eventually(
        () => refused.length === silent.length - 32,
        () => `${refused.length} refused`,
      );
      expect(new Set(refused)).toEqual(new Set([503]));
      user.stdin(0, 'here');
      await user.shows('here');
      for (const { socket } of silent) socket.terminate();
      for (const socket of half) socket.destroy();
      expect(process.memoryUsage().rss - before).toBeLessThan(SOAK ? 150e6 : 80e6);
      await eventually(() => readdirSync('/proc/self/fd').length <= descriptors);
    },
  );

  it(proves('of all addresses together 256 may wait', 'WS-02'), async () => {
    await using own = await serveSandbox();
    const at = `${own.ws}/v1/shell/ws`;
    let open = 0;
    const refused: number[] = [];
    const sockets = Array.from({ length: 270 }, (_, index) => {
      const localAddress = `127.0.0.${2 + (index % 10)}`;
      const socket = new WebSocket(at, { localAddress });
      socket.on('error', () => undefined);
      socket.on('open', () => {
        open += 1;
      });
      socket.on('unexpected-response', (_request, response) => {
        refused.push(response.statusCode ?? 0);
        response.destroy();
      });
      return socket;
    });
    await eventually(() => open + refused.length === 270);
    expect(open).toBe(256);
    expect(new Set(refused)).toEqual(new Set([503]));
    for (const socket of sockets) socket.terminate();
  });

  it.each([
    ['https://evil.example', 403],
    ['null', 403],
    ['https://app.example.evil.example', 403],
    ['http://app.example', 403],
    ['https://app.example', 101],
    [undefined, 101],
  ])(proves('of origin %s an upgrade gets %i', 'WS-03'), async (origin, status) => {
    expect(await upgradeStatus(url, origin === undefined ? {} : { Origin: origin })).toBe(status);
  });

  it(proves('a token in the URL is not read and not logged', 'WS-03'), FIVE_SECONDS, async () => {
    const token = served.token();
    using client = await connect(`${url}?token=${token}`);
    expect(await client.closed()).toEqual({ code: 1008, reason: 'Missing token' });
    await eventually(() => served.log().includes('"status":101'));
    expect(served.log()).not.toContain('token=');
    expect(served.log()).not.toContain(token.slice(-20));
  });
});

describe('messages that are not right', () => {
  it(proves('before auth 17 KiB are too much', 'WS-04'), async () => {
    using client = await connect(url);
    client.socket.send(`{"type":"auth","token":"${'x'.repeat(17 * 1024)}"}`);
    expect(await client.closed()).toEqual({ code: 1009, reason: 'Message too big' });
  });

  it(proves('after auth a megabyte is taken and a byte more is not', 'WS-04'), async () => {
    using client = await known();
    client.socket.send('x'.repeat(1024 * 1024));
    expect(await client.frame('error')).toMatchObject({ code: 'INVALID_REQUEST' });
    client.socket.send('x'.repeat(1024 * 1024 + 1));
    expect(await client.closed()).toEqual({ code: 1009, reason: 'Message too big' });
  });

  it(proves('an endless row of empty pieces is too much', 'WS-04'), async () => {
    using client = await known();
    const raw = rawOf(client.socket);
    raw.write(Buffer.from([0x01, 0x80, 0, 0, 0, 0]));
    raw.write(
      Buffer.concat(Array.from({ length: 200_000 }, () => Buffer.from([0x00, 0x80, 0, 0, 0, 0]))),
    );
    expect(await client.closed()).toEqual({ code: 1009, reason: 'Message too big' });
  });

  it.each([
    ['text that is not UTF-8', [0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe], 1007, 'Invalid UTF-8'],
    ['reserved bits', [0xf1, 0x80, 0, 0, 0, 0], 1002, 'Protocol error'],
    ['an unmasked frame', [0x81, 0x02, 0x7b, 0x7d], 1002, 'Protocol error'],
    ['an unknown opcode', [0x83, 0x80, 0, 0, 0, 0], 1002, 'Protocol error'],
  ])(proves('%s ends it with its own code', 'WS-04'), async (_, bytes, code, reason) => {
    using client = await known();
    rawOf(client.socket).write(Buffer.from(bytes));
    expect(await client.closed()).toEqual({ code, reason });
  });

  it(proves('compression is not agreed to', 'WS-04'), async () => {
    const socket = new WebSocket(url, { perMessageDeflate: true });
    await new Promise((resolve) => socket.once('open', resolve));
    expect(socket.extensions).toBe('');
    socket.terminate();
  });

  it(proves('random frames, before and after auth, end nothing but themselves', 'WS-04'), {
    timeout: 120_000,
  }, async () => {
    const random = seededRandom();
    const rounds = SOAK ? 50_000 : 1_500;
    const before = process.memoryUsage().rss;
    for (let at = 0; at < rounds; at += SOAK ? 16 : 100) {
      const clients = await Promise.all(Array.from({ length: 16 }, () => connect(url)));
      for (const client of clients) client.socket.send(noise(random));
      for (const client of clients) {
        const { code, reason } = await client.closed();
        expect([code, reason], `seed ${random.seed}`).toEqual([
          1008,
          expect.stringMatching(/^(Missing|Invalid) token$/),
        ]);
      }
    }
    using client = await known();
    for (let at = 0; at < rounds; at++) {
      client.socket.send(noise(random));
      if (at % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    client.send({ type: 'ping', id: 77 });
    await client.until((frame) => frame.type === 'pong' && frame.id === 77);
    const codes = new Set(
      client.frames.filter(({ type }) => type === 'error').map(({ code }) => code),
    );
    expect([...codes], `seed ${random.seed}`).toEqual(['INVALID_REQUEST']);
    expect(served.log()).not.toContain('"a frame failed"');
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
  });
});

describe('tokens', () => {
  it('of some 250 tokens only the right one is let in, and only a genuine old one is called expired', {
    timeout: 60_000,
  }, async () => {
    const now = Math.floor(Date.now() / 1_000);
    const base = claimsOf(served.id, systemClock);
    const other = randomBytes(32);
    const bad = (change: object, key: Uint8Array = served.key, header?: object, digest?: string) =>
      forge({ ...base, ...change }, key, header, digest);
    const without = (name: string) =>
      forge(Object.fromEntries(Object.entries(base).filter(([key]) => key !== name)), served.key);
    const good = bad({});
    const flips = Array.from({ length: 180 }, (_, at) =>
      flip(good, Math.floor((at * good.length) / 180)),
    );
    const invalid = [
      bad({}, other),
      bad({ aud: 'sb_other' }),
      bad({ aud: [served.id] }),
      bad({ aud: [served.id, 'sb_other'] }),
      bad({ thread_id: 'thr_other', room: 'thr_other' }),
      bad({ room: 'thr_other' }),
      bad({ room: '*' }),
      ...[
        'SHELL',
        'Shell',
        'fs:rw,shell',
        'fs:rw  shell',
        ' shell',
        'shell ',
        '',
        'shell:rw',
        'admin',
        'shell\tfs:rw',
        'shell:ro,shell',
      ].map((scope) => bad({ scope })),
      bad({ scope: ['fs:rw', 'shell'] }),
      bad({ scope: undefined, scopes: 'execution' }),
      bad({ scopes: 'execution' }),
      bad({ elevated: true }),
      bad({ client_id: 'ailsd-cli', principal: 'user' }),
      bad({ iat: now, exp: now + 901 }),
      bad({ iat: now - 10_000, exp: now + 900 }),
      bad({ exp: `${now + 900}` }),
      bad({ exp: now - 10, iat: now }),
      bad({ iat: now + 120, exp: now + 500 }),
      bad({ nbf: now + 60 }),
      ...['sub', 'aud', 'scope', 'thread_id', 'exp', 'iat', 'jti'].map(without),
      bad({}, served.key, { alg: 'HS512', typ: 'JWT' }, 'sha512'),
      bad({}, served.key, { alg: 'HS384', typ: 'JWT' }, 'sha384'),
      bad({}, served.key, { alg: 'none', typ: 'JWT' }),
      bad({}, served.key, { alg: 'HS256', typ: 'at+jwt' }),
      bad({}, served.key, { alg: 'HS256' }),
      bad({}, served.key, { alg: 'HS256', typ: 'JWT', kid: 'x' }),
      bad({}, served.key, { alg: 'HS256', typ: 'JWT', crit: ['exp'] }),
      bad({}, served.key, { alg: 'RS256', typ: 'at+jwt' }),
      `${good}.`,
      `.${good}`,
      good.split('.').slice(0, 2).join('.'),
      `${good.split('.').slice(0, 2).join('.')}.`,
      `${good}=`,
      'x',
      'a.b.c',
      `${'x'.repeat(7_000)}`,
      // Old, and besides not genuine: nothing about its age is told.
      bad({ iat: now - 500, exp: now - 6 }, other),
      bad({ iat: now - 500, exp: now - 6, aud: 'sb_other' }),
      ...flips,
    ];
    expect(invalid.length).toBeGreaterThan(230);
    for (const token of invalid) {
      expect(await firstFrame(token)).toEqual({ code: 1008, reason: 'Invalid token' });
      expect(await statusOf('/v1/shells', token)).toBe(401);
    }
    const expired = bad({ iat: now - 500, exp: now - 6 });
    expect(await firstFrame(expired)).toEqual({ code: 1008, reason: 'Token expired' });
    expect(await statusOf('/v1/shells', expired)).toBe(401);
    expect(
      await statusOf(
        '/v1/shells',
        bad({ iat: now - 500, exp: Math.floor(Date.now() / 1_000) - 1 }),
      ),
    ).toBe(200);
    expect(await statusOf('/v1/shells', good)).toBe(200);
    expect(await statusOf('/v1/shells', bad({ scope: 'shell:ro' }))).toBe(200);
    const header = await connect(url, { headers: { Authorization: `Bearer ${expired}` } });
    expect(await header.closed()).toEqual({ code: 1008, reason: 'Token expired' });
  });

  it('a capability alone opens exactly the routes that name it, and the frames', {
    timeout: 60_000,
  }, async () => {
    const names = Object.keys(CAPABILITIES) as Capability[];
    using writer = await attach(url, served.token(), { shell_id: 'new', command: ['/bin/cat'] });
    const { shell_id } = await writer.frame('ready');
    for (const scope of names) {
      const token = served.token({ scope, sub: `usr_${scope}` });
      for (const route of [
        DATAPLANE_ROUTES.listShells,
        DATAPLANE_ROUTES.endShell,
        DATAPLANE_ROUTES.readShellLog,
      ]) {
        const path = route.path.replace('{shell_id}', 'sh_nobody');
        const status = await statusOf(path, token, route.method);
        const isAllowed = allows([scope], route.capability);
        expect([scope, path, status]).toEqual([
          scope,
          path,
          isAllowed ? expect.not.toSatisfy((one: number) => one === 403) : 403,
        ]);
      }
      using client = await connect(url);
      client.send({ type: 'auth', token });
      await client.frame('auth_ok');
      client.send({ type: 'start', shell_id });
      if (allows([scope], 'shell:ro')) await client.frame('ready');
      else
        expect(await client.frame('error')).toMatchObject({
          code: 'CAPABILITY_DENIED',
          capability: 'shell:ro',
        });
      if (allows([scope], 'shell')) continue;
      client.frames.length = 0;
      const forbidden = [
        { type: 'stdin', data: 'never\r' },
        { type: 'resize', cols: 33, rows: 33 },
        { type: 'signal', signal: 'SIGKILL' },
        { type: 'control', action: 'take' },
        { type: 'eof' },
      ];
      for (const frame of forbidden) client.send(frame);
      await eventually(
        () => client.frames.filter(({ type }) => type === 'error').length === forbidden.length,
        () => `${scope}: ${JSON.stringify(client.frames)}`,
      );
      for (const frame of client.frames.filter(({ type }) => type === 'error'))
        expect(frame.code).toBe('CAPABILITY_DENIED');
      // It starts none either.
      using another = await connect(url);
      another.send({ type: 'auth', token });
      another.send({ type: 'start', shell_id: 'new' });
      expect(await another.frame('error')).toMatchObject({ code: 'CAPABILITY_DENIED' });
    }
    writer.type('still here\r');
    await writer.shows('still here\r\nstill here');
    expect(writer.output()).not.toContain('never');
  });

  it('a token that ends closes its connection, a fresh one keeps it, another’s does not', {
    timeout: 30_000,
  }, async () => {
    const exp = Math.floor(Date.now() / 1_000) + 3;
    const iat = exp - 300;
    using left = await attach(url, served.token({ iat, exp }), {
      shell_id: 'new',
      client_id: 'l',
      command: ['/bin/cat'],
    });
    const { shell_id } = await left.frame('ready');
    using kept = await attach(url, served.token({ iat, exp }), {
      shell_id: 'new',
      client_id: 'k',
      command: ['/bin/cat'],
    });
    using stolen = await attach(url, served.token({ iat, exp }), { shell_id: 'new' });
    kept.stdin(0, 'before\r');
    await kept.shows('before\r\nbefore');
    kept.send({ type: 'auth', token: served.token() });
    await eventually(() => kept.frames.filter(({ type }) => type === 'auth_ok').length === 2);
    stolen.send({ type: 'auth', token: served.token({ sub: 'usr_2' }) });
    expect(await stolen.closed()).toEqual({ code: 1008, reason: 'Invalid token' });
    expect(await left.closed()).toEqual({ code: 1008, reason: 'Token expired' });
    expect(Date.now() / 1_000 - exp).toBeLessThan(5);
    kept.stdin(7, 'after\r');
    await kept.shows('after\r\nafter');
    using again = await attach(url, served.token(), { shell_id, client_id: 'l', offset: 0 });
    expect((await again.frame('ready')).state).toBe('resumed');
  });

  it('what is revoked is closed within two seconds, its shell lives on', {
    timeout: 300_000,
  }, async () => {
    await using own = await serveSandbox();
    const at = `${own.ws}/v1/shell/ws`;
    const rounds = SOAK ? 200 : 4;
    const until = Date.now() + 900_000;
    for (let round = 0; round < rounds; round++) {
      const jti = `tok_round_${round}`;
      using ended = await attach(at, own.token({ jti }), {
        shell_id: 'new',
        client_id: 'c',
        command: ['/bin/cat'],
      });
      using bystander = await connect(at);
      bystander.send({ type: 'auth', token: own.token() });
      await bystander.frame('auth_ok');
      ended.stdin(0, 'kept\r');
      await ended.shows('kept\r\nkept');
      const { shell_id } = await ended.frame('ready');
      const begin = performance.now();
      await own.access({ ended: [{ jti, from: Date.now(), until }] });
      expect(await ended.closed()).toEqual({ code: 1008, reason: 'Invalid token' });
      expect(performance.now() - begin).toBeLessThan(2_000);
      expect(bystander.socket.readyState).toBe(WebSocket.OPEN);
      using back = await attach(at, own.token(), { shell_id, client_id: 'c', offset: 4 });
      await eventually(() => back.bytes().length >= ended.bytes().length - 4);
      expect(back.bytes()).toEqual(ended.bytes().subarray(4));
      back.send({ type: 'signal', signal: 'SIGKILL' });
      await back.frame('exit');
    }
    const rotated = randomBytes(32);
    using old = await attach(at, own.token(), {});
    await own.access({ keys: [rotated] });
    expect(await old.closed()).toEqual({ code: 1008, reason: 'Invalid token' });
    using fresh = await attach(at, own.token({}, rotated), {});
    expect((await fresh.frame('ready')).state).not.toBe('fresh');
  });
});

async function known() {
  const client = await connect(url);
  client.send({ type: 'auth', token: served.token() });
  await client.frame('auth_ok');
  return client;
}

async function firstFrame(token: string) {
  using client = await connect(url);
  client.send({ type: 'auth', token });
  return await client.closed();
}

function statusOf(path: string, token: string, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${served.http}${path}`,
      { method, headers: { Authorization: `Bearer ${token}` }, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

function upgradeStatus(address: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve) => {
    const socket = new WebSocket(address, { headers });
    socket.on('error', () => undefined);
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
    socket.on('open', () => {
      socket.terminate();
      resolve(101);
    });
  });
}

function drip(socket: WebSocket): NodeJS.Timeout {
  const raw = rawOf(socket);
  const bytes = [0x81, 0xfe, 0x01, 0x00, 1, 2, 3, 4, 5];
  return setInterval(() => raw.write(Buffer.from([bytes.shift() ?? 0])), 1_000);
}

/** The line beneath, to put anything on it. */
function rawOf(socket: WebSocket): { write(bytes: Buffer): void } {
  const raw: unknown = Reflect.get(socket, '_socket');
  if (
    typeof raw === 'object' &&
    raw !== null &&
    'write' in raw &&
    typeof raw.write === 'function'
  ) {
    const { write } = raw;
    return { write: (bytes) => void Reflect.apply(write, raw, [bytes]) };
  }
  throw new Error('there is no line beneath');
}

/** Another character of the same alphabet at this place. */
function flip(token: string, at: number): string {
  const was = token[at] ?? 'A';
  const now = was === '.' ? 'A' : was === 'A' ? 'B' : 'A';
  return token.slice(0, at) + now + token.slice(at + 1);
}
