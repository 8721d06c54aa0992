/** Writes errors for the wire, once: the envelope, the status, and the headers that go with some codes. */
import { AilsdError } from '../../protocol/errors.js';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `hadCredentials`: whether the caller showed any, which decides how a 401 is worded in its header. */
export function errorAnswer(
  thrown: unknown,
  requestId: string,
  hadCredentials: boolean,
): ErrorAnswer {
  const error = toAilsdError(thrown);
  const { code, message, details } = error;
  const { status, retryable } = error.row;
  // Details come first: none of them can pass itself off as the code.
  const envelope = { error: { ...details, code, message, retryable, request_id: requestId } };
  return { status, headers: headersOf(error, hadCredentials), body: JSON.stringify(envelope) };
}

/** What nobody foresaw is our fault, and what it says may be anything: it is for the log alone. */
export function toAilsdError(thrown: unknown): AilsdError {
  if (thrown instanceof AilsdError) return thrown;
  return new AilsdError('INTERNAL', 'something went wrong on the server', { cause: thrown });
}

function headersOf(error: AilsdError, hadCredentials: boolean): Record<string, string> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  const challenge = challengeOf(error, hadCredentials);
  if (challenge !== undefined) headers['WWW-Authenticate'] = challenge;
  const { retry_after_ms: retryAfterMs, allow } = error.details;
  if (typeof retryAfterMs === 'number') {
    headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  }
  if (Array.isArray(allow)) headers['Allow'] = allow.join(', ');
  return headers;
}

/** RFC 6750 section 3. */
function challengeOf({ row, details }: AilsdError, hadCredentials: boolean): string | undefined {
  if (row.status === 401) return hadCredentials ? 'Bearer error="invalid_token"' : 'Bearer';
  const { scope } = details;
  if (row.status === 403 && typeof scope === 'string')
    return `Bearer error="insufficient_scope", scope="${scope}"`;
  return undefined;
}
