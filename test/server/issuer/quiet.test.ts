import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { beginLogin, login, poll, refresh } from './support/oauth.js';
import { createWorld } from './support/world.js';

const WORDS = ['log', 'info', 'warn', 'error', 'debug'] as const;

let spies: ReturnType<typeof vi.spyOn>[] = [];
beforeEach(() => {
  spies = WORDS.map((word) => vi.spyOn(console, word).mockImplementation(() => undefined));
});
afterEach(() => vi.restoreAllMocks());

it('the issuer and its library write to the log they are given, and nothing to the screen', async () => {
  await using world = await createWorld();
  const { access_token: token, refresh_token: rest } = await login(world);
  await refresh(world.url, rest);
  await refresh(world.url, rest);
  await poll(world.url, (await beginLogin(world.url)).device_code);
  await fetch(`${world.url}/authorize?client_id=nobody`, { headers: { accept: 'text/html' } });
  await fetch(`${world.url}/userinfo`, { headers: { authorization: `Bearer ${token}` } });
  await fetch(`${world.url}/token`);
  // A store that fails is told to the log, in whose lines no secret is.
  await world.db.run('ALTER TABLE clients RENAME TO clients_away');
  expect(
    (
      await fetch(`${world.url}/token`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: 'x', grant_type: 'refresh_token' }),
      })
    ).status,
  ).toBe(500);
  await world.db.run('ALTER TABLE clients_away RENAME TO clients');
  expect(spies.flatMap((spy) => spy.mock.calls)).toEqual([]);
  const log = world.log.join('');
  expect(log).toContain('"the issuer failed"');
  expect(log).toContain('"a refresh token was used again');
  for (const secret of [token, rest, 'correct horse']) expect(log).not.toContain(secret);
});
