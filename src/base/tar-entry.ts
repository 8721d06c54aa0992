/** What a tar archive holds, one thing at a time. Names are bytes, written as Latin-1 text, so that none is lost or changed. */
export interface TarEntry {
  /** Without a slash at its end. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link' | 'hard-link' | 'other';
  readonly mode: number;
  /** Of the content that follows; 0 for all but files. */
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** Where a link points, as written; empty otherwise. */
  readonly target: string;
}

export const TAR_BLOCK_BYTES = 512;

/** An archive that is not one, or ends too early. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

export function latin1Bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

export function latin1Text(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
