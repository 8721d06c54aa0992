/** A real Chromium for the pages: from the registry package, headless, kept off every network but loopback. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import chromiumPackage from '@sparticuz/chromium';
import type { Result } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

export type Started =
  | ({ readonly kind: 'started'; readonly browser: Browser } & AsyncDisposable)
  | { readonly kind: 'skipped'; readonly why: string };

/** Where no Chromium can start, the tests that need one say so and are skipped. */
export async function startBrowser(): Promise<Started> {
  try {
    const browser = await chromium.launch({
      executablePath: await unpackedChromium(),
      headless: true,
      args: ARGUMENTS,
      timeout: LAUNCH_TIMEOUT_MS,
    });
    return { kind: 'started', browser, [Symbol.asyncDispose]: () => browser.close() };
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    return { kind: 'skipped', why: `skipped: no Chromium (${why})` };
  }
}

/** Root, as in a container, has no sandbox to give. The rest keeps a fresh profile from asking its maker for news. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--no-first-run',
  '--no-pings',
  '--font-render-hinting=none',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];

const LAUNCH_TIMEOUT_MS = 30_000;

/** Unpacked once for all runs, beside the package; the package itself would do it into the system's folder each boot. */
async function unpackedChromium(): Promise<string> {
  const folder = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'ailsd-chromium');
  const program = join(folder, 'chromium');
  if (existsSync(program)) return program;
  const mine = `${folder}-${process.pid}`;
  mkdirSync(mine, { recursive: true });
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = mine;
  try {
    await chromiumPackage.executablePath();
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  }
  try {
    renameSync(mine, folder);
  } catch {
    // Another process was first.
    rmSync(mine, { recursive: true, force: true });
  }
  return program;
}

export const SCREENS = {
  desk: { width: 1100, height: 900 },
  phone: { width: 360, height: 740 },
} as const;

export interface Look {
  readonly screen: keyof typeof SCREENS;
  readonly colorScheme: 'light' | 'dark';
}

export const LOOKS: readonly Look[] = [
  { screen: 'desk', colorScheme: 'light' },
  { screen: 'desk', colorScheme: 'dark' },
  { screen: 'phone', colorScheme: 'light' },
  { screen: 'phone', colorScheme: 'dark' },
];

/** A browser of its own: no cookies yet. */
export function openContext(
  browser: Browser,
  look: Look = { screen: 'desk', colorScheme: 'light' },
): Promise<BrowserContext> {
  return browser.newContext({
    viewport: SCREENS[look.screen],
    colorScheme: look.colorScheme,
    isMobile: look.screen === 'phone',
    hasTouch: look.screen === 'phone',
  });
}

/** What axe finds wrong on a page; its script is put in by the debugger, past the page's own policy. */
export async function accessibilityViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE_SOURCE);
  const found: Result[] = await page.evaluate('axe.run().then((results) => results.violations)');
  return found.map(
    ({ id, help, nodes }) =>
      `${id}: ${help} (${nodes.map((node) => node.target.join(' ')).join(', ')})`,
  );
}

const AXE_SOURCE = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);
