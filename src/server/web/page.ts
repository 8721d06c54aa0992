/** The frame every page has, and the headers that keep a page to itself: no scripts, no frames, no caches, no referrers. */
import { type Html, html } from './html.js';
import { STYLE, STYLE_SOURCE } from './style.js';

export interface Page {
  readonly status: number;
  readonly title: string;
  readonly body: Html;
  /** Below the sheet: who is signed in, and the way out. */
  readonly footer?: Html | undefined;
  /** Origins besides ours that a form of this page may lead to: browsers hold redirects to it as well. */
  readonly formTargets?: readonly string[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

export interface RenderedPage {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export function renderPage(page: Page): RenderedPage {
  const headers: Record<string, string> = {
    ...PAGE_HEADERS,
    'content-security-policy': securityPolicy(page.formTargets ?? []),
  };
  if (page.retryAfterSeconds !== undefined) headers['retry-after'] = String(page.retryAfterSeconds);
  return { status: page.status, headers, text: toText(page) };
}

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
} as const;

function securityPolicy(formTargets: readonly string[]): string {
  return [
    "default-src 'none'",
    `style-src ${STYLE_SOURCE}`,
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

function toText({ title, body, footer }: Page): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · ailsd</title>
`;
  // The sheet goes in as it is: its hash is what the browser checks, and it holds nothing from outside.
  return `${page}<style>${STYLE}</style>
${html`</head>
<body>
<header>${LOGO}<strong>ailsd</strong></header>
<main>
${body}
</main>
${footer && html`<footer>${footer}</footer>`}
</body>
</html>
`}`;
}

const LOGO = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><rect x="3" y="4" width="18" height="16" rx="4"/><path d="m7.5 9.5 3 2.5-3 2.5M13 15h3.5"/></svg>`;
