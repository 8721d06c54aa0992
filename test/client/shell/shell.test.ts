import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { CLOSES } from '../../../src/protocol/closes.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { handedSession } from '../../support/given-session.js';
import { newSeed, seededRandom } from '../../support/random.js';
import { answerUpgrade, scriptedShell } from '../../support/scripted-shell.js';
import { watchShell } from '../../support/shell-client.js';

/** A server that answers `start` by closing. */
function closing(code: number, reason: string): (ws: WebSocket) => true {
  return (ws) => {
    ws.close(code, reason);
    return true;
  };
}

const SOAK = process.env['AILSD_SOAK'] !== undefined;

describe('a shell is attached to', () => {
  it('over one connection, with the token in its header and the size in its first frame', async () => {
    await using server = await scriptedShell();
    await using client = watchShell(handedSession(server.wsUrl));
    await eventually(() => client.shell.isUp);
    expect(server.tokens).toEqual(['first']);
    expect(server.frames[0]).toMatchObject({ type: 'start', cols: 80, rows: 24, input_offset: 0 });
    server.output('hello');
    server.exit(7);
    const end = await client.shell.ended;
    expect(end).toMatchObject({ kind: 'exit', outcome: { exitCode: 7, origin: 'remote' } });
    expect(Buffer.from(client.output()).toString()).toBe('hello');
  });

  it('an end is told only when its output was consumed, though the server has gone by then', async () => {
    await using server = await scriptedShell();
    const session = handedSession(server.wsUrl);
    await using client = watchShell(session);
    // Takes its time to show what came.
    const { shell } = client;
    let last = 0;
    const consumed = shell.consumed.bind(shell);
    shell.consumed = (offset) => {
      last = offset;
    };
    await eventually(() => shell.isUp);
    server.output('x'.repeat(1000));
    server.exit(0);
    await eventually(() => last === 1000 && !server.frames.some(({ type }) => type === 'close'));
    let isOver = false;
    void shell.ended.then(() => {
      isOver = true;
    });
    await eventually(() => !shell.isUp || last === 1000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    consumed(last);
    expect(await shell.ended).toMatchObject({ kind: 'exit' });
  });

  it('a cut is mended within 100 ms, from the byte where it was', async () => {
    await using server = await scriptedShell();
    await using proxy = await cuttingProxy(server.port);
    await using client = watchShell(handedSession(`ws://127.0.0.1:${proxy.port}`));
    await eventually(() => client.shell.isUp);
    server.output('one ');
    await eventually(() => client.outputBytes === 4);
    const begin = performance.now();
    proxy.cut();
    server.output('two');
    await eventually(() => client.outputBytes === 7);
    expect(performance.now() - begin).toBeLessThan(SOAK ? 250 : 1000);
    expect(Buffer.from(client.output()).toString()).toBe('one two');
    expect(server.frames.filter(({ type }) => type === 'start')).toMatchObject([
      { input_offset: 0 },
      { offset: 4, shell_id: 'sh_scripted' },
    ]);
    const tries = client.links.filter(({ kind }) => kind === 'down');
    expect(tries.length).toBeGreaterThan(0);
  });

  it('what is typed while there is no connection is applied once it is back', async () => {
    await using server = await scriptedShell();
    await using proxy = await cuttingProxy(server.port);
    await using client = watchShell(handedSession(`ws://127.0.0.1:${proxy.port}`));
    await eventually(() => client.shell.isUp);
    client.shell.write(Buffer.from('before '));
    await eventually(() => server.input().length === 7);
    await proxy.refuse(true);
    await eventually(() => !client.shell.isUp);
    client.shell.write(Buffer.from('during'));
    await proxy.refuse(false);
    await eventually(() => server.input().length === 13);
    expect(Buffer.from(server.input()).toString()).toBe('before during');
  });

  it('output and input survive cuts at any byte, each byte once and in order', async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    const [megabytes, cuts, keys] = SOAK ? [64, 1000, 100_000] : [4, 60, 3000];
    await using server = await scriptedShell();
    const meanBytes = (megabytes * 1024 * 1024) / cuts;
    await using proxy = await cuttingProxy(server.port, { random, meanBytes, maxCuts: cuts });
    const hash = createHash('sha256');
    await using client = watchShell(
      handedSession(`ws://127.0.0.1:${proxy.port}`),
      { onOutput: (bytes) => hash.update(bytes) },
      seededRandom(seed + 1),
    );
    await eventually(() => client.shell.isUp);
    const log = new Uint8Array(megabytes * 1024 * 1024).map(() => random() * 256);
    server.output(log);
    let typed = '';
    for (let key = 0; key < keys; key += 1) {
      const text = `${key};`;
      while (client.shell.write(Buffer.from(text)) === 'full') {
        await new Promise((resolve) => setImmediate(resolve));
      }
      typed += text;
      if (key % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    server.exit(0);
    expect(await client.shell.ended, `seed ${seed}`).toMatchObject({ kind: 'exit' });
    expect(proxy.cuts, `seed ${seed}`).toBeGreaterThan(cuts / 3);
    // The last keys may still be on their way when the program ends, as with any terminal.
    const input = Buffer.from(server.input()).toString();
    expect(typed.startsWith(input), `seed ${seed}`).toBe(true);
    expect(hash.digest('hex'), `seed ${seed}`).toBe(createHash('sha256').update(log).digest('hex'));
  }, 180_000);

  it.skipIf(!SOAK)(
    'a line that has gone silent is noticed within 20 s',
    async () => {
      await using server = await scriptedShell();
      await using proxy = await cuttingProxy(server.port);
      await using client = watchShell(handedSession(`ws://127.0.0.1:${proxy.port}`));
      await eventually(() => client.shell.isUp);
      const begin = performance.now();
      proxy.freeze(true);
      while (client.shell.isUp) await new Promise((resolve) => setTimeout(resolve, 50));
      expect(performance.now() - begin).toBeLessThan(20_000);
      expect(performance.now() - begin).toBeGreaterThan(4_000);
      proxy.freeze(false);
      await eventually(() => client.shell.isUp);
    },
    60_000,
  );

  it('output that is gone is replaced by a screen, and that is said', async () => {
    await using server = await scriptedShell({ ringBytes: 100, screen: 'the screen' });
    await using proxy = await cuttingProxy(server.port);
    await using client = watchShell(handedSession(`ws://127.0.0.1:${proxy.port}`));
    await eventually(() => client.shell.isUp);
    server.output('a'.repeat(50));
    await eventually(() => client.outputBytes === 50);
    await proxy.refuse(true);
    server.output('b'.repeat(500));
    await proxy.refuse(false);
    await eventually(() => client.events.some(({ kind }) => kind === 'screen'));
    expect(client.events.at(-1)).toMatchObject({ kind: 'screen', screen: 'the screen', end: 550 });
    server.output('c');
    await eventually(() => client.outputBytes === 51);
  });

  it('the screen is drawn again on request, and nothing typed is lost by it', async () => {
    await using server = await scriptedShell({ screen: 'drawn' });
    await using client = watchShell(handedSession(server.wsUrl), { reconnect: false });
    await eventually(() => client.shell.isUp);
    server.output('abc');
    await eventually(() => client.outputBytes === 3);
    client.shell.write(Buffer.from('k'));
    client.shell.redraw();
    client.shell.write(Buffer.from('l'));
    await eventually(() => client.events.some(({ kind }) => kind === 'screen'));
    await eventually(() => server.input().length === 2);
    expect(Buffer.from(server.input()).toString()).toBe('kl');
    expect(client.links.every(({ kind }) => kind === 'up')).toBe(true);
  });

  it('without reconnecting, a cut is the end and says that nobody knows the outcome', async () => {
    await using server = await scriptedShell();
    await using proxy = await cuttingProxy(server.port);
    const session = handedSession(`ws://127.0.0.1:${proxy.port}`);
    await using client = watchShell(session, { reconnect: false });
    await eventually(() => client.shell.isUp);
    proxy.cut();
    await expect(client.shell.ended).rejects.toMatchObject({ code: 'TRANSPORT_LOST' });
    expect(proxy.connections).toBe(1);
  });

  it('a server that cannot be reached is called that soon', async () => {
    await using proxy = await cuttingProxy(1);
    await proxy.refuse(true);
    await using client = watchShell(handedSession(`ws://127.0.0.1:${proxy.port}`));
    await expect(client.shell.ended).rejects.toMatchObject({ code: 'UNREACHABLE' });
  });

  it('leaving tells the server, and ends without an outcome', async () => {
    await using server = await scriptedShell();
    await using client = watchShell(handedSession(server.wsUrl));
    await eventually(() => client.shell.isUp);
    client.shell.detach();
    expect(await client.shell.ended).toEqual({ kind: 'detached' });
    await eventually(() => server.frames.some(({ type }) => type === 'close'));
    expect(server.attempts).toBe(1);
  });
});

describe('a token', () => {
  it('that follows is sent on the live connection', async () => {
    await using server = await scriptedShell();
    const session = handedSession(server.wsUrl);
    await using client = watchShell(session);
    await eventually(() => client.shell.isUp);
    session.renew('second');
    await eventually(() => server.frames.some(({ type }) => type === 'auth'));
    expect(server.frames.at(-1)).toEqual({ type: 'auth', token: 'second' });
    expect(server.attempts).toBe(1);
  });

  it('that expired on a live connection is refreshed, and the shell goes on', async () => {
    await using server = await scriptedShell();
    const session = handedSession(server.wsUrl);
    await using client = watchShell(session);
    await eventually(() => client.shell.isUp);
    const { code, reason } = CLOSES.tokenExpired;
    server.close(code, reason);
    await eventually(() => server.attempts === 2 && client.shell.isUp);
    expect(server.tokens).toEqual(['first', 'refreshed-1']);
  });

  const never = [
    ['missingToken', 'TOKEN_MISSING'],
    ['invalidToken', 'UNAUTHENTICATED'],
    ['unauthorizedRoom', 'FORBIDDEN'],
    ['notAllowed', 'FORBIDDEN'],
  ] as const;

  it.each(never)('refused with %s is not tried again: %s', async (name, code) => {
    const { code: close, reason } = CLOSES[name];
    await using server = await scriptedShell({ start: closing(close, reason) });
    await using client = watchShell(handedSession(server.wsUrl));
    await expect(client.shell.ended).rejects.toMatchObject({ code });
    expect(server.attempts).toBe(1);
  });

  it.each(never)(
    'refused with %s on a shell that was attached is not tried again: %s',
    async (name, code) => {
      await using server = await scriptedShell();
      await using client = watchShell(handedSession(server.wsUrl));
      await eventually(() => client.shell.isUp);
      server.close(CLOSES[name].code, CLOSES[name].reason);
      await expect(client.shell.ended).rejects.toMatchObject({ code });
      expect(server.attempts).toBe(1);
    },
  );

  it.each([
    ['can be refreshed', true, 2],
    ['cannot be refreshed', false, 1],
  ])(
    'that is always said to be expired and %s: attempts are counted',
    async (_, canRefresh, most) => {
      const { code, reason } = CLOSES.tokenExpired;
      await using server = await scriptedShell({ start: closing(code, reason) });
      await using client = watchShell(handedSession(server.wsUrl, { canRefresh }));
      await expect(client.shell.ended).rejects.toMatchObject({ code: 'TOKEN_EXPIRED' });
      expect(server.attempts).toBe(most);
    },
  );

  it('whose refresh is refused ends it with that refusal', async () => {
    const { code, reason } = CLOSES.tokenExpired;
    await using server = await scriptedShell({ start: closing(code, reason) });
    await using client = watchShell(handedSession(server.wsUrl, { refuse: true }));
    await expect(client.shell.ended).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(server.attempts).toBe(1);
  });

  it.each([
    [
      403,
      '{"error":{"code":"CAPABILITY_DENIED","message":"no","retryable":false}}',
      'CAPABILITY_DENIED',
      1,
    ],
    [403, 'no', 'FORBIDDEN', 1],
    [401, '', 'UNAUTHENTICATED', 1],
    [
      401,
      '{"error":{"code":"TOKEN_EXPIRED","message":"old","retryable":false}}',
      'TOKEN_EXPIRED',
      2,
    ],
    [404, '{"error":{"code":"NOT_FOUND","message":"gone","retryable":false}}', 'NOT_FOUND', 1],
  ])(
    'refused at the upgrade with %i %s ends with %s after %i',
    async (status, body, code, attempts) => {
      await using server = await scriptedShell({
        refuse: (socket) => answerUpgrade(socket, status, body),
      });
      await using client = watchShell(handedSession(server.wsUrl));
      await expect(client.shell.ended).rejects.toMatchObject({ code });
      expect(server.attempts).toBe(attempts);
    },
  );

  it('a server that is overloaded is asked again when it said', async () => {
    await using server = await scriptedShell({
      refuse: (socket, _, attempt) =>
        attempt === 1 && answerUpgrade(socket, 503, '', 'Retry-After: 0\r\n'),
    });
    await using client = watchShell(handedSession(server.wsUrl));
    await eventually(() => client.shell.isUp);
    expect(server.attempts).toBe(2);
  });
});

describe('what makes no sense', () => {
  it('a gap in the output is mended by asking again, and in the end by a screen', async () => {
    let gaps = 2;
    await using server = await scriptedShell({ ringBytes: 0, screen: 'whole' });
    await using client = watchShell(handedSession(server.wsUrl));
    await eventually(() => client.shell.isUp);
    while (gaps > 0) {
      gaps -= 1;
      const before = server.attempts;
      server.send({ type: 'stdout', offset: 10_000, data: Buffer.from('far away') });
      await eventually(() => server.attempts > before && client.shell.isUp);
    }
    expect(client.outputBytes).toBe(0);
    server.output('here');
    await eventually(() => client.outputBytes === 4);
  });

  it('a server that never makes sense is given up on', async () => {
    await using server = await scriptedShell({
      start: (ws) => {
        ws.send('{"type":"nonsense"}');
        return true;
      },
    });
    await using client = watchShell(handedSession(server.wsUrl));
    await expect(client.shell.ended).rejects.toMatchObject({ code: 'PROTOCOL_MISMATCH' });
  });

  it('a shell that is not there is an answer', async () => {
    await using server = await scriptedShell({
      start: (ws) => {
        ws.send('{"type":"error","code":"NOT_FOUND","message":"no such shell","retryable":false}');
        return true;
      },
    });
    await using client = watchShell(handedSession(server.wsUrl), { shellId: 'sh_gone' });
    await expect(client.shell.ended).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(server.attempts).toBe(1);
  });
});
