/** Gets a small JSON document from another server: no redirects, a bound on time and size, https or loopback only. */
import { AilsdError } from '../../protocol/errors.js';

export interface RemoteRequest {
  readonly url: string;
  readonly signal: AbortSignal;
  /** A form to post; without one it is a GET. */
  readonly form?: URLSearchParams | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const REMOTE_TIMEOUT_MS = 5_000;
export const REMOTE_MAX_BYTES = 262_144;

export async function fetchJson({
  url,
  signal,
  form,
  headers,
}: RemoteRequest): Promise<Readonly<Record<string, unknown>>> {
  if (!isSafeUrl(url)) throw unavailable('its address is neither https nor loopback');
  let response: Response;
  try {
    response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', ...headers },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(REMOTE_TIMEOUT_MS)]),
      ...(form !== undefined && { body: form }),
    });
  } catch (cause) {
    throw unavailable('it cannot be reached', cause);
  }
  const text = await readBounded(response);
  if (!response.ok) throw unavailable(`it answered ${response.status}`);
  const value = toJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unavailable('it did not answer with an object');
  return Object.fromEntries(Object.entries(value));
}

export function isSafeUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
}

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > REMOTE_MAX_BYTES) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw unavailable('its answer broke off', cause);
  }
  if (length > REMOTE_MAX_BYTES) throw unavailable('its answer is too long');
  return Buffer.concat(chunks).toString('utf8');
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser would quote the answer, which may hold a token.
    throw unavailable('it did not answer with JSON');
  }
}

function unavailable(why: string, cause?: unknown): AilsdError {
  return new AilsdError(
    'BACKEND_UNAVAILABLE',
    'another server is needed and does not answer as it should',
    {
      internal: why,
      ...(cause !== undefined && { cause }),
    },
  );
}
