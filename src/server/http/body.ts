/** Reads a request's body: JSON, of bounded size, never unpacked. */
import type { IncomingMessage } from 'node:http';
import { decodeUtf8 } from '../../base/bytes.js';
import { AilsdError } from '../../protocol/errors.js';

/** The parsed value; an empty body is `undefined`. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const bytes = await readBytes(request, maxBytes);
  if (bytes.length === 0) return undefined;
  const text = decodeUtf8(bytes);
  if (text === undefined) throw notJson('it is not UTF-8');
  if (nestsDeeperThan(text, JSON_MAX_DEPTH)) throw notJson('it is nested too deep');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw notJson('it is not JSON', cause);
  }
}

/** Our parser takes any depth, but whoever walks or prints what it made does not. */
const JSON_MAX_DEPTH = 64;

/** Counts brackets outside of strings; of text that is no JSON the answer does not matter. */
function nestsDeeperThan(text: string, most: number): boolean {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isString) {
      if (character === '\\') at += 1;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth > most) return true;
  }
  return false;
}

/** What the headers alone tell: a body too large is refused before any of it is read, a packed one always. */
export function checkBodyHeaders({ headers }: IncomingMessage, maxBytes: number): void {
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') {
    throw new AilsdError('INVALID_REQUEST', 'a packed body is not accepted', {
      details: { field: 'content-encoding' },
    });
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > maxBytes) stop(() => reject(tooLarge(maxBytes)));
      else chunks.push(chunk);
    };
    const end = (): void => stop(() => resolve(Buffer.concat(chunks, length)));
    const cut = (): void => stop(() => reject(incomplete()));
    const stop = (settle: () => void): void => {
      request.off('data', take).off('end', end).off('error', cut).off('close', cut);
      settle();
    };
    if (request.destroyed && !request.readableEnded) return reject(incomplete());
    request.on('data', take).on('end', end).on('error', cut).on('close', cut);
  });
}

function tooLarge(maxBytes: number): AilsdError {
  return new AilsdError('PAYLOAD_TOO_LARGE', `a body may have ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  });
}

function notJson(why: string, cause?: unknown): AilsdError {
  return new AilsdError('INVALID_REQUEST', `the body cannot be read: ${why}`, {
    details: { field: 'body' },
    cause,
  });
}

/** Nobody is there to read it; it is for the log. */
function incomplete(): AilsdError {
  return new AilsdError('INVALID_REQUEST', 'the body ended too early', {
    details: { field: 'body' },
  });
}
