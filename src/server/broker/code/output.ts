/**
 * One output of a call: secrets are taken out first; then a part is shown to the caller, cut on a character boundary, and
 * all of it is kept in the store, up to a bound.
 */
import { encodeUtf8 } from '../../../base/bytes.js';

/** `ByteRedactor`, or what a test puts in its place. */
export interface Redacting {
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

export interface OutputParts {
  readonly redactor: Redacting;
  /** Of the text, in UTF-8. */
  readonly shownMaxBytes: number;
  /** Puts the next piece away; the next is given when it settles. */
  readonly keep?: ((data: Uint8Array, position: number) => Promise<void>) | undefined;
  /** Told of what comes out, as it comes. */
  readonly onShown?: ((data: Uint8Array) => void) | undefined;
}

/** Asked of the sandbox: what goes beyond is counted there, and dropped. */
export const KEPT_MAX_BYTES = 16 * 1024 * 1024;
/** One row of the store. */
const PIECE_BYTES = 256 * 1024;

export class CodeOutput {
  readonly #parts: OutputParts;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #shown = '';
  #shownBytes = 0;
  #isCut = false;
  #pieces: Uint8Array[] = [];
  #piecesBytes = 0;
  #position = 0;
  #isEnded = false;

  constructor(parts: OutputParts) {
    this.#parts = parts;
  }

  /** What the caller sees. */
  get text(): string {
    return this.#shown;
  }

  /** Whether the caller sees less than came. */
  get isCut(): boolean {
    return this.#isCut;
  }

  async push(bytes: Uint8Array): Promise<void> {
    await this.#take(this.#parts.redactor.push(bytes));
  }

  /** No more comes. */
  async end(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    await this.#take(this.#parts.redactor.end());
    this.#show(this.#decoder.decode());
    await this.#flush();
  }

  async #take(safe: Uint8Array): Promise<void> {
    if (safe.length === 0) return;
    this.#parts.onShown?.(safe);
    this.#show(this.#decoder.decode(safe, { stream: true }));
    if (this.#parts.keep === undefined) return;
    this.#pieces.push(safe);
    this.#piecesBytes += safe.length;
    if (this.#piecesBytes >= PIECE_BYTES) await this.#flush();
  }

  #show(text: string): void {
    if (text === '') return;
    if (this.#isCut) return;
    const bytes = encodeUtf8(text).length;
    const left = this.#parts.shownMaxBytes - this.#shownBytes;
    if (bytes <= left) {
      this.#shown += text;
      this.#shownBytes += bytes;
      return;
    }
    this.#isCut = true;
    let kept = 0;
    let end = 0;
    for (const character of text) {
      kept += encodeUtf8(character).length;
      if (kept > left) break;
      end += character.length;
    }
    this.#shown += text.slice(0, end);
  }

  async #flush(): Promise<void> {
    if (this.#piecesBytes === 0) return;
    const data = new Uint8Array(this.#piecesBytes);
    let at = 0;
    for (const piece of this.#pieces) {
      data.set(piece, at);
      at += piece.length;
    }
    this.#pieces = [];
    this.#piecesBytes = 0;
    const position = this.#position;
    this.#position += data.length;
    await this.#parts.keep?.(data, position);
  }
}
