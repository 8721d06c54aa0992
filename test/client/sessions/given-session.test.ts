import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { openSession } from '../../../src/client/sessions/open-session.js';
import { parseThreadId } from '../../../src/protocol/ids.js';
import { sessionWorld } from './support/world.js';

const ACCESS = {
  session_id: 'ssn_local_1',
  thread_id: 'thr_123',
  sandbox: {
    id: 'sb_123',
    provider: 'langsmith',
    http_base_url: 'https://dp.example.com/v1',
    ws_base_url: 'wss://dp.example.com/v1',
  },
  token: 'provider_token',
  expires_at: '2026-02-27T20:20:00Z',
};
const BEFORE = Date.parse('2026-02-27T20:00:00Z');

function world(given: unknown, clock = new ManualClock(BEFORE)) {
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  // Nobody listens there: whoever asks a server fails.
  return sessionWorld({ url: 'http://127.0.0.1:1', clock, given: text });
}

describe('access that was negotiated elsewhere', () => {
  it.each([
    ['bare', ACCESS],
    ["inside a run's configuration", { config: { configurable: { sandbox: ACCESS } } }],
    ['with more in it', { ...ACCESS, refresh_before: null, policy: { x: 1 }, other: true }],
  ])('%s: no server is asked', async (_, given) => {
    using at = world(given);
    await using session = await openSession(at, { thread: parseThreadId('thr_123') });
    expect(session).toMatchObject({
      sessionId: 'ssn_local_1',
      threadId: 'thr_123',
      sandboxId: 'sb_123',
      httpUrl: 'https://dp.example.com/v1',
      wsUrl: 'wss://dp.example.com/v1',
      canRefresh: false,
    });
    expect((await session.token()).reveal()).toBe('provider_token');
    await session.reopen();
    await session.release();
  });

  it('names its thread; another one is a mistake', async () => {
    using at = world(ACCESS);
    await using session = await openSession(at, {});
    expect(session.threadId).toBe('thr_123');
    await expect(openSession(at, { thread: parseThreadId('thr_x') })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('another thread'),
    });
  });

  it('ends with its token, and says that it cannot be renewed', async () => {
    const clock = new ManualClock(BEFORE);
    using at = world(ACCESS, clock);
    await using session = await openSession(at, {});
    await clock.advance(20 * 60_000);
    await session.token();
    await clock.advance(6_000);
    const expected = {
      code: 'TOKEN_EXPIRED',
      message: expect.stringContaining('without a server it cannot be renewed'),
      hint: expect.stringContaining('AILSD_SANDBOX'),
    };
    await expect(session.token()).rejects.toMatchObject(expected);
    await expect(session.refresh()).rejects.toMatchObject(expected);
    await expect(session.reopen()).rejects.toMatchObject(expected);
    await expect(session.heartbeat()).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });

  it.each([
    ['no JSON', '{"token":"secret-token"'],
    ['another thing', '[]'],
    ['a field missing', JSON.stringify({ ...ACCESS, token: undefined })],
    ['no address', JSON.stringify({ ...ACCESS, sandbox: { ...ACCESS.sandbox, ws_base_url: 'x' } })],
    ['an empty configuration', '{"config":{"configurable":{}}}'],
    ['far too much', JSON.stringify({ ...ACCESS, pad: 'x'.repeat(70_000) })],
  ])('%s is refused by name, and its text is not repeated', async (_, text) => {
    using at = world(text);
    const opening = openSession(at, {});
    await expect(opening).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('AILSD_SANDBOX'),
    });
    await opening.catch((error) =>
      expect(String(error)).not.toMatch(/secret-token|provider_token/),
    );
  });

  it('tells of no later token, and ends that when it is closed', async () => {
    using at = world(ACCESS);
    const session = await openSession(at, {});
    const next = session.tokens().next();
    await session[Symbol.asyncDispose]();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});
