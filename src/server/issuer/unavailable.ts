/** What the issuer says while the store is away: to people on a page, to programs in OAuth's words (RFC 6749 section 4.1.2.1). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AilsdError } from '../../protocol/errors.js';
import { unavailablePage } from '../web/outcome-page.js';
import { renderPage } from '../web/page.js';

const RETRY_AFTER_SECONDS = 1;

export interface Unavailable {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** What is for people as a rule may still be asked for by a program. */
export function unavailable({ headers }: IncomingMessage, isForPeople: boolean): Unavailable {
  if (isForPeople && takesHtml(headers.accept)) {
    return renderPage(unavailablePage(RETRY_AFTER_SECONDS));
  }
  return FOR_PROGRAMS;
}

/** By its name: who takes anything gets what programs get. */
export function takesHtml(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes('text/html') === true;
}

const FOR_PROGRAMS: Unavailable = {
  status: 503,
  headers: {
    'Content-Type': 'application/json',
    'Retry-After': String(RETRY_AFTER_SECONDS),
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  },
  text: JSON.stringify({
    error: 'temporarily_unavailable',
    error_description: 'the issuer cannot answer just now',
  }),
};

export function isUnavailable(error: unknown): boolean {
  return error instanceof AilsdError && error.code === 'BACKEND_UNAVAILABLE';
}

export function sendUnavailable(
  request: IncomingMessage,
  response: ServerResponse,
  isForPeople: boolean,
): void {
  const { status, headers, text } = unavailable(request, isForPeople);
  response.writeHead(status, headers);
  response.end(text);
}
