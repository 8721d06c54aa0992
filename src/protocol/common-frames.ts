/** The frames that mean the same on every endpoint. */
import * as z from 'zod/mini';
import { errorCode, few, flag, id, offset, text, time, token, whole } from './frame-fields.js';

const pingId = z.exactOptional(whole(0, Number.MAX_SAFE_INTEGER));

/** Says who is there: first on a connection, and again on a live one before the token expires. */
export const authFrame = z.object({ type: z.literal('auth'), token });

export const authOkFrame = z.object({
  type: z.literal('auth_ok'),
  session_id: z.exactOptional(text(1, 128)),
  /** When the connection closes unless a fresh token is sent. */
  expires_at: z.exactOptional(time),
  scopes: z.exactOptional(few(32, text(1, 64))),
});

/** Asks for a `pong` with the same id, through every hop. */
export const pingFrame = z.object({ type: z.literal('ping'), id: pingId });
export const pongFrame = z.object({ type: z.literal('pong'), id: pingId });

/** Leaves. What runs in the sandbox is not ended by it. */
export const closeFrame = z.object({ type: z.literal('close') });

/** No more input follows the byte before `offset`. */
export const eofFrame = z.object({ type: z.literal('eof'), offset: z.exactOptional(offset) });

/** Everything before `offset` was taken: from a client, output it has dealt with; from a server, input it has applied. */
export const ackFrame = z.object({ type: z.literal('ack'), offset });

/** The error envelope, flat; a code this side does not know is still an error. */
export const errorFrame = z.object({
  type: z.literal('error'),
  code: errorCode,
  message: text(0, 4096),
  retryable: flag,
  request_id: z.exactOptional(id),
  /** Which field of the frame that was refused. */
  field: z.exactOptional(text(1, 128)),
  /** Which capability was missing. */
  capability: z.exactOptional(text(1, 64)),
  retry_after_ms: z.exactOptional(whole(0, Number.MAX_SAFE_INTEGER)),
});
