/** Reads small JSON files that people edit, and that somebody else may have put in our way. */

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';

const MOST_BYTES = 64 * 1024;

export type JsonObject = { readonly [key: string]: unknown };

export type ReadJson =
  | { readonly kind: 'read'; readonly value: JsonObject }
  | { readonly kind: 'absent' }
  | { readonly kind: 'foreign'; readonly owner: number };

/** The object a file holds. One that belongs to a user whom `isTrusted` refuses is not even opened. */
export function readJsonFile(path: string, isTrusted: (owner: number) => boolean): ReadJson {
  let descriptor: number | undefined;
  try {
    // Most files we ask for are not there, and asking first is cheaper than an error.
    const seen = statSync(path, { throwIfNoEntry: false });
    if (seen === undefined) return { kind: 'absent' };
    if (!isTrusted(seen.uid)) return { kind: 'foreign', owner: seen.uid };
    checkKind(path, seen);
    // Not blocking: it may have been swapped for a pipe nobody writes to.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const opened = fstatSync(descriptor);
    if (!isTrusted(opened.uid)) return { kind: 'foreign', owner: opened.uid };
    checkKind(path, opened);
    return { kind: 'read', value: parseObject(path, readWhole(descriptor)) };
  } catch (error) {
    throw error instanceof AilsdError ? error : unreadable(path, reasonOf(error), error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function checkKind(path: string, stat: Stats): void {
  if (!stat.isFile()) throw unreadable(path, 'it is not a file');
  if (stat.size > MOST_BYTES) throw unreadable(path, `it is larger than ${MOST_BYTES} bytes`);
}

function readWhole(descriptor: number): string {
  const buffer = Buffer.alloc(MOST_BYTES);
  let length = 0;
  for (;;) {
    const read = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (read === 0) return buffer.toString('utf8', 0, length);
    length += read;
  }
}

function parseObject(path: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    // Only where: the parser's words quote the file, which may be a link to something private.
    const place = /at position (\d+)/.exec(error instanceof Error ? error.message : '');
    throw unreadable(
      path,
      `it is not valid JSON${place === null ? '' : ` (at character ${place[1]})`}`,
    );
  }
  if (isJsonObject(value)) return value;
  throw unreadable(path, 'it does not hold a JSON object');
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function unreadable(path: string, why: string, cause?: unknown): AilsdError {
  return new AilsdError('CONFIG_INVALID', `${path} cannot be used: ${why}`, {
    cause,
    hint: 'mend or move the file away; `ailsd config path` shows where settings are kept',
  });
}

export function reasonOf(why: unknown): string {
  return errorCode(why) ?? (why instanceof Error ? why.message : String(why));
}
