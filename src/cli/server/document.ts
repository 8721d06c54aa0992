/** What the server program writes: one JSON object a line, errors as the envelope. */
import { AilsdError, isErrorCode } from '../../protocol/errors.js';

export type Document = Readonly<Record<string, unknown>>;

export function parseLine(line: string): Document | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isDocument(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The envelope is the last thing it says. */
export function errorFrom(stderr: string): AilsdError {
  for (const line of stderr.trimEnd().split('\n').reverse()) {
    const error = parseLine(line)?.['error'];
    if (!isDocument(error)) continue;
    const { code, message, hint, exit_code: _exit, retryable: _retryable, ...details } = error;
    if (typeof code !== 'string' || !isErrorCode(code)) continue;
    const said = typeof hint === 'string' ? { hint } : {};
    return new AilsdError(code, String(message), { details, ...said });
  }
  return new AilsdError('INTERNAL', 'the server program ended without a word', {
    internal: stderr.slice(-MOST_LAST_WORDS),
  });
}

const MOST_LAST_WORDS = 4_096;
