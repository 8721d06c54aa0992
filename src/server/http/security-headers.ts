/** What every answer tells a browser, should one see it: show nothing, run nothing, keep nothing. Pages override some. */
export const SECURITY_HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const;

/** Besides those, where callers come by TLS. */
export const HTTPS_HEADERS = { 'Strict-Transport-Security': 'max-age=31536000' } as const;
