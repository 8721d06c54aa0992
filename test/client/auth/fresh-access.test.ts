import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { Secret } from '../../../src/base/secret.js';
import type { Access } from '../../../src/client/auth/access.js';
import { freshAccess } from '../../../src/client/auth/fresh-access.js';
import type { AuthWorld } from '../../../src/client/auth/world.js';
import { MemoryStore } from '../../../src/client/credentials/memory-store.js';
import { createHttp } from '../../../src/client/http/http.js';
import { temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { type FakeIssuer, startFakeIssuer } from '../../support/fake-issuer.js';

const LIFE_MS = 900_000;

/** A login that a real issuer renews, on a clock that stands still until it is moved. */
async function worldOf(issuer: FakeIssuer, folder: string, variables: Record<string, string> = {}) {
  const clock = new ManualClock(Date.now());
  const store = new MemoryStore();
  const http = createHttp({ userAgent: 'test', clock, logger: silentLogger });
  const refreshToken = issuer.issueRefreshToken();
  await store.set(
    {
      issuer: issuer.url,
      clientId: 'ailsd-cli',
      account: 'ada',
      scopes: ['read:sandbox'],
      accessToken: new Secret('first'),
      accessExpiresAtMs: clock.now() + LIFE_MS,
      refreshToken: new Secret(refreshToken),
      obtainedAtMs: clock.now(),
    },
    { makeCurrent: true },
  );
  const world: AuthWorld = {
    url: () => issuer.url,
    variable: (name) => variables[name],
    openStore: async () => ({ store, [Symbol.dispose]: () => {} }),
    configFolder: folder,
    userId: process.getuid?.(),
    http: async () => http,
    clock,
  };
  return { world, clock, http };
}

describe('a token that is kept fresh', () => {
  it('is renewed when two thirds of its life are over, again and again, until it is called off', async () => {
    await using issuer = await startFakeIssuer({ lifeSeconds: LIFE_MS / 1000 });
    using folder = temporaryFolder();
    const { world, clock, http } = await worldOf(issuer, folder.path);
    const ending = new AbortController();
    const seen: Access[] = [];
    const done = (async () => {
      for await (const access of freshAccess(world, ending.signal)) seen.push(access);
    })();
    for (const renewals of [0, 1, 2, 3]) {
      await eventually(() => seen.length === renewals + 1 && clock.sleeping === 1);
      expect(issuer.grants('refresh_token')).toHaveLength(renewals);
      const { renewAtMs = 0, expiresAtMs = 0 } = seen.at(-1) ?? {};
      expect(expiresAtMs - renewAtMs).toBe(LIFE_MS / 3);
      await clock.advance(renewAtMs - clock.now() - 1);
      expect(issuer.grants('refresh_token')).toHaveLength(renewals);
      // No further: a clock that ran on would run out the time of the request too.
      if (renewals < 3) await clock.advance(1);
    }
    expect(new Set(seen.map((access) => access.token.reveal())).size).toBe(4);
    ending.abort();
    await done;
    http[Symbol.dispose]();
  });

  it('an issuer that cannot be reached is tried again while the token is good, and is an error after', async () => {
    using folder = temporaryFolder();
    await using issuer = await startFakeIssuer({ lifeSeconds: LIFE_MS / 1000 });
    const { world, clock, http } = await worldOf(issuer, folder.path);
    const ending = new AbortController();
    const accesses = freshAccess(world, ending.signal);
    await accesses.next();
    issuer.script = ({ path }) => (path === '/token' ? 'cut' : undefined);
    const renewed = accesses.next();
    await eventually(() => clock.sleeping === 1);
    await clock.advance((LIFE_MS * 2) / 3 + 1);
    await eventually(() => issuer.grants('refresh_token').length > 0 && clock.sleeping === 1);
    issuer.script = undefined;
    await clock.advance(10_000);
    expect((await renewed).done).toBe(false);
    ending.abort();
    expect((await accesses.next()).done).toBe(true);
    http[Symbol.dispose]();
  });

  it('a token from a file is given as it is, and again when the file has a newer one', async () => {
    await using issuer = await startFakeIssuer();
    using folder = temporaryFolder();
    const file = join(folder.path, 'token');
    const tokenUntil = (ms: number) =>
      `x.${Buffer.from(JSON.stringify({ exp: Math.floor(ms / 1000) })).toString('base64url')}.x`;
    const { world, clock, http } = await worldOf(issuer, folder.path, { AILSD_TOKEN_FILE: file });
    writeFileSync(file, tokenUntil(clock.now() + LIFE_MS), { mode: 0o600 });
    const ending = new AbortController();
    const accesses = freshAccess(world, ending.signal);
    await accesses.next();
    const second = accesses.next();
    await eventually(() => clock.sleeping === 1);
    const replacement = tokenUntil(clock.now() + 2 * LIFE_MS);
    writeFileSync(file, replacement, { mode: 0o600 });
    await clock.advance(LIFE_MS - 50_000);
    expect((await second).value).toMatchObject({ renewAtMs: undefined });
    expect(issuer.requests).toEqual([]);
    ending.abort();
    http[Symbol.dispose]();
  });
});
