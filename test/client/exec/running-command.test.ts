import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Served, serveSandbox } from '../../server/sandboxd/support/sandboxd.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { watchCommand } from '../../support/exec-client.js';
import { type HandedSession, handedSession } from '../../support/given-session.js';
import { newSeed, seededRandom } from '../../support/random.js';
import { exitFrame, readyFrame, scriptedExec } from '../../support/scripted-exec.js';

const SOAK = process.env['AILSD_SOAK'] !== undefined;

function inSandbox(session: HandedSession, sandboxId = 'sb_1') {
  return Object.assign(session, { sandboxId });
}

describe('a command is run', () => {
  it('with its outputs apart, its input to the end, and its code', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type === 'start') {
        peer.send(readyFrame('cmd_test'));
        peer.send({ type: 'stdout', offset: 0, data: Buffer.from('out') });
        peer.send({ type: 'stderr', offset: 0, data: Buffer.from('err') });
      }
      if (frame.type === 'eof') peer.send(exitFrame(7, 3, 3));
    });
    await using client = watchCommand(inSandbox(handedSession(server.wsUrl)), {
      argv: ['a b', '', '-x'],
      cwd: 'src',
      timeoutMs: 1_000,
    });
    client.command.write(Buffer.from('in'));
    client.command.endInput();
    expect(await client.command.ended).toMatchObject({
      outcome: { exitCode: 7, origin: 'remote' },
    });
    expect([client.text('stdout'), client.text('stderr')]).toEqual(['out', 'err']);
    expect(server.frames.slice(0, 3)).toMatchObject([
      { type: 'start', argv: ['a b', '', '-x'], cwd: 'src', timeout_ms: 1_000 },
      { type: 'stdin', offset: 0 },
      { type: 'eof', offset: 2 },
    ]);
  });

  it('again under the same id when its start was never answered, and never again once it was', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type !== 'start') return;
      if (peer.attempt === 1) return peer.drop();
      peer.send(readyFrame('cmd_test', { stdout: frame.stdout_offset ?? 0 }));
      if (peer.attempt === 2) {
        peer.send({ type: 'stdout', offset: 0, data: Buffer.from('one') });
        setTimeout(() => peer.drop(), 20);
      } else peer.send(exitFrame(0, 3));
    });
    await using client = watchCommand(inSandbox(handedSession(server.wsUrl)));
    expect(await client.command.ended).toMatchObject({ kind: 'exit' });
    const starts = server.frames.filter(({ type }) => type === 'start');
    expect(starts).toMatchObject([
      { argv: ['true'], command_id: 'cmd_test' },
      { argv: ['true'], command_id: 'cmd_test' },
      { command_id: 'cmd_test', stdout_offset: 3 },
    ]);
    expect(starts[2]).not.toHaveProperty('argv');
    expect(client.text('stdout')).toBe('one');
  });

  it('never in the sandbox that came in the place of the one where it may have run', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type === 'start') peer.drop();
      session.sandboxId = 'sb_2';
    });
    const session = inSandbox(handedSession(server.wsUrl));
    await using client = watchCommand(session);
    await expect(client.command.ended).rejects.toMatchObject({
      code: 'TRANSPORT_LOST',
      details: { command_id: 'cmd_test' },
    });
    expect(server.frames.filter(({ type }) => type === 'start')).toHaveLength(1);
  });

  it('not at all where the sandbox says no: that is the error, and no loss', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type !== 'start') return;
      const field = { field: 'cwd' };
      const message = 'no such folder';
      peer.send({ type: 'error', code: 'INVALID_REQUEST', message, retryable: false, ...field });
    });
    await using client = watchCommand(inSandbox(handedSession(server.wsUrl)));
    await expect(client.command.ended).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(client.command.mayRun).toBe(false);
  });

  it('and a cut that is not to be mended is a loss', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type !== 'start') return;
      peer.send(readyFrame('cmd_test'));
      setTimeout(() => peer.drop(), 10);
    });
    const session = inSandbox(handedSession(server.wsUrl));
    await using client = watchCommand(session, { reconnect: false });
    await expect(client.command.ended).rejects.toMatchObject({ code: 'TRANSPORT_LOST' });
  });

  it('what is no longer kept is counted, and the end still comes', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type !== 'start') return;
      const skipped = peer.attempt === 1 ? 0 : 10;
      peer.send(readyFrame('cmd_test', { stdout: skipped }));
      if (peer.attempt === 1) {
        peer.send({ type: 'stdout', offset: 0, data: Buffer.from('four') });
        setTimeout(() => peer.drop(), 10);
      } else peer.send(exitFrame(0, 10));
    });
    await using client = watchCommand(inSandbox(handedSession(server.wsUrl)));
    expect(await client.command.ended).toMatchObject({ kind: 'exit' });
    expect(client.missing).toEqual({ stdout: 6, stderr: 0 });
  });

  it('its end is told only when its output was consumed', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type !== 'start') return;
      peer.send(readyFrame('cmd_test'));
      peer.send({ type: 'stderr', offset: 0, data: Buffer.from('late') });
      peer.send(exitFrame(0, 0, 4));
    });
    const session = inSandbox(handedSession(server.wsUrl));
    await using client = watchCommand(session, { consume: false });
    let isOver = false;
    void client.command.ended.then(() => {
      isOver = true;
    });
    await eventually(() => client.text('stderr') === 'late');
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    client.command.consumed('stderr', 4);
    expect(await client.command.ended).toMatchObject({ kind: 'exit' });
  });

  it('a signal sent while there is no line arrives when there is one', async () => {
    await using server = await scriptedExec((frame, peer) => {
      if (frame.type === 'start') peer.send(readyFrame('cmd_test'));
      if (frame.type === 'signal') peer.send(exitFrame(3));
    });
    await using client = watchCommand(inSandbox(handedSession(server.wsUrl)));
    client.command.signal('SIGTERM');
    expect(await client.command.ended).toMatchObject({ outcome: { exitCode: 3 } });
  });
});

describe('a command in a real sandbox', () => {
  let served: Served;
  beforeAll(async () => {
    served = await serveSandbox();
  });
  afterAll(() => served[Symbol.asyncDispose]());

  const at = (port: number) =>
    inSandbox(
      handedSession(`ws://127.0.0.1:${port}/s/${served.id}`, {
        token: served.token({ scope: 'process' }),
      }),
      served.id,
    );

  it('both outputs and all input are exact whatever is cut, and it ran once', async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    const plan = { random, meanBytes: 60_000, maxCuts: SOAK ? 200 : 25 };
    await using proxy = await cuttingProxy(served.port, plan);
    const input = randomBytes(SOAK ? 8 * 1024 * 1024 : 1024 * 1024);
    const name = `ran-${seed}`;
    const script = `echo x >> ${name}; tee /dev/stderr`;
    const options = { argv: ['sh', '-c', script], commandId: `cmd_${seed}` };
    await using client = watchCommand(at(proxy.port), options, random);
    let sent = 0;
    const pump = (): void => {
      while (sent < input.length) {
        const chunk = input.subarray(sent, sent + 50_000);
        if (client.command.write(chunk) === 'full') return;
        sent += chunk.length;
      }
      client.command.endInput();
    };
    client.onRoom = pump;
    pump();
    const end = await client.command.ended;
    const sha256 = createHash('sha256').update(input).digest('hex');
    const digest = (stream: 'stdout' | 'stderr') =>
      createHash('sha256').update(client.bytes(stream)).digest('hex');
    expect({ seed, out: digest('stdout'), err: digest('stderr') }).toEqual({
      seed,
      out: sha256,
      err: sha256,
    });
    expect(end).toMatchObject({ outcome: { exitCode: 0, stdout: { sha256 } } });
    expect(readFileSync(join(served.folder, 'workspace', name), 'utf8')).toBe('x\n');
    expect(proxy.cuts, `seed ${seed}`).toBeGreaterThan(3);
  }, 120_000);
});
