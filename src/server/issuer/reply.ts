/** Sends what the pages' routes decide: a page, or the way to another. */
import type { ServerResponse } from 'node:http';
import { type Page, renderPage } from '../web/page.js';

export type Reply =
  | { readonly kind: 'page'; readonly page: Page; readonly cookies?: readonly string[] | undefined }
  | { readonly kind: 'go'; readonly to: string; readonly cookies?: readonly string[] | undefined }
  /** The library has answered by itself. */
  | { readonly kind: 'sent' };

export function show(page: Page, cookies?: readonly string[]): Reply {
  return { kind: 'page', page, cookies };
}

/** Always by GET: what was posted is not posted again. */
export function go(to: string, cookies?: readonly string[]): Reply {
  return { kind: 'go', to, cookies };
}

export function send(response: ServerResponse, reply: Reply): void {
  if (reply.kind === 'sent') return;
  if (reply.cookies !== undefined) response.appendHeader('Set-Cookie', reply.cookies);
  if (reply.kind === 'go') {
    response.writeHead(303, { Location: reply.to, ...NO_STORE });
    response.end();
    return;
  }
  const { status, headers, text } = renderPage(reply.page);
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** For programs: RFC 6749 section 5.2 has no word for it, section 4.1.2.1 does. */
export function sendTooMany(response: ServerResponse, retryAfterSeconds: number): void {
  const headers = { 'Content-Type': 'application/json', 'Retry-After': retryAfterSeconds };
  response.writeHead(429, { ...headers, ...NO_STORE });
  const says = 'too many logins were begun from this address';
  response.end(JSON.stringify({ error: 'temporarily_unavailable', error_description: says }));
}

const NO_STORE = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' } as const;
