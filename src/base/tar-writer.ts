/** Writes the blocks of a tar archive (POSIX ustar, with pax records where a name or size does not fit). No I/O. */
import { concatBytes } from './bytes.js';
import { latin1Bytes, TAR_BLOCK_BYTES, type TarEntry } from './tar-entry.js';

/** What comes before a thing's content. */
export function tarHeader(entry: TarEntry): Uint8Array {
  const path = entry.kind === 'folder' ? `${entry.path}/` : entry.path;
  const records: string[] = [];
  if (needsRecord(path)) records.push(record('path', path));
  if (needsRecord(entry.target)) records.push(record('linkpath', entry.target));
  if (entry.sizeBytes > OCTAL_MAX) records.push(record('size', String(entry.sizeBytes)));
  const own = block(entry, path, TYPE_FLAGS[entry.kind]);
  if (records.length === 0) return own;
  const content = latin1Bytes(records.join(''));
  const lead = { ...entry, mode: 0o644, sizeBytes: content.length, target: '' };
  return concatBytes([
    block(lead, 'pax', 'x'),
    content,
    new Uint8Array(tarPadding(content.length)),
    own,
  ]);
}

/** Zero bytes that follow a content of this length. */
export function tarPadding(length: number): number {
  return (TAR_BLOCK_BYTES - (length % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

export function tarEnd(): Uint8Array {
  return new Uint8Array(2 * TAR_BLOCK_BYTES);
}

const NAME_BYTES = 100;
/** Eleven octal digits. */
const OCTAL_MAX = 0o77777777777;
const TYPE_FLAGS = { file: '0', folder: '5', link: '2', 'hard-link': '1', other: '6' } as const;

function needsRecord(text: string): boolean {
  return text.length > NAME_BYTES;
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits too. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length)
    length = String(length).length + rest.length;
  return `${length}${rest}`;
}

function block(entry: TarEntry, path: string, typeFlag: string): Uint8Array {
  const bytes = new Uint8Array(TAR_BLOCK_BYTES);
  const put = (at: number, text: string): void => bytes.set(latin1Bytes(text), at);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  const isLong = entry.sizeBytes > OCTAL_MAX;
  put(0, path.slice(0, NAME_BYTES));
  put(100, octal(entry.mode & 0o777, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(isLong ? 0 : entry.sizeBytes, 11));
  const seconds = Math.floor(entry.modifiedAtMs / 1_000);
  put(136, octal(Math.min(OCTAL_MAX, Math.max(0, seconds)), 11));
  put(156, typeFlag);
  put(157, entry.target.slice(0, NAME_BYTES));
  put(257, 'ustar\x0000');
  put(148, ' '.repeat(8));
  put(148, `${octal(checksum(bytes), 6)}\0 `);
  return bytes;
}

function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum += byte;
  return sum;
}
