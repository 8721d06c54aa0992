/** A small text from a file or from standard input, as it comes: whoever writes into a pipe may be slower than we are. */
import { closeSync, openSync, readSync } from 'node:fs';
import { errorCode } from '../base/error-code.js';
import { AilsdError } from '../protocol/errors.js';
import type { Context } from './context.js';

/** `-` is standard input. USAGE where it can't be read or is longer than it may be. */
export function readInput({ io }: Context, place: string, maxBytes: number): string {
  if (place === '-') {
    if (!io.inputIsTerminal) return readAll(0, 'standard input', maxBytes);
    throw new AilsdError('USAGE', 'nothing is piped to standard input', {
      hint: 'pipe something into it, or name a file',
    });
  }
  let descriptor: number;
  try {
    descriptor = openSync(place, 'r');
  } catch (error) {
    throw unreadable(place, error);
  }
  try {
    return readAll(descriptor, place, maxBytes);
  } finally {
    closeSync(descriptor);
  }
}

const FULL_WAIT_MS = 5;

function readAll(descriptor: number, place: string, maxBytes: number): string {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const buffer = Buffer.alloc(64 * 1024);
    const read = readSome(descriptor, buffer, place);
    if (read === undefined) continue;
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(buffer.subarray(0, read));
    length += read;
    if (length > maxBytes) {
      throw new AilsdError('USAGE', `${place} holds more than ${maxBytes} bytes`, {
        hint: 'give less at once',
      });
    }
  }
}

function readSome(descriptor: number, buffer: Buffer, place: string): number | undefined {
  try {
    return readSync(descriptor, buffer, 0, buffer.length, null);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EOF') return 0;
    if (code !== 'EAGAIN') throw unreadable(place, error);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_WAIT_MS);
    return undefined;
  }
}

function unreadable(place: string, cause: unknown): AilsdError {
  const code = errorCode(cause) ?? 'unknown';
  return new AilsdError('USAGE', `${place} cannot be read (${code})`, {
    cause,
    hint: 'name a file that is there and may be read, or - for standard input',
  });
}
