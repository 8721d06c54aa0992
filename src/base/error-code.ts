/** The short code an error carries (`ENOENT`, `ERR_…`): what callers switch on, since the words may change. */

/** `undefined` where it has none. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
