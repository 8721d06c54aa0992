import { describe, expect, it } from 'vitest';
import { Logins } from '../../../src/server/issuer/logins.js';
import { startPostgres } from '../../support/postgres.js';
import { introspect, login, refresh } from './support/oauth.js';
import { createWorld, type World } from './support/world.js';

const ROUNDS = process.env['AILSD_SOAK'] === '1' ? 200 : 8;
const ENDING = { tenant: 'default', clientId: 'ailsd-cli', jti: 'tok_x', requestId: 'req_x' };

/** A refresh, now on this replica and now on that, while the login is ended beside it: whatever it gives is worth nothing. */
async function endWhileRefreshing(world: World): Promise<void> {
  const logins = new Logins(world.db);
  for (let round = 0; round < ROUNDS; round += 1) {
    const mine = await login(world);
    const [newest] = await logins.list('usr_ada');
    const id = newest?.id ?? '';
    expect(await logins.end('usr_other', id, ENDING)).toBe(false);
    const [{ status, body }, ended] = await Promise.all([
      refresh(world.replicas[round % 2] ?? '', mine.refresh_token),
      logins.end('usr_ada', id, ENDING),
    ]);
    expect(ended).toBe(true);
    if (status === 200) {
      expect((await introspect(world.url, body.access_token)).body.active).toBe(false);
      expect((await refresh(world.url, body.refresh_token)).body.error).toBe('invalid_grant');
    }
    expect((await introspect(world.url, mine.access_token)).body.active).toBe(false);
    expect((await logins.list('usr_ada')).map((one) => one.id)).not.toContain(id);
  }
}

describe('a login that is ended while it is renewed, over two replicas', () => {
  it('is over, on SQLite', async () => {
    await using world = await createWorld({ replicas: 2 });
    await endWhileRefreshing(world);
  });

  it('is over, on PostgreSQL', async (context) => {
    const postgres = await startPostgres();
    if (postgres.kind === 'skipped') return context.skip();
    await using server = postgres.server;
    await using world = await createWorld({
      replicas: 2,
      storeUrl: await server.createDatabase(),
    });
    await endWhileRefreshing(world);
  });
});
