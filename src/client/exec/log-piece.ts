/** One piece of what a command wrote, as a line of its log says it. By hand and not by schema: a log has many lines. */
import { AilsdError } from '../../protocol/errors.js';
import { isDocument } from '../sessions/call.js';
import type { OutputStream } from './exec-words.js';

export interface LogPiece {
  /** `system` is what the sandbox says about it. */
  readonly stream: OutputStream | 'system';
  readonly bytes: Uint8Array;
  /** The offset behind the bytes. */
  readonly end: number;
  /** The line itself, with the wire's names. */
  readonly document: Readonly<Record<string, unknown>>;
}

export function parseLogPiece(line: string): LogPiece {
  const document = jsonOf(line);
  const { stream, data, encoding, offset } = document;
  if (stream !== 'stdout' && stream !== 'stderr' && stream !== 'system') throw mismatch('stream');
  if (typeof data !== 'string') throw mismatch('data');
  const from = offset ?? 0;
  if (typeof from !== 'number' || !Number.isSafeInteger(from)) throw mismatch('offset');
  const bytes = Buffer.from(data, encoding === 'base64' ? 'base64' : 'utf8');
  return { stream, bytes, end: from + bytes.length, document };
}

function jsonOf(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    if (isDocument(value)) return value;
  } catch {
    // Said below, without the parser's words: they repeat the line.
  }
  throw mismatch('line');
}

function mismatch(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the sandbox's log: ${field} is of another form`, {
    details: { field },
  });
}
