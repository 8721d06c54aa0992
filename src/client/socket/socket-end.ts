/** What the end of a connection means: try again, get a fresh token once, or give up with an error. A security answer is never retried. */
import { CLOSES, retryAfterClose } from '../../protocol/closes.js';
import { AilsdError, type ErrorCode } from '../../protocol/errors.js';
import { errorFromAnswer } from '../http/answer.js';
import { toFailure } from '../http/failures.js';

export type SocketEnd =
  /** A goodbye with a code. */
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string }
  /** The upgrade was answered with something else. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array;
    }
  /** No goodbye: the line, or never a line. */
  | { readonly kind: 'cut'; readonly error: unknown };

export type Verdict =
  | { readonly kind: 'retry'; readonly afterMs: number; readonly error: AilsdError }
  /** One fresh token may be tried; where there is none, the error is the answer. */
  | { readonly kind: 'refresh'; readonly error: AilsdError }
  | { readonly kind: 'never'; readonly error: AilsdError };

/** `told` is the last error frame of the connection: it says more than a close reason can. */
export function judgeEnd(end: SocketEnd, host: string, told?: AilsdError): Verdict {
  switch (end.kind) {
    case 'cut':
      return judgeCut(end.error, host);
    case 'refused':
      return judgeRefusal(errorFromAnswer(end), end.status);
    case 'closed':
      return judgeClose(end.code, end.reason, told);
  }
}

/** The longest a server's own wish to be left alone is kept to. */
const RETRY_AFTER_MAX_MS = 60_000;

function judgeCut(cause: unknown, host: string): Verdict {
  if (cause === undefined) return retry(new AilsdError('UNREACHABLE', 'the line was cut'));
  const failure = toFailure(cause, { host, signal: undefined });
  // Whatever it was: on the next network there may be another proxy, or none that forges certificates.
  if (failure instanceof AilsdError) return retry(failure);
  return retry(new AilsdError('UNREACHABLE', 'the line was cut', { cause }));
}

/** An error frame where `ready` was due: it is the answer, whether or not a close follows. */
export function judgeTold(error: AilsdError): Verdict {
  if (error.code === 'TOKEN_EXPIRED') return { kind: 'refresh', error };
  if (!error.row.retryable) return { kind: 'never', error };
  return { kind: 'retry', afterMs: retryAfterMs(error), error };
}

function judgeRefusal(error: AilsdError, status: number): Verdict {
  if (error.code === 'TOKEN_EXPIRED') return { kind: 'refresh', error };
  if (status === 429 || status >= 500 || error.row.retryable) {
    return { kind: 'retry', afterMs: retryAfterMs(error), error };
  }
  if (error.code === 'PROTOCOL_MISMATCH' && (status === 401 || status === 403)) {
    // Whatever stands before the sandbox has said no without our words for it.
    const code = status === 401 ? 'UNAUTHENTICATED' : 'FORBIDDEN';
    return { kind: 'never', error: new AilsdError(code, error.message, { cause: error }) };
  }
  return { kind: 'never', error };
}

function judgeClose(code: number, reason: string, told: AilsdError | undefined): Verdict {
  const retryKind = retryAfterClose(code, reason);
  const details = { close_code: code, close_reason: reason };
  const named =
    told ?? new AilsdError(codeOfClose(code, reason), wordsFor(code, reason), { details });
  if (retryKind === 'refresh-once') return { kind: 'refresh', error: named };
  if (retryKind === 'never') return { kind: 'never', error: named };
  const error = new AilsdError('UNREACHABLE', wordsFor(code, reason), { details, cause: told });
  return { kind: 'retry', afterMs: retryAfterMs(told), error };
}

function retryAfterMs(error: AilsdError | undefined): number {
  const afterMs = error?.details['retry_after_ms'];
  return typeof afterMs === 'number' ? Math.min(afterMs, RETRY_AFTER_MAX_MS) : 0;
}

function wordsFor(code: number, reason: string): string {
  return `the connection was closed: ${code}${reason === '' ? '' : ` ${reason}`}`;
}

function codeOfClose(code: number, reason: string): ErrorCode {
  if (code === CLOSES.done.code) return 'TRANSPORT_LOST';
  if (code !== CLOSES.invalidToken.code) return 'PROTOCOL_MISMATCH';
  return REFUSALS[reason] ?? 'FORBIDDEN';
}

const REFUSALS: Readonly<Record<string, ErrorCode>> = {
  [CLOSES.missingToken.reason]: 'TOKEN_MISSING',
  [CLOSES.tokenExpired.reason]: 'TOKEN_EXPIRED',
  [CLOSES.invalidToken.reason]: 'UNAUTHENTICATED',
};

function retry(error: AilsdError): Verdict {
  return { kind: 'retry', afterMs: 0, error };
}
