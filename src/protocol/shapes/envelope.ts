/** What other shapes come wrapped in: the error envelope, pages of a list, and word of what was changed in a request. */
import * as z from 'zod/mini';
import { errorCode, id, text } from '../frame-fields.js';
import { capabilityWord, queryNumber } from './fields.js';

/** The longest JSON body a server reads; past it the answer is 413. */
export const BODY_MAX_BYTES = 1024 * 1024;

/**
 * Every error, of every route but the issuer's. Details stand beside the four: `field` of a bad request, `capability`
 * of a denied one, `retry_after_ms`, `etag` of what is there instead, and so on. A code this side does not know is still an error.
 */
export const errorEnvelope = z.object({
  error: z.looseObject({
    code: errorCode,
    message: text(0, 4096),
    retryable: z.boolean(),
    request_id: id,
  }),
});

export type ErrorEnvelope = z.output<typeof errorEnvelope>;

export const PAGE_ITEMS = { default: 50, max: 200 } as const;

export const pageQuery = z.object({
  limit: z.optional(queryNumber(1, PAGE_ITEMS.max)),
  /** The `next_cursor` of the page before. */
  cursor: z.optional(text(1, 1024)),
});

export type PageQuery = z.output<typeof pageQuery>;

/** A page of a list; the last one has no `next_cursor`. */
export function pageOf<S extends z.core.$ZodType>(item: S) {
  return z.object({
    items: z.array(item).check(z.maxLength(1000)),
    next_cursor: z.optional(z.nullable(text(1, 1024))),
  });
}

/** Where the answer differs from what was asked for: a `ttl` that was clamped, a capability that was downgraded (or denied: null). */
export const adjustment = z.object({
  field: text(1, 64),
  requested: z.union([z.number(), capabilityWord]),
  granted: z.nullable(z.union([z.number(), text(1, 128)])),
});

export const adjustments = z.array(adjustment).check(z.maxLength(64));

export type Adjustment = z.output<typeof adjustment>;
