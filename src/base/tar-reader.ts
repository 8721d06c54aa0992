/** Reads a tar archive as it comes, strictly: what is not an archive, or not whole, is an error. Content is never held. */
import { concatBytes } from './bytes.js';
import { latin1Text, TAR_BLOCK_BYTES, type TarEntry, TarError } from './tar-entry.js';

export interface TarItem {
  readonly entry: TarEntry;
  /** To be read before the next item is asked for; what is left of it is skipped. */
  readonly content: () => AsyncGenerator<Uint8Array, void, undefined>;
}

/** Records about the next thing, names above all, may be this long. */
const RECORDS_MAX_BYTES = 1024 * 1024;

export async function* readTar(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<TarItem, void, undefined> {
  const bytes = new ByteSource(source);
  let told: Records = new Map();
  try {
    for (;;) {
      const block = await bytes.exactly(TAR_BLOCK_BYTES);
      if (block.every((byte) => byte === 0)) return;
      checkSum(block);
      const header = parseBlock(block);
      const extra = EXTRA_FLAGS.has(header.flag);
      if (extra) {
        if (header.sizeBytes > RECORDS_MAX_BYTES) throw new TarError('its records are too long');
        const content = await bytes.exactly(header.sizeBytes);
        await bytes.exactly(paddingOf(header.sizeBytes));
        told = recordsOf(header.flag, content, told);
        continue;
      }
      const entry = toEntry(header, told);
      told = new Map();
      let left = entry.sizeBytes;
      const content = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
        while (left > 0) {
          const piece = await bytes.some(left);
          left -= piece.length;
          yield piece;
        }
      };
      yield { entry, content };
      while (left > 0) left -= (await bytes.some(left)).length;
      await bytes.exactly(paddingOf(entry.sizeBytes));
    }
  } finally {
    await bytes.close();
  }
}

type Records = ReadonlyMap<string, string>;

interface Header extends Omit<TarEntry, 'kind'> {
  readonly flag: string;
}

/** pax, and what GNU tar wrote before it. */
const EXTRA_FLAGS = new Set(['x', 'g', 'L', 'K']);

const KINDS: Readonly<Record<string, TarEntry['kind']>> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'link',
  '5': 'folder',
};

function toEntry({ flag, ...header }: Header, told: Records): TarEntry {
  const path = told.get('path') ?? header.path;
  const isSparse = [...told.keys()].some((key) => key.startsWith('GNU.sparse'));
  const named = isSparse ? 'other' : (KINDS[flag] ?? 'other');
  // Archives from before POSIX say it by a slash alone.
  const kind = named === 'file' && path.endsWith('/') ? 'folder' : named;
  const said = told.get('size');
  const sizeBytes = said === undefined ? header.sizeBytes : Number(said);
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw new TarError('a size is no size');
  const hasContent = kind === 'file' || kind === 'other';
  if (!hasContent && sizeBytes > 0 && kind !== 'hard-link')
    throw new TarError('a folder or link with content');
  return {
    ...header,
    path: path.replace(/\/+$/, '') || path,
    kind,
    sizeBytes: kind === 'hard-link' ? 0 : sizeBytes,
    target: kind === 'link' || kind === 'hard-link' ? (told.get('linkpath') ?? header.target) : '',
  };
}

/** Of a global record nothing here makes use. */
function recordsOf(flag: string, content: Uint8Array, before: Records): Records {
  const text = latin1Text(content);
  if (flag === 'g') return before;
  const next = new Map(before);
  if (flag !== 'x') return next.set(flag === 'L' ? 'path' : 'linkpath', upToZero(text));
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(' ', at);
    const length = Number(text.slice(at, space));
    const equals = text.indexOf('=', space);
    const end = at + length;
    const isWhole = space > at && Number.isInteger(length) && equals > space && equals < end;
    if (!isWhole || text[end - 1] !== '\n') throw new TarError('a record cannot be read');
    next.set(text.slice(space + 1, equals), text.slice(equals + 1, end - 1));
    at = end;
  }
  return next;
}

function parseBlock(block: Uint8Array): Header {
  const field = (at: number, length: number): string =>
    upToZero(latin1Text(block.subarray(at, at + length)));
  const isPosix = latin1Text(block.subarray(257, 263)) === 'ustar\0';
  const prefix = isPosix ? field(345, 155) : '';
  const name = field(0, 100);
  return {
    path: prefix === '' ? name : `${prefix}/${name}`,
    mode: numberOf(block.subarray(100, 108)) & 0o7777,
    sizeBytes: numberOf(block.subarray(124, 136)),
    modifiedAtMs: numberOf(block.subarray(136, 148)) * 1_000,
    flag: String.fromCharCode(block[156] ?? 0),
    target: field(157, 100),
  };
}

/** Octal digits, or GNU's binary form for what is too large for them. */
function numberOf(field: Uint8Array): number {
  const [first = 0] = field;
  if ((first & 0x80) !== 0) {
    let value = first & 0x3f;
    for (const byte of field.subarray(1)) value = value * 256 + byte;
    if ((first & 0x40) === 0 && Number.isSafeInteger(value)) return value;
    throw new TarError('a number is out of bounds');
  }
  const digits = upToZero(latin1Text(field)).trim();
  if (digits === '') return 0;
  if (!/^[0-7]+$/.test(digits)) throw new TarError('a number cannot be read');
  return Number.parseInt(digits, 8);
}

function checkSum(block: Uint8Array): void {
  let sum = 0;
  block.forEach((byte, at) => {
    sum += at >= 148 && at < 156 ? 0x20 : byte;
  });
  if (numberOf(block.subarray(148, 156)) !== sum) throw new TarError('a header is damaged');
}

function upToZero(text: string): string {
  const end = text.indexOf('\0');
  return end === -1 ? text : text.slice(0, end);
}

function paddingOf(length: number): number {
  return (TAR_BLOCK_BYTES - (length % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #held: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#pieces = source[Symbol.asyncIterator]();
  }

  async exactly(length: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let left = length; left > 0; ) {
      const piece = await this.some(left);
      parts.push(piece);
      left -= piece.length;
    }
    return parts.length === 1 ? (parts[0] ?? new Uint8Array(0)) : concatBytes(parts);
  }

  /** At least one byte, at most so many. */
  async some(most: number): Promise<Uint8Array> {
    while (this.#held.length === 0) {
      const next = await this.#pieces.next();
      if (next.done === true) throw new TarError('it ends too early');
      this.#held = next.value;
    }
    const piece = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(piece.length);
    return piece;
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}
