import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { BrowserSessions } from '../../../src/server/issuer/browser-session.js';
import { hashId } from '../../../src/server/issuer/device-codes.js';
import { KeyRing } from '../../../src/server/issuer/key-ring.js';
import { addressBucket } from '../../../src/server/issuer/request-origin.js';
import { OidcPayloads } from '../../../src/server/store/oidc-payloads.js';
import { Users } from '../../../src/server/store/users.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { beginLogin, poll, signedIn } from './support/oauth.js';
import { Person, type Seen } from './support/person.js';
import { createWorld, type World } from './support/world.js';

const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

function wrongCode(): string {
  return Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

/** Somebody whose signing in is not what is tested: the password's hash is slow, and there are fifty. */
async function someone(world: World, name: string): Promise<Record<string, string>> {
  const id = await world.addUser(name);
  const user = await new Users(world.db).find(id);
  const keys = await KeyRing.open({ db: world.db, clock: systemClock, logger: silentLogger });
  const sessions = new BrowserSessions({
    db: world.db,
    keys,
    clock: systemClock,
    origin: world.url,
  });
  if (user === undefined) throw new Error('no such user');
  return { cookie: (await sessions.signIn(user)).split(';')[0] ?? '' };
}

async function guess(
  world: World,
  headers: Record<string, string>,
  code = wrongCode(),
): Promise<Seen> {
  const response = await fetch(`${world.url}/device?user_code=${code}`, {
    headers,
    redirect: 'manual',
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** In parallel, but not all at once. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

describe('guessing user codes', () => {
  let direct: World;
  let behind: World;
  beforeAll(async () => {
    direct = await createWorld();
    behind = await createWorld({ proxies: ['127.0.0.1'] });
  });
  afterAll(async () => {
    await direct[Symbol.asyncDispose]();
    await behind[Symbol.asyncDispose]();
  });

  it(
    proves('five wrong codes hold an account and an address up, right codes included', 'OA-05'),
    async () => {
      const outstanding = await Promise.all(
        Array.from({ length: 100 }, () => beginLogin(direct.url)),
      );
      const mallory = await someone(direct, 'mallory');
      const answers = await Promise.all(Array.from({ length: 40 }, () => guess(direct, mallory)));
      expect(answers.filter(({ status }) => status === 404)).toHaveLength(5);
      const limited = answers.filter(({ status }) => status === 429);
      expect(limited).toHaveLength(35);
      for (const { headers } of limited) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(500);
        expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(600);
      }
      expect((await guess(direct, mallory, outstanding[0]?.user_code)).status).toBe(429);

      // A header that nobody vouches for: the same thousand times over.
      await each(
        Array.from({ length: 1_000 }, (_, at) => at),
        async (at) => {
          const forged = `10.${at >> 8}.${at & 255}.1`;
          const { status } = await guess(direct, {
            ...mallory,
            'x-forwarded-for': forged,
            forwarded: `for=${forged}`,
            'x-real-ip': forged,
          });
          expect(status).toBe(429);
        },
      );
      // Nor does another account help from the same address.
      const other = await someone(direct, 'mallory2');
      expect((await guess(direct, other, outstanding[1]?.user_code)).status).toBe(429);
      const both = { ...other, 'x-forwarded-for': '10.99.99.99' };
      expect((await guess(direct, both, outstanding[1]?.user_code)).status).toBe(429);
    },
  );

  it(
    proves('fifty accounts at fifty addresses get 250 answers, and hold nobody else up', 'OA-05'),
    async () => {
      const victim = await signedIn(behind.url, 'ada', { 'x-forwarded-for': '198.51.100.7' });
      const begun = await beginLogin(behind.url);
      const names = Array.from({ length: 50 }, (_, at) => at);
      const accounts: Record<string, string>[] = [];
      for (const at of names) accounts.push(await someone(behind, `mallory${at}`));
      const seen = new Map<number, number>();
      const count = ({ status }: Seen) => {
        seen.set(status, (seen.get(status) ?? 0) + 1);
      };
      const attack = each([...names, ...names, ...names], async (at) => {
        for (let tries = 0; tries < 5; tries++) {
          count(await guess(behind, { ...accounts[at], 'x-forwarded-for': `203.0.113.${at}` }));
        }
      });
      const approved = victim.decide(begun.user_code, 'approve');
      await attack;
      // Each account at another's address.
      await each(names, async (at) => {
        count(
          await guess(behind, { ...accounts[at], 'x-forwarded-for': `203.0.113.${(at + 1) % 50}` }),
        );
      });
      // Nor at an address that nobody has guessed from, and not with the right code.
      const elsewhere = { ...accounts[0], 'x-forwarded-for': '203.0.113.200' };
      expect(
        (await guess(behind, elsewhere, (await beginLogin(behind.url)).user_code)).status,
      ).toBe(429);
      expect(seen.get(404)).toBe(250);
      expect(seen.get(429)).toBe(550);
      expect((await approved).text).toContain('Approved');
      expect((await poll(behind.url, begun.device_code)).status).toBe(200);
    },
  );

  it(proves('codes that never were, ran out or were used get the same page', 'OA-05'), async () => {
    await using world = await createWorld({ issuer: { deviceCodeSeconds: 1 } });
    await using lasting = await createWorld();
    const brief = await beginLogin(world.url);
    const payloads = new OidcPayloads(world.db);
    await eventually(
      async () =>
        (await payloads.find('DeviceCode', hashId(brief.device_code)))?.isExpired === true,
    );
    const expired = await guess(world, await someone(world, 'eve'), brief.user_code);

    const used = await beginLogin(lasting.url);
    const ada = await signedIn(lasting.url);
    await ada.decide(used.user_code, 'approve');
    const eve = await someone(lasting, 'eve');
    const again = await guess(lasting, eve, used.user_code);
    const unknown = await guess(lasting, eve);
    const plain = ({ status, text }: Seen) =>
      `${status} ${text.replace(/name="xsrf" value="[^"]*"/g, '')}`;
    expect(plain(again)).toBe(plain(unknown));
    expect(plain(expired)).toBe(plain(unknown));
    expect(unknown.status).toBe(404);
  });

  it(
    proves('codes are eight consonants in any case and punctuation, and well mixed', 'OA-05'),
    async () => {
      const codes = await Promise.all(Array.from({ length: 200 }, () => beginLogin(direct.url)));
      const letters = codes.map(({ user_code: code }) => code.replace('-', '')).join('');
      expect(letters).toMatch(new RegExp(`^[${LETTERS}]{1600}$`));
      // Each of twenty letters 80 times on average; three in a million would stray this far.
      for (const letter of LETTERS) {
        const times = letters.split(letter).length - 1;
        expect(times).toBeGreaterThan(35);
        expect(times).toBeLessThan(130);
      }
      expect(new Set(codes.map(({ user_code: code }) => code)).size).toBe(200);

      await using world = await createWorld();
      const ada = await signedIn(world.url);
      const { user_code: code } = await beginLogin(world.url);
      for (const typed of [
        code,
        code.toLowerCase(),
        code.replace('-', ''),
        ` ${code.toLowerCase().split('').join(' ')} `,
        code.replace('-', '_._'),
      ]) {
        const page = await ada.compare(typed);
        expect(page.status).toBe(200);
        expect(page.text).toContain(`id="code">${code}</p>`);
      }
    },
  );

  it('without being signed in no code is looked up', async () => {
    const begun = await beginLogin(direct.url);
    const right = await guess(direct, {}, begun.user_code);
    const wrong = await guess(direct, {}, 'BBBB-BBBB');
    expect([right.status, wrong.status]).toEqual([303, 303]);
    expect(right.headers.get('location')).toBe(
      `/sign-in?next=%2Fdevice%3Fuser_code%3D${begun.user_code}`,
    );
    expect(
      (await new Person(direct.url).post('/device', { user_code: begun.user_code })).status,
    ).toBe(400);
  });

  it('an address of IPv6 is its network, for everybody there has countless', () => {
    expect(addressBucket('2001:db8::1')).toBe(addressBucket('2001:db8:0:0:ffff::9'));
    expect(addressBucket('2001:db8:0:1::1')).not.toBe(addressBucket('2001:db8::1'));
    expect(addressBucket('::1')).toBe('0:0:0:0::/64');
    expect(addressBucket('203.0.113.7')).toBe('203.0.113.7');
  });
});
