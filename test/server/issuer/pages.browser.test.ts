import { mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { Users } from '../../../src/server/store/users.js';
import { proves } from '../../requirements.js';
import {
  accessibilityViolations,
  LOOKS,
  type Look,
  openContext,
  type Started,
  startBrowser,
} from '../../support/browser.js';
import { type Company, startCompany } from './support/company.js';
import { beginLogin, claimsOf, poll } from './support/oauth.js';
import { createWorld, PASSWORD, type World } from './support/world.js';

const started: Started = await startBrowser();
const inBrowser = it.skipIf(started.kind === 'skipped');

/** Set to look at the pages: each is then kept there as a picture. */
const SHOTS = process.env['AILSD_SHOTS'];

describe(
  started.kind === 'skipped' ? `the pages (${started.why})` : 'the pages in a real browser',
  () => {
    let world: World;
    let company: Company;
    beforeAll(async () => {
      company = await startCompany();
      const { url: issuer, clientId } = company;
      const clientSecret = new Secret(company.clientSecret);
      world = await createWorld({
        issuer: { upstream: { issuer, clientId, clientSecret, name: 'Example Corp' } },
      });
      company.allow(`${world.url}/sign-in/callback`);
      if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
    });
    afterAll(async () => {
      await world[Symbol.asyncDispose]();
      await company[Symbol.asyncDispose]();
      if (started.kind === 'started') await started[Symbol.asyncDispose]();
    });

    async function open(look?: Look): Promise<Page & AsyncDisposable> {
      if (started.kind === 'skipped') throw new Error(started.why);
      const context = await openContext(started.browser, look);
      const page = await context.newPage();
      return Object.assign(page, { [Symbol.asyncDispose]: () => context.close() });
    }

    async function signIn(page: Page): Promise<void> {
      await page.getByLabel('Account').fill('ada');
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
    }

    for (const look of LOOKS) {
      inBrowser(
        `every page is fit for a ${look.screen} in ${look.colorScheme}, for eyes and for screen readers`,
        async () => {
          await using page = await open(look);
          const problems: string[] = [];
          page.on('console', (message) => problems.push(message.text()));
          page.on('pageerror', (error) => problems.push(String(error)));
          const check = async (name: string) => {
            expect(await accessibilityViolations(page), name).toEqual([]);
            // Nothing sticks out at the side.
            const overflow = await page.evaluate(
              'document.documentElement.scrollWidth - document.documentElement.clientWidth',
            );
            expect(overflow, name).toBe(0);
            const path = `${name}-${look.screen}-${look.colorScheme}.png`;
            if (SHOTS !== undefined)
              await page.screenshot({ path: join(SHOTS, path), fullPage: true });
          };
          await world.db.run('DELETE FROM attempts');
          await page.goto(world.url);
          await check('home');
          await page.getByRole('link', { name: 'Enter a code' }).click();
          await expect.poll(() => page.title()).toBe('Sign in · ailsd');
          await check('sign-in');
          await page.getByLabel('Account').fill('ada');
          await page.getByLabel('Password').fill('wrong');
          await page.getByRole('button', { name: 'Sign in' }).click();
          await page.getByRole('alert').waitFor();
          await check('sign-in-wrong');
          await signIn(page);
          await page.getByLabel('Code').fill('bbbb-bbbb');
          await check('enter-code');
          await page.getByRole('button', { name: 'Continue' }).click();
          await page.getByRole('alert').waitFor();
          await check('unknown-code');

          const first = await beginLogin(
            world.url,
            'openid email read:sandbox write:sandbox exec:sandbox attach:sandbox admin:sandbox',
            { 'user-agent': 'ailsd/0.1.0 (linux; x64) node/20.20.2' },
            { machine_name: 'm'.repeat(64) },
          );
          await page.goto(first.verification_uri_complete);
          await page.getByRole('heading', { name: 'Is this the code in your terminal?' }).waitFor();
          await check('compare');
          await page.getByLabel('Only in these threads').fill('no/thread');
          await page.getByRole('button', { name: 'Approve' }).click();
          await page.getByRole('alert').waitFor();
          await check('compare-wrong');
          await page.getByRole('button', { name: 'Deny' }).click();
          await page.getByRole('heading', { name: 'Denied' }).waitFor();
          await check('denied');

          const second = await beginLogin(world.url);
          await page.goto(second.verification_uri_complete);
          await page.getByRole('button', { name: 'Approve' }).click();
          await page.getByRole('heading', { name: 'Approved' }).waitFor();
          await check('approved');
          await page.goto(`${world.url}/consent/over`);
          await check('expired');
          await page.goto(`${world.url}/authorize?client_id=nobody`);
          await check('error');
          await world.db.run("UPDATE attempts SET count = 5 WHERE bucket LIKE 'code %'");
          await page.goto(`${world.url}/device?user_code=BBBBBBBB`);
          await page.getByRole('heading', { name: 'Too many attempts' }).waitFor();
          await check('too-many');
          await page.goto(`${world.url}/device`);
          await page.getByRole('button', { name: 'Sign out' }).click();
          await page.getByRole('heading', { name: 'Signed out' }).waitFor();
          await check('signed-out');
          // The pages ask for nothing that their own policy refuses; a 4xx is told by the browser itself.
          expect(
            problems.filter((problem) => !/Failed to load resource|favicon/.test(problem)),
          ).toEqual([]);
        },
      );
    }

    inBrowser(
      proves(
        'a login by keyboard alone: what is unticked, shortened and pinned is what is given',
        'OA-06',
      ),
      async () => {
        await using page = await open();
        const begun = await beginLogin(world.url);
        await world.db.run('DELETE FROM attempts');
        await page.goto(begun.verification_uri_complete);
        await page.keyboard.press('Tab');
        await page.keyboard.type('ada');
        await page.keyboard.press('Tab');
        await page.keyboard.type(PASSWORD);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Is this the code in your terminal?' }).waitFor();
        expect(await page.locator('#code').textContent()).toBe(begun.user_code);
        // The boxes in their order: write and exec are unticked.
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Space');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Space');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        await page.keyboard.press('ArrowLeft');
        await page.keyboard.press('Tab');
        await page.keyboard.type('thr_demo');
        // Enter in a field decides nothing: that takes a button.
        await page.keyboard.press('Enter');
        expect((await poll(world.url, begun.device_code)).body.error).toBe('authorization_pending');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        const outline = await page.evaluate(
          'getComputedStyle(document.activeElement).outlineStyle + document.activeElement.textContent',
        );
        expect(outline).toBe('solidApprove');
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Approved' }).waitFor();
        const fresh = await beginLogin(world.url);
        expect(fresh.user_code).not.toBe(begun.user_code);
        await world.db.run(
          "UPDATE oidc_payloads SET last_poll_at = NULL WHERE kind = 'DeviceCode'",
        );
        const { body } = await poll(world.url, begun.device_code);
        expect(claimsOf(body.access_token)).toMatchObject({
          scope: 'read:sandbox attach:sandbox',
          threads: ['thr_demo'],
        });
        const rows = await world.db.query(
          "SELECT expires_at - created_at AS life FROM oidc_payloads WHERE kind = 'Grant' ORDER BY created_at DESC",
        );
        expect(Math.round(Number(rows[0]?.['life']) / 1000 / 60)).toBe(8 * 60);
      },
    );

    describe('from another site', () => {
      let evil: Server;
      let evilUrl: string;
      let html = '';
      beforeAll(async () => {
        evil = createServer((_request, response) =>
          response.writeHead(200, { 'content-type': 'text/html' }).end(html),
        );
        await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
        const address = evil.address();
        // Another host name, so another site to a browser.
        evilUrl = `http://localhost:${typeof address === 'object' ? address?.port : 0}`;
      });
      afterAll(() => {
        evil.closeAllConnections();
        evil.close();
      });

      inBrowser(proves('the page is not shown in a frame', 'OA-06'), async () => {
        await using page = await open();
        await page.goto(`${world.url}/sign-in`);
        await signIn(page);
        await page.getByLabel('Code').waitFor();
        const begun = await beginLogin(world.url);
        html = `<iframe src="${begun.verification_uri_complete}"></iframe>`;
        const refused: string[] = [];
        page.on('console', (message) => refused.push(message.text()));
        await page.goto(evilUrl);
        await expect.poll(() => refused.join('\n')).toMatch(/frame-ancestors|X-Frame-Options/i);
        expect(
          page
            .frames()
            .map((frame) => frame.url())
            .join(' '),
        ).not.toContain('/device');
      });

      inBrowser(
        proves('a form of another site approves nothing, cookies or not', 'OA-06'),
        async () => {
          await using page = await open();
          await page.goto(`${world.url}/sign-in`);
          await signIn(page);
          const begun = await beginLogin(world.url);
          await page.goto(begun.verification_uri_complete);
          const xsrf = await page.locator('main input[name=xsrf]').inputValue();
          html = `<form method="post" action="${world.url}/device"><input name="xsrf" value="${xsrf}"><input name="user_code" value="${begun.user_code}"><input name="decision" value="approve"><button>Win</button></form>`;
          await page.goto(evilUrl);
          await page.getByRole('button', { name: 'Win' }).click();
          await page.getByRole('heading', { name: 'This page has run out' }).waitFor();
          expect((await poll(world.url, begun.device_code)).body.error).toBe(
            'authorization_pending',
          );
        },
      );
    });

    inBrowser('a program on loopback gets its code back, past the policy of the page', async () => {
      await using page = await open();
      const codes: string[] = [];
      const program = createServer((request, response) => {
        codes.push(new URL(request.url ?? '/', 'http://127.0.0.1').searchParams.get('code') ?? '');
        response.end('done');
      });
      await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve));
      const address = program.address();
      const redirect = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/callback`;
      await page.goto(
        `${world.url}/authorize?${new URLSearchParams({ client_id: 'ailsd-cli', response_type: 'code', redirect_uri: redirect, scope: 'read:sandbox', code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' })}`,
      );
      await signIn(page);
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.getByText('done').waitFor();
      expect(codes[0]).toMatch(/^[\w-]{20,}$/);
      program.closeAllConnections();
      program.close();
    });

    inBrowser('the company login goes there and back', async () => {
      await using page = await open();
      await new Users(world.db).add({
        id: 'usr_emp',
        tenant: 'corp',
        name: 'emp',
        scopes: [],
        upstream: { issuer: company.url, subject: 'emp-1' },
      });
      await page.goto(`${world.url}/sign-in`);
      await page.getByRole('button', { name: 'Continue with Example Corp' }).click();
      await page.getByText('Signed in as emp').waitFor();
      expect(company.requests).toContain('GET /auth');
      expect(page.url()).toBe(`${world.url}/device`);
    });
  },
);
