/** What a server said when it did not say yes, as an error of ours; its words are data and decide nothing but the code. */
import { decodeUtf8 } from '../../base/bytes.js';
import { AilsdError, isErrorCode } from '../../protocol/errors.js';
import type { HttpResponse } from './exchange.js';
import { unreachable } from './failures.js';

/** By hand and not by schema, so that a command that fails early has not loaded one. */
export function errorFromAnswer(response: HttpResponse): AilsdError {
  const { status } = response;
  const envelope = envelopeOf(response);
  if (envelope === undefined) return withoutEnvelope(status);
  const { code, message, retryable: _, ...rest } = envelope;
  const words = typeof message === 'string' ? message.slice(0, MOST_MESSAGE_CHARACTERS) : '';
  const details: Record<string, unknown> = { ...rest, status };
  const retryAfterMs = parseRetryAfter(response.headers['retry-after']);
  if (retryAfterMs !== undefined) details['retry_after_ms'] = retryAfterMs;
  if (typeof code === 'string' && isErrorCode(code)) {
    return new AilsdError(code, words || `the server answered ${status}`, { details });
  }
  const serverCode = typeof code === 'string' ? code.slice(0, MOST_CODE_CHARACTERS) : null;
  return new AilsdError('PROTOCOL_MISMATCH', `the server answered ${status}: ${words}`, {
    details: { ...details, server_code: serverCode },
  });
}

/** The value of a JSON answer; an empty one is `undefined`. */
export function parseJsonAnswer({ status, body }: HttpResponse): unknown {
  if (body.length === 0) return undefined;
  const value = parseJson(body);
  if (value !== undefined) return value;
  throw new AilsdError('PROTOCOL_MISMATCH', 'the server answered something that is not JSON', {
    details: { status },
  });
}

const MOST_MESSAGE_CHARACTERS = 4_096;
const MOST_CODE_CHARACTERS = 64;
const MOST_RETRY_AFTER_MS = 3_600_000;

function withoutEnvelope(status: number): AilsdError {
  const details = { status };
  // Said by whatever stands before a server that is away, in its own words.
  if (status === 502 || status === 503 || status === 504) {
    return unreachable('gateway', `something before the server answered ${status}`, { details });
  }
  const message =
    status >= 300 && status < 400
      ? `the server answered with a redirect (${status}), which is never followed`
      : `the server answered ${status} without saying why`;
  return new AilsdError('PROTOCOL_MISMATCH', message, { details });
}

function envelopeOf({ body }: HttpResponse): Record<string, unknown> | undefined {
  const value = parseJson(body);
  if (typeof value !== 'object' || value === null || !('error' in value)) return undefined;
  const { error } = value;
  if (typeof error !== 'object' || error === null || Array.isArray(error)) return undefined;
  return { ...error };
}

/** The parser's own words are dropped: they repeat the text, which may hold a token. */
function parseJson(body: Uint8Array): unknown {
  const text = decodeUtf8(body);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Seconds, as our servers send it; a date is for caches. */
function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return undefined;
  return Math.min(Number(value) * 1000, MOST_RETRY_AFTER_MS);
}
