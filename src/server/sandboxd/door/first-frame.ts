/** The `auth` frame by itself, whichever endpoint it opens, and the frame that says what was wrong with another. */
import { Secret } from '../../../base/secret.js';
import { authFrame } from '../../../protocol/common-frames.js';
import type { AilsdError } from '../../../protocol/errors.js';
import { decodeFrame } from '../../../protocol/frame-codec.js';
import {
  type ControlFrame,
  frameSet,
  UNAUTHENTICATED_MESSAGE_MAX_BYTES,
} from '../../../protocol/frames.js';

export type FirstToken =
  | { readonly kind: 'token'; readonly token: Secret }
  /** An `auth` frame whose token can be none of ours. */
  | { readonly kind: 'bad' }
  /** Something else, or an `auth` frame without a token. */
  | { readonly kind: 'none' };

const AUTH = frameSet({ auth: authFrame }, []);

export function tokenOf(message: string | Uint8Array): FirstToken {
  const decoded = decodeFrame(AUTH, message, UNAUTHENTICATED_MESSAGE_MAX_BYTES);
  if (decoded.ok) {
    const { frame } = decoded;
    return 'token' in frame ? { kind: 'token', token: new Secret(frame.token) } : { kind: 'none' };
  }
  const isToken = decoded.error.details['field'] === 'token';
  const isThere =
    isToken && typeof message === 'string' && /"token"\s*:\s*(?!""|null)/.test(message);
  return { kind: isThere ? 'bad' : 'none' };
}

export function errorFrameOf({ code, message, details, row }: AilsdError): ControlFrame {
  const { field, capability, retry_after_ms: retryAfter } = details;
  const frame = {
    type: 'error',
    code,
    message,
    retryable: row.retryable,
    ...(typeof field === 'string' ? { field } : {}),
    ...(typeof capability === 'string' ? { capability } : {}),
    ...(typeof retryAfter === 'number' ? { retry_after_ms: retryAfter } : {}),
  };
  return frame;
}
