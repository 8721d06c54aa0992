/** What the issuer's endpoints say while the store is away: try again, in OAuth's words (RFC 6749 section 4.1.2.1). */
import type { ServerResponse } from 'node:http';
import { AilsdError } from '../../protocol/errors.js';

export const UNAVAILABLE = {
  status: 503,
  headers: {
    'Content-Type': 'application/json',
    'Retry-After': '1',
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  },
  body: JSON.stringify({
    error: 'temporarily_unavailable',
    error_description: 'the issuer cannot answer just now',
  }),
} as const;

export function isUnavailable(error: unknown): boolean {
  return error instanceof AilsdError && error.code === 'BACKEND_UNAVAILABLE';
}

export function sendUnavailable(response: ServerResponse): void {
  response.writeHead(UNAVAILABLE.status, UNAVAILABLE.headers);
  response.end(UNAVAILABLE.body);
}
