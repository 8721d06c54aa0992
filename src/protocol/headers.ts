/** The request headers this protocol gives a meaning of its own, and how each is read. Free of zod. */

/** Kept this long: the same key and body get the same answer. */
export const IDEMPOTENCY_SECONDS = 24 * 60 * 60;
export const IDEMPOTENCY_KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

/** An `X-Request-Id` of any other form is replaced by one of ours. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** The longest a caller may wait for a sandbox to start. */
export const PREFER_WAIT_MAX_SECONDS = 60;

/**
 * The `wait` of a `Prefer` header (RFC 7240 section 4.3) in seconds, clamped. A preference that can't be read is no
 * preference: the RFC wants it ignored.
 */
export function parsePreferWait(header: string | undefined): number {
  for (const preference of header?.split(',') ?? []) {
    const match = /^\s*wait\s*=\s*"?([0-9][0-9.eE+]{0,15})"?\s*(?:;|$)/i.exec(preference);
    const seconds = Number(match?.[1] ?? Number.NaN);
    if (!Number.isNaN(seconds)) return Math.min(PREFER_WAIT_MAX_SECONDS, Math.floor(seconds));
  }
  return 0;
}
