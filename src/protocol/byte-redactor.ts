/** The redactor for bytes: whatever they are, all but secrets come out as they went in. */
import { encodeUtf8 } from '../base/bytes.js';
import { TokenRedactor } from './token-redactor.js';

export class ByteRedactor {
  readonly #redactor: TokenRedactor;

  constructor(secrets: readonly string[] = []) {
    this.#redactor = new TokenRedactor(secrets.map((secret) => toCharacters(encodeUtf8(secret))));
  }

  push(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    return toBytes(this.#redactor.push(toCharacters(bytes)));
  }

  end(): Uint8Array<ArrayBuffer> {
    return toBytes(this.#redactor.end());
  }
}

/** A character a byte: tokens are ASCII, and everything else is only carried. */
function toCharacters(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE)
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return text;
}

/** As many arguments as any engine takes. */
const PIECE = 4_096;

function toBytes(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
