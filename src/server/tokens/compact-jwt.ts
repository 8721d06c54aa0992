/** Reads the outside of a compact JWS strictly: three parts in the one spelling that base64url has for their bytes. */

export interface CompactJwt {
  readonly header: Readonly<Record<string, unknown>>;
}

/** `undefined` for anything else. Nothing about the signature is known yet. */
export function readCompactJwt(text: string): CompactJwt | undefined {
  const parts = text.split('.', 4);
  const [head = '', payload = '', signature = ''] = parts;
  if (parts.length !== 3 || head.length > HEADER_MAX_CHARACTERS) return undefined;
  // The last character of the signature has bits that decoders ignore: each token would have several spellings.
  if (!isCanonical(payload) || !isCanonical(signature)) return undefined;
  const header = isCanonical(head) ? parseObject(head) : undefined;
  return header === undefined ? undefined : { header };
}

/** Ours have some 80 characters. */
const HEADER_MAX_CHARACTERS = 4_096;

function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;
}

function parseObject(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
