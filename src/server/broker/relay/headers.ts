/** Which headers go through the relay: those with a meaning at the other end. Cookies, tokens and hop-by-hop ones are not among them. */
import type { IncomingHttpHeaders } from 'node:http';

const TO_SANDBOX = [
  'accept',
  'if-match',
  'if-none-match',
  'range',
  'if-range',
  'idempotency-key',
] as const;
const OF_BODY = ['content-type', 'content-length'] as const;

const TO_CLIENT = [
  'content-type',
  'content-length',
  'content-range',
  'content-disposition',
  'accept-ranges',
  'etag',
  'last-modified',
  'x-ailsd-kind',
  'x-ailsd-mode',
  'retry-after',
] as const;

export function headersToSandbox(
  headers: IncomingHttpHeaders,
  requestId: string,
  hasBody: boolean,
): Record<string, string> {
  const names = hasBody ? [...TO_SANDBOX, ...OF_BODY] : TO_SANDBOX;
  return { ...pick(headers, names), 'x-request-id': requestId };
}

export function headersToClient(headers: IncomingHttpHeaders): Record<string, string> {
  return pick(headers, TO_CLIENT);
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string') picked[name] = value;
  }
  return picked;
}
