/** What a token says of itself, to be shown and to choose a time to renew it: nothing is verified, nothing decided by it. */
export interface ReadableClaims {
  readonly sub: string | undefined;
  readonly tenant: string | undefined;
  readonly clientId: string | undefined;
  readonly scopes: readonly string[];
  readonly threads: readonly string[] | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number | undefined;
  readonly issuedAtMs: number | undefined;
}

/** Absent for a token that is not a JWT. */
export function claimsOf(token: string): ReadableClaims | undefined {
  const [, payload = ''] = token.split('.');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof claims !== 'object' || claims === null) return undefined;
  const member = (name: string): unknown => Object.getOwnPropertyDescriptor(claims, name)?.value;
  return {
    sub: text(member('sub')),
    tenant: text(member('tenant')),
    clientId: text(member('client_id')),
    scopes: scopeWords(text(member('scope')) ?? ''),
    threads: list(member('threads')),
    expiresAtMs: time(member('exp')),
    issuedAtMs: time(member('iat')),
  };
}

/** The words of an OAuth `scope`, each once. */
export function scopeWords(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((word) => word !== ''))].slice(0, MOST_ITEMS);
}

const MOST_CHARACTERS = 2_048;
const MOST_ITEMS = 256;
/** The year 9999: what a date can show. */
const LAST_SECOND = 253_402_300_799;

function text(value: unknown): string | undefined {
  const usable = typeof value === 'string' && value !== '' && value.length <= MOST_CHARACTERS;
  return usable ? value : undefined;
}

function list(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > MOST_ITEMS) return undefined;
  return value.map(text).filter((item) => item !== undefined);
}

function time(value: unknown): number | undefined {
  const usable = typeof value === 'number' && value >= 0 && value <= LAST_SECOND;
  return usable ? Math.round(value * 1000) : undefined;
}
