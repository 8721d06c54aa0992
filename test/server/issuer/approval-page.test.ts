import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { GRANT_TYPES } from '../../../src/protocol/shapes/issuer.js';
import { FORM_LIFE_MS } from '../../../src/server/issuer/browser-session.js';
import { Audit } from '../../../src/server/store/audit.js';
import { proves } from '../../requirements.js';
import { beginLogin, poll, post, signedIn } from './support/oauth.js';
import { Person, type Seen, xsrfOf } from './support/person.js';
import { passTime } from './support/time.js';
import { createWorld, type World } from './support/world.js';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld();
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

/** Pending, and not by the pace alone. */
async function expectUndecided(deviceCode: string): Promise<void> {
  await passTime(world.db, deviceCode, 600);
  expect((await poll(world.url, deviceCode)).body.error).toBe('authorization_pending');
}

function approval(userCode: string, xsrf: string): Record<string, string> {
  return { user_code: userCode, xsrf, decision: 'approve', scope: 'read:sandbox' };
}

function expectShut({ headers }: Seen): void {
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
  );
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
}

describe('the approval page', () => {
  it(proves('a GET shows what is asked and changes nothing', 'OA-06'), async () => {
    const begun = await beginLogin(world.url, undefined, { 'user-agent': 'ailsd/9.9 test' });
    const page = await ada.get(`/device?user_code=${begun.user_code}`);
    expect(page.status).toBe(200);
    expectShut(page);
    for (const shown of [
      begun.user_code,
      'ailsd command line',
      'ailsd-cli',
      'read:sandbox',
      'attach:sandbox',
      '127.0.0.1',
      'ailsd/9.9 test',
      'less than a minute ago',
      'Approve',
      'Deny',
    ]) {
      expect(page.text).toContain(shown);
    }
    expect(page.text).toMatch(/<time datetime="\d{4}-\d\d-\d\dT/);
    await ada.get(
      `/device?user_code=${begun.user_code}&decision=approve&xsrf=${encodeURIComponent(xsrfOf(page))}`,
    );
    // A form without a decision shows the page again.
    expect((await ada.compare(begun.user_code)).text).toContain('Is this the code');
    await expectUndecided(begun.device_code);
  });

  it(
    proves('a form without, with a stale or with another session’s proof is refused', 'OA-06'),
    async () => {
      const begun = await beginLogin(world.url);
      const page = await ada.compare(begun.user_code);
      const own = xsrfOf(page);
      const [at = '', seal = ''] = own.split('.');
      const other = await signedIn(world.url);
      const anonymous = new Person(world.url);
      const before = await anonymous.get('/sign-in');
      const stale = `${(Number.parseInt(at, 36) - FORM_LIFE_MS - 60_000).toString(36)}.${seal}`;
      const forged = [
        '',
        stale,
        `${at}.`,
        `${at}.${seal.slice(1)}A`,
        `.${seal}`,
        'x',
        xsrfOf(before),
        xsrfOf(await other.compare(begun.user_code)),
      ];
      for (const xsrf of forged) {
        const answer = await ada.post('/device', approval(begun.user_code, xsrf));
        expect(answer.status, xsrf).toBe(400);
        expectShut(answer);
      }
      const { xsrf: _, ...without } = approval(begun.user_code, own);
      expect((await ada.post('/device', without)).status).toBe(400);
      expect((await ada.post('/device', { ...without, decision: 'deny' })).status).toBe(400);
      // Its own proof in a browser that is not signed in, and none at all.
      const runOut = await anonymous.post('/device', approval(begun.user_code, own));
      expect(runOut.status).toBe(400);
      // There is a way on from there.
      expect(runOut.text).toContain('href="/device"');
      await expectUndecided(begun.device_code);
    },
  );

  it(proves('a page that was left open for an hour is refused', 'OA-06'), async () => {
    const clock = new ManualClock(Date.now());
    await using slow = await createWorld({ issuer: { clock } });
    const person = await signedIn(slow.url);
    const begun = await beginLogin(slow.url);
    const page = await person.compare(begun.user_code);
    await clock.advance(FORM_LIFE_MS + 1);
    expect((await person.post('/device', approval(begun.user_code, xsrfOf(page)))).status).toBe(
      400,
    );
    expect((await poll(slow.url, begun.device_code)).body.error).toBe('authorization_pending');
    expect((await person.decide(begun.user_code, 'approve')).status).toBe(200);
  });

  it(
    proves('a form posted from another site is refused, however it got its proof', 'OA-06'),
    async () => {
      const begun = await beginLogin(world.url);
      const xsrf = xsrfOf(await ada.compare(begun.user_code));
      const foreign = [
        { origin: 'https://evil.example' },
        { origin: world.url.replace('127.0.0.1', 'localhost') },
        { origin: 'null', 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ];
      for (const headers of foreign) {
        const answer = await ada.post('/device', approval(begun.user_code, xsrf), headers);
        expect(answer.status, JSON.stringify(headers)).toBe(400);
      }
      await expectUndecided(begun.device_code);
      // A page that says no-referrer makes its own forms come from `null`.
      const own = { origin: 'null', 'sec-fetch-site': 'same-origin' };
      expect((await ada.post('/device', approval(begun.user_code, xsrf), own)).text).toContain(
        'Approved',
      );
    },
  );

  it(proves('markup in names, scopes and agents is text', 'OA-06'), async () => {
    const evil = `"><script>alert(1)</script>'&amp;\u202e\u0007`;
    await world.addClient({
      clientId: 'evil"<b>',
      name: `Evil ${evil}`,
      kind: 'public',
      grants: [GRANT_TYPES.deviceCode],
    });
    const agent = { 'user-agent': '<img src=x onerror=alert(1)>"' };
    const begun = await post(
      `${world.url}/device/code`,
      { client_id: 'evil"<b>', scope: `read:sandbox <b>bold</b>` },
      agent,
    );
    const page = await ada.compare(begun.body.user_code);
    expect(page.status).toBe(200);
    expect(page.text).not.toMatch(/<script|<img|<b>bold|<b>"|evil"<b>|\u202e|\u0007/);
    expect(page.text).toContain(
      'Evil &#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#39;&#38;amp;\\u202e\\u0007',
    );
    expect(page.text).toContain('&#60;img src=x onerror=alert(1)&#62;');
    const unknown = await ada.get(`/device?user_code=${encodeURIComponent('<script>')}`);
    expect(unknown.text).not.toContain('<script');
  });

  it(
    proves('a code is decided once: the second time it is as unknown as any', 'OA-06'),
    async () => {
      const begun = await beginLogin(world.url);
      const first = await ada.compare(begun.user_code);
      const form = approval(begun.user_code, xsrfOf(first));
      expect((await ada.post('/device', form)).text).toContain('Approved');
      const twice = await ada.post('/device', form);
      const changed = await ada.post('/device', { ...form, decision: 'deny' });
      const unknown = await (await signedIn(world.url)).compare('BBBB-BBBB');
      const plain = ({ status, text }: Seen) =>
        `${status} ${text.replace(/name="xsrf" value="[^"]*"/g, '')}`;
      expect(plain(twice)).toBe(plain(unknown));
      expect(plain(changed)).toBe(plain(unknown));
      expect((await poll(world.url, begun.device_code)).status).toBe(200);
    },
  );

  it('what was decided can be reloaded by who decided it, and is no wrong guess', async () => {
    await world.db.run('DELETE FROM attempts');
    for (const [decision, heading] of [
      ['approve', 'Approved'],
      ['deny', 'Denied'],
    ] as const) {
      const begun = await beginLogin(world.url);
      const form = approval(begun.user_code, xsrfOf(await ada.compare(begun.user_code)));
      const headers = { cookie: ada.cookie };
      const body = new URLSearchParams({ ...form, decision });
      const init = { method: 'POST', body, headers, redirect: 'manual' } as const;
      const decided = await fetch(`${world.url}/device`, init);
      expect(decided.status).toBe(303);
      const result = decided.headers.get('location') ?? '';
      for (let reloads = 0; reloads < 7; reloads++) {
        const seen = await ada.get(result);
        expect(seen.status).toBe(200);
        expect(seen.text).toContain(`<h1>${heading}</h1>`);
        expectShut(seen);
        expect((await ada.compare(begun.user_code)).text).toContain(`<h1>${heading}</h1>`);
        expect((await ada.post('/device', { ...form, decision })).status).toBe(404);
      }
      await world.addUser('other');
      const other = await signedIn(world.url, 'other');
      expect((await other.get(result)).status).toBe(404);
    }
  });

  it('of many decisions at once one counts', async () => {
    // So that none is put off: an account has five wrong codes, and the stories above had some.
    await world.db.run('DELETE FROM attempts');
    const begun = await beginLogin(world.url);
    const xsrf = xsrfOf(await ada.compare(begun.user_code));
    const form = approval(begun.user_code, xsrf);
    const answers = await Promise.all(
      ['approve', 'deny', 'approve', 'deny'].map((decision) =>
        ada.post('/device', { ...form, decision }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const { entries } = await new Audit(world.db).list({ subject: 'usr_ada' }, { limit: 1_000 });
    const approved = answers.some(({ text }) => text.includes('Approved'));
    expect(entries.at(-1)?.event).toBe(approved ? 'login_approved' : 'login_denied');
    expect((await poll(world.url, begun.device_code)).status).toBe(approved ? 200 : 400);
  });
});
