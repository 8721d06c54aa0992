import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { type PostgresServer, startPostgres } from '../../support/postgres.js';
import {
  type Answer,
  beginLogin,
  introspect,
  login,
  poll,
  refresh,
  signedIn,
} from './support/oauth.js';
import type { Person } from './support/person.js';
import { createWorld, type World } from './support/world.js';

/** On the second engine fewer are enough: what differs there is the database, not the story. */
const ROUNDS = { sqlite: 50, postgres: process.env['AILSD_SOAK'] === '1' ? 50 : 15 } as const;
const AT_ONCE = 20;

/** All at once, every second one at the other replica. */
function together(world: World, ask: (url: string) => Promise<Answer>): Promise<Answer[]> {
  const asked = Array.from({ length: AT_ONCE }, (_, at) =>
    ask(world.replicas[at % world.replicas.length] ?? ''),
  );
  return Promise.all(asked);
}

function outcomes(answers: readonly Answer[]): {
  readonly good: Answer[];
  readonly refused: string[];
} {
  return {
    good: answers.filter(({ status }) => status === 200),
    refused: answers
      .filter(({ status }) => status !== 200)
      .map(({ status, body }) => `${status} ${body.error}`),
  };
}

async function deviceCodes(world: World, ada: Person): Promise<void> {
  for (let round = 1; round <= ROUNDS[world.db.engine]; round++) {
    const begun = await beginLogin(world.url);
    await ada.decide(begun.user_code, 'approve');
    const { good, refused } = outcomes(
      await together(world, (url) => poll(url, begun.device_code)),
    );
    expect(good, `round ${round}`).toHaveLength(1);
    expect(new Set(refused)).toEqual(new Set(['400 invalid_grant']));
    // The one family there is lives: nobody else's attempt has ended it.
    const token = good[0]?.body.access_token;
    expect((await introspect(world.url, token)).body.active).toBe(true);
  }
}

async function refreshTokens(world: World, ada: Person): Promise<void> {
  for (let round = 1; round <= ROUNDS[world.db.engine]; round++) {
    const { refresh_token: token } = await login(world, { person: ada });
    const { good, refused } = outcomes(await together(world, (url) => refresh(url, token)));
    expect(good.length, `round ${round}`).toBeLessThanOrEqual(1);
    expect(new Set(refused)).toEqual(new Set(['400 invalid_grant']));
    // Nineteen others had it too: nothing of that family is good any more.
    for (const { body } of good) {
      expect((await introspect(world.url, body.access_token)).body).toEqual({ active: false });
      expect((await refresh(world.url, body.refresh_token)).status).toBe(400);
    }
  }
}

describe('single use over two replicas', () => {
  describe('on SQLite', () => {
    let world: World;
    let ada: Person;
    beforeAll(async () => {
      world = await createWorld({ replicas: 2 });
      ada = await signedIn(world.url);
    });
    afterAll(() => world[Symbol.asyncDispose]());

    it(proves('a device code is redeemed once', 'OA-04'), () => deviceCodes(world, ada));
    it(proves('a refresh token is used once', 'OA-04'), () => refreshTokens(world, ada));
  });

  describe('on PostgreSQL', async () => {
    const started = await startPostgres();
    const server: PostgresServer | undefined =
      started.kind === 'started' ? started.server : undefined;
    let world: World;
    let ada: Person;
    beforeAll(async () => {
      if (server === undefined) return;
      world = await createWorld({ replicas: 2, storeUrl: await server.createDatabase() });
      ada = await signedIn(world.url);
    });
    afterAll(async () => {
      await world?.[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
    });

    const run = it.skipIf(server === undefined);
    run(proves('a device code is redeemed once', 'OA-04'), () => deviceCodes(world, ada));
    run(proves('a refresh token is used once', 'OA-04'), () => refreshTokens(world, ada));
  });
});
