/** Our HTTP in the shape of `fetch`, for libraries that take one: the same proxies, certificates and bounds. */
import { AilsdError } from '../../protocol/errors.js';
import type { Http } from './http.js';

/** What such libraries pass; redirects are never followed, whatever they ask. */
export interface FetchInit {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

export type Fetch = (url: string, init?: FetchInit) => Promise<Response>;

/** Failures are thrown as `AilsdError`, aborts as the signal's reason. */
export function createFetch(http: Pick<Http, 'request'>): Fetch {
  return async (url, init = {}) => {
    const { method, signal } = init;
    const { body, type } = bodyOf(init.body);
    const headers = type === undefined ? init.headers : { 'content-type': type, ...init.headers };
    const answer = await http.request({ url, method, signal, headers, body });
    // Outside of this `Response` has no such thing, and neither has HTTP.
    if (answer.status < 200 || answer.status > 599) {
      throw new AilsdError('PROTOCOL_MISMATCH', `the server answered ${answer.status}`);
    }
    return new Response(BODILESS.has(answer.status) ? null : Buffer.from(answer.body), {
      status: answer.status,
      headers: answer.headers,
    });
  };
}

const BODILESS = new Set([204, 205, 304]);

function bodyOf(body: unknown): {
  readonly body: string | Uint8Array | undefined;
  readonly type?: string;
} {
  if (body === undefined || body === null) return { body: undefined };
  if (typeof body === 'string' || body instanceof Uint8Array) return { body };
  if (body instanceof ArrayBuffer) return { body: new Uint8Array(body) };
  if (body instanceof URLSearchParams) {
    return { body: body.toString(), type: 'application/x-www-form-urlencoded;charset=UTF-8' };
  }
  throw new AilsdError('INTERNAL', 'a request body of a kind that is not sent here');
}
