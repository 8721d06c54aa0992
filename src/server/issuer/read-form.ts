/** Reads a posted form: of bounded size and of the one form that HTML forms have. */
import type { IncomingMessage } from 'node:http';

/** A list of pinned threads is the longest thing a page sends. */
export const FORM_MAX_BYTES = 32_768;

/** `undefined` for anything that is not a form, or too long; the rest of it is not read. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') return undefined;
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      length += chunk.length;
      if (length > FORM_MAX_BYTES) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}
