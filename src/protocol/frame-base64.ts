/** Base64 as in RFC 4648 section 4, strict: padded, nothing but its letters, one text for any bytes. Needs no Buffer. */
export function encodeBase64(bytes: Uint8Array): string {
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    // Past the end there are zeros; what they made of the last letters is then overwritten.
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    out[at] = LETTERS[group >> 18] ?? 0;
    out[at + 1] = LETTERS[(group >> 12) & 63] ?? 0;
    out[at + 2] = LETTERS[(group >> 6) & 63] ?? 0;
    out[at + 3] = LETTERS[group & 63] ?? 0;
    at += 4;
  }
  out.fill(PAD, at - ((3 - (bytes.length % 3)) % 3));
  return ascii.decode(out);
}

/** The bytes, or undefined for a text that `encodeBase64` never makes. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const out = new Uint8Array((text.length / 4) * 3 - padding);
  let wrong = 0;
  let group = 0;
  let at = 0;
  for (let i = 0; i < text.length; i += 4) {
    const a = VALUES[text.charCodeAt(i)] ?? NONE;
    const b = VALUES[text.charCodeAt(i + 1)] ?? NONE;
    const last = i + 4 === text.length;
    const c = last && padding === 2 ? 0 : (VALUES[text.charCodeAt(i + 2)] ?? NONE);
    const d = last && padding > 0 ? 0 : (VALUES[text.charCodeAt(i + 3)] ?? NONE);
    wrong |= a | b | c | d;
    group = (a << 18) | (b << 12) | (c << 6) | d;
    out[at] = group >> 16;
    out[at + 1] = group >> 8;
    out[at + 2] = group;
    at += 3;
  }
  // Bits that padding leaves over must be zero, or several texts would stand for the same bytes.
  const leftover = group & ((1 << (8 * padding)) - 1);
  return wrong < NONE && leftover === 0 ? out : undefined;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PAD = '='.charCodeAt(0);
const LETTERS = new TextEncoder().encode(ALPHABET);
const ascii = new TextDecoder();

/** What a character that is no letter stands for: a bit that no letter's value has. */
const NONE = 64;
const VALUES = new Uint8Array(128).fill(NONE);
for (const [value, letter] of LETTERS.entries()) VALUES[letter] = value;
