/** The two invite endpoints (S0): their query strings and the one message that `/execute` takes. */
import * as z from 'zod/mini';
import { text } from '../frame-fields.js';
import { CODE_MAX_CHARS, LANGUAGES } from './code.js';
import { duration } from './fields.js';

/** Nothing here is refused with 400: what is missing or wrong is a close with its own reason. */
export const executeQuery = z.object({ token: z.optional(text(1, 8192)) });

export const computerQuery = z.object({
  token: z.optional(text(1, 8192)),
  /** Must equal the token's room, unless that is `*`. */
  room: z.optional(text(1, 128)),
  /** Counts only if the token allows it. */
  elevated: z.optional(text(0, 8)),
});

/** Whatever else it says about who is asking is not read: the token's `sub` is it. */
export const executeMessage = z.object({
  code: z.string().check(z.maxLength(CODE_MAX_CHARS)),
  language: z.optional(z.enum(LANGUAGES)),
  timeout_ms: z.optional(duration),
});
