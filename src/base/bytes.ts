/** Byte arrays: joining, comparing, and going between bytes and text without ever guessing. */

export function concatBytes(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}

/** Stops at the first difference, so its time tells where that is; secrets are compared by `Secret`. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) {
    if (a[at] !== b[at]) return false;
  }
  return true;
}

/** Half a surrogate pair has no bytes: it becomes U+FFFD, as everywhere on the web. */
export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** `undefined` when the bytes are not UTF-8. A byte order mark is kept: it is part of what was sent. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * At most `maxBytes` from the beginning, without half a character at the end. Works on any bytes: where they are
 * not UTF-8 there is no character to spare, and the cut is exact. The result is a view, not a copy.
 */
export function cutUtf8(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length <= checkByteCount(maxBytes)) return bytes;
  if (!isContinuation(bytes[maxBytes])) return bytes.subarray(0, maxBytes);
  // The cut falls before a continuation byte; whether that is inside a character, its first byte tells.
  for (let back = 1; back <= MAX_CONTINUATIONS && back <= maxBytes; back++) {
    const first = bytes[maxBytes - back];
    if (isContinuation(first)) continue;
    return bytes.subarray(0, characterLength(first) > back ? maxBytes - back : maxBytes);
  }
  return bytes.subarray(0, maxBytes);
}

/** Gives it back, or throws a RangeError: a bound that is no whole number of bytes bounds nothing. */
export function checkByteCount(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${value} is not a number of bytes`);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** RFC 3629 §3: a character is one first byte and up to three continuation bytes. */
const MAX_CONTINUATIONS = 3;

function isContinuation(byte = 0): boolean {
  return (byte & 0xc0) === 0x80;
}

function characterLength(first = 0): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}
