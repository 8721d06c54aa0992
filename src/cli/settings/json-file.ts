/** Reads small JSON files that people edit, and replaces them whole: a reader sees the old text or the new, never half. */
import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { AilsdError } from '../../protocol/errors.js';
import type { Environment } from '../config.js';

const MOST_BYTES = 64 * 1024;

export type JsonObject = { readonly [key: string]: unknown };

export type ReadJson =
  | { readonly kind: 'read'; readonly value: JsonObject }
  | { readonly kind: 'absent' }
  | { readonly kind: 'foreign'; readonly owner: number };

/** The object a file holds. A file of another ordinary user is not read: they could send us anywhere. */
export function readJsonFile(path: string, environment: Environment): ReadJson {
  let descriptor: number;
  try {
    // Most files we ask for are not there, and asking first is cheaper than an error.
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return { kind: 'absent' };
    descriptor = openSync(path, 'r');
  } catch (error) {
    if (isAbsent(error)) return { kind: 'absent' };
    throw unreadable(path, error);
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw unreadable(path, 'it is not a file');
    const { userId } = environment;
    if (userId !== undefined && userId !== 0 && stat.uid !== userId && stat.uid !== 0) {
      return { kind: 'foreign', owner: stat.uid };
    }
    if (stat.size > MOST_BYTES) throw unreadable(path, `it is larger than ${MOST_BYTES} bytes`);
    return { kind: 'read', value: parseObject(path, readWhole(descriptor)) };
  } catch (error) {
    throw error instanceof AilsdError ? error : unreadable(path, error);
  } finally {
    closeSync(descriptor);
  }
}

/** Writes beside the file and renames over it; a link is followed first, so that a dotfiles setup stays one. */
export function replaceJsonFile(path: string, value: JsonObject): void {
  let temporary: string | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const target = isLink(path) ? realpathSync(path) : path;
    temporary = `${target}.${process.pid}.tmp`;
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(descriptor, `${JSON.stringify(value, null, 2)}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, target);
  } catch (error) {
    if (temporary !== undefined) rmSync(temporary, { force: true });
    throw new AilsdError('CONFIG_INVALID', `${path} cannot be written: ${reasonOf(error)}`, {
      cause: error,
      hint: 'make its folder writable, or set AILSD_CONFIG_DIR to one that is',
    });
  }
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
    throw unreadable(path, `it is not valid JSON (${reasonOf(error)})`);
  }
  if (isJsonObject(value)) return value;
  throw unreadable(path, 'it does not hold a JSON object');
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function isAbsent(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ENOENT' || error.code === 'ENOTDIR')
  );
}

function unreadable(path: string, why: unknown): AilsdError {
  return new AilsdError('CONFIG_INVALID', `${path} cannot be used: ${reasonOf(why)}`, {
    hint: 'mend or move the file away; `ailsd config path` shows where settings are kept',
  });
}

function reasonOf(why: unknown): string {
  if (typeof why === 'string') return why;
  if (why instanceof Error && 'code' in why && typeof why.code === 'string') return why.code;
  return why instanceof Error ? why.message : String(why);
}
