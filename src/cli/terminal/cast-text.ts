/** A recording (asciicast v2) as what it is read for: its events, or the words that were printed. */
import { decodeUtf8 } from '../../base/bytes.js';
import { AilsdError } from '../../protocol/errors.js';
import { escapeLines } from '../escape.js';

export interface Cast {
  readonly header: Readonly<Record<string, unknown>>;
  readonly events: readonly CastEvent[];
}

export type CastEvent = readonly [seconds: number, kind: string, data: string];

/** A last line that is not whole is still being written, and is left out. */
export function parseCast(bytes: Uint8Array): Cast {
  const [first = '', ...lines] = (decodeUtf8(bytes) ?? '').split('\n');
  const header = parseLine(first);
  if (typeof header !== 'object' || header === null || Array.isArray(header)) throw notACast();
  const events = lines.flatMap((line) => {
    const value = parseLine(line);
    return isEvent(value) ? [value] : [];
  });
  return { header: { ...header }, events };
}

/** What was printed, line by line: without colours and moves, and safe to print again. */
export function castText({ events }: Cast): string {
  const printed = events.flatMap(([, kind, data]) => (kind === 'o' ? [data] : [])).join('');
  const plain = printed.replace(SEQUENCE, '').replace(/\r+\n/g, '\n');
  return escapeLines(plain.replace(/[^\n]\x08/g, '').replace(/\r/g, '\n'));
}

/** Control sequences, strings with their ends, and the two-character ones. */
const SEQUENCE =
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\^-~])|[\x07\x0e\x0f]/g;

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function isEvent(value: unknown): value is CastEvent {
  return (
    Array.isArray(value) &&
    typeof value[0] === 'number' &&
    typeof value[1] === 'string' &&
    typeof value[2] === 'string'
  );
}

function notACast(): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', 'what the sandbox answered is no recording');
}
