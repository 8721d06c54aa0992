import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { openSession } from '../../../src/client/sessions/open-session.js';
import { parseThreadId } from '../../../src/protocol/ids.js';
import { temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { envelope, type FakeBroker, startFakeBroker } from '../../support/fake-broker.js';
import { sessionWorld, type TestWorld } from './support/world.js';

const thread = parseThreadId('thr_demo');
const REFRESH = 'refreshBindingToken';
const HEARTBEAT = 'heartbeatSession';

/** A broker and a session at one clock, which only the test moves. */
async function opened(options: { keepAlive?: boolean; idleTimeoutSeconds?: number } = {}) {
  const clock = new ManualClock(Date.now());
  const { idleTimeoutSeconds = 900, keepAlive = false } = options;
  const broker = await startFakeBroker({ now: () => clock.now(), idleTimeoutSeconds });
  const world = sessionWorld({ url: broker.url, clock });
  const session = await openSession(world, { thread, keepAlive });
  const close = async (): Promise<void> => {
    await session[Symbol.asyncDispose]();
    world[Symbol.dispose]();
    await broker[Symbol.asyncDispose]();
  };
  return { clock, broker, world, session, [Symbol.asyncDispose]: close };
}

/** Moves time on in steps, as it goes: whoever waits for an answer gets it in between. */
async function pass({ clock, world }: Place, seconds: number): Promise<void> {
  for (let at = 0; at < seconds; at += 5) {
    await clock.advance(5_000);
    await world.settled();
  }
}

interface Place {
  readonly clock: ManualClock;
  readonly world: TestWorld;
}

const refreshes = (broker: FakeBroker): number => broker.of(REFRESH).length;

describe('an open session', () => {
  it('its token is renewed on a timer, two thirds into its life, by the one in hand', async () => {
    await using at = await opened();
    const { clock, broker, session } = at;
    const first = await session.token();
    await pass(at, 595);
    expect(refreshes(broker)).toBe(0);
    await pass(at, 10);
    await eventually(() => refreshes(broker) === 1);
    expect(broker.of(REFRESH)[0]?.json.current_token).toBe(first.reveal());
    await eventually(async () => !(await session.token()).equals(first));
    expect((await session.token()).reveal()).toBe(broker.tokens.at(-1));
    expect(session.expiresAtMs).toBeGreaterThan(clock.now() + 800_000);
    await pass(at, 2_700);
    await eventually(() => refreshes(broker) === 5);
  });

  it('however many ask at once, one request is made; an abort ends one waiting and no other', async () => {
    await using at = await opened();
    const { broker, session } = at;
    const controller = new AbortController();
    const impatient = session.refresh(controller.signal);
    const asked = Array.from({ length: 20 }, () => session.refresh());
    controller.abort(new Error('enough'));
    await expect(impatient).rejects.toThrow('enough');
    const tokens = await Promise.all(asked);
    expect(new Set(tokens.map((token) => token.reveal())).size).toBe(1);
    expect(refreshes(broker)).toBe(1);
  });

  it('every later token is told to a live connection, in order, and the telling ends with the session', async () => {
    await using at = await opened();
    const { broker, session } = at;
    const told: string[] = [];
    const telling = (async () => {
      for await (const token of session.tokens()) told.push(token.reveal());
    })();
    await session.refresh();
    await eventually(() => told.length === 1);
    await session.refresh();
    await eventually(() => told.length === 2);
    expect(told).toEqual(broker.tokens.slice(1));
    await session[Symbol.asyncDispose]();
    await telling;
    expect(at.clock.sleeping).toBe(0);
    expect(session.signal.aborted).toBe(true);
  });

  it('a server that is away is tried again, ever more rarely; the token in hand goes on', async () => {
    await using at = await opened();
    const { broker, session } = at;
    const first = await session.token();
    broker.script = () => envelope('BACKEND_UNAVAILABLE');
    await pass(at, 700);
    const tries = refreshes(broker);
    expect(tries).toBeGreaterThan(3);
    expect(tries).toBeLessThan(60);
    expect((await session.token()).equals(first)).toBe(true);
    await pass(at, 210);
    await expect(session.token()).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    broker.script = undefined;
    await pass(at, 60);
    await eventually(async () => !(await session.token()).equals(first));
  });

  it('a clock that is an hour wrong on this side renews no sooner and no later', async () => {
    const clock = new ManualClock(Date.now());
    await using broker = await startFakeBroker({ now: () => clock.now() + 3_600_000 });
    using world = sessionWorld({ url: broker.url, clock });
    await using session = await openSession(world, { thread, keepAlive: false });
    expect(Math.abs(session.expiresAtMs - clock.now() - 900_000)).toBeLessThan(3_000);
    await pass({ clock, world }, 590);
    expect(refreshes(broker)).toBe(0);
    await pass({ clock, world }, 20);
    await eventually(() => refreshes(broker) === 1);
  });

  it('a token that proves nothing any more: the login gets another one', async () => {
    await using at = await opened();
    const { broker, session } = at;
    broker.script = ({ route }) => (route === REFRESH ? envelope('CAPABILITY_DENIED') : undefined);
    const token = await session.refresh();
    expect(token.reveal()).toBe(broker.tokens.at(-1));
    expect(broker.of('negotiateSession').at(-1)?.json.mode).toBe('attach_only');
  });

  it('a session that the server has ended says so, once and for all', async () => {
    await using at = await opened();
    const { broker, session } = at;
    broker.script = ({ route }) => (route === REFRESH ? envelope('SESSION_EXPIRED') : undefined);
    await pass(at, 620);
    await eventually(() => session.signal.aborted);
    expect(session.signal.reason).toMatchObject({ code: 'SESSION_EXPIRED' });
    await pass(at, 600);
    expect(refreshes(broker)).toBe(1);
    await expect(session.token()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    await expect(session.reopen()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  });

  it('its lease is lengthened three times in each idle timeout, and not if nobody wants that', async () => {
    await using at = await opened({ keepAlive: true, idleTimeoutSeconds: 300 });
    await pass(at, 520);
    await eventually(() => at.broker.of(HEARTBEAT).length === 5);
    await using other = await opened({ keepAlive: false, idleTimeoutSeconds: 300 });
    await pass(other, 520);
    expect(other.broker.of(HEARTBEAT)).toHaveLength(0);
    expect(await other.session.heartbeat()).toEqual({
      state: 'active',
      expiresAtMs: expect.any(Number),
    });
  });

  it('reopening negotiates again and takes what it gets', async () => {
    await using at = await opened();
    const { broker, session } = at;
    const before = session.sandboxId;
    await session.release();
    await session.reopen();
    expect(session.sandboxId).not.toBe(before);
    expect(broker.made).toBe(2);
    expect((await session.token()).reveal()).toBe(broker.tokens.at(-1));
  });

  it('releasing never fails, and what was remembered is forgotten', async () => {
    using folder = temporaryFolder();
    await using broker = await startFakeBroker();
    using world = sessionWorld({ url: broker.url, cacheFolder: folder.path });
    await using session = await openSession(world, { thread });
    await session.release();
    await using again = await openSession(world, { thread });
    expect(broker.of('negotiateSession').at(-1)?.json.sandbox_hint).toBe(undefined);
    broker.script = () => envelope('INTERNAL');
    await again.release();
  });

  it('the wish to stop ends it: no timer is left', async () => {
    const clock = new ManualClock(Date.now());
    await using broker = await startFakeBroker({ now: () => clock.now() });
    using world = sessionWorld({ url: broker.url, clock });
    const controller = new AbortController();
    await using session = await openSession(world, { thread, signal: controller.signal });
    expect(clock.sleeping).toBe(2);
    controller.abort(new Error('enough'));
    await eventually(() => clock.sleeping === 0);
    expect(session.signal.aborted).toBe(true);
  });
});
