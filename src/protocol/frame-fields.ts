/** The fields frames are made of: each with its bound, and the words for what it must be, which `parse` puts into a sentence. */
/// <reference lib="es2024.string" />
import * as z from 'zod/mini';
import { encodeUtf8 } from '../base/bytes.js';
import { ID_PATTERN } from './ids.js';

export const SIZE_MAX = 1000;
export const TOKEN_MAX_CHARS = 8 * 1024;
/** Counted as the kernel does, each argument with its terminator: so one alone is at most 131,071 bytes, Linux's own bound. */
export const ARGV_MAX_BYTES = 128 * 1024;
export const ENV_MAX_VARIABLES = 256;
export const ENV_NAME_MAX_CHARS = 256;
/** Names and values together, each with its separator. */
export const ENV_MAX_BYTES = 128 * 1024;
export const PATH_MAX_CHARS = 4096;
export const SCREEN_MAX_CHARS = 128 * 1024;
export const HISTORY_MAX_LINES = 100_000;
export const TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000;
export const VIEWERS_MAX = 256;

export function whole(min: number, max: number) {
  const says = `a whole number from ${min} to ${max}`;
  return z.int(says).check(z.minimum(min, says), z.maximum(max, says));
}

/** Text that a process, a file name or a terminal can be given: no NUL, no half of a surrogate pair. */
export function text(min: number, max: number) {
  const says = `text of ${min} to ${max} characters, without NUL and half surrogates`;
  return z
    .string(says)
    .check(z.minLength(min, says), z.maxLength(max, says), z.refine(isWholeText, says));
}

export function oneOf<const T extends readonly string[]>(names: T) {
  return z.enum(names, `one of ${names.join(', ')}`);
}

/** At most `max` items, counted before any is looked at: zod keeps an issue for each item that is wrong. */
export function few<T extends z.core.$ZodType>(max: number, item: T) {
  const says = `a list of at most ${max}`;
  return z.pipe(z.array(z.unknown(), says).check(z.maxLength(max, says)), z.array(item));
}

function pattern(shape: RegExp, says: string) {
  return z.string(says).check(z.regex(shape, says));
}

export const flag = z.boolean('true or false');
/** A place in a stream of bytes, counted from its very first one. */
export const offset = whole(0, Number.MAX_SAFE_INTEGER);
export const size = whole(1, SIZE_MAX);
export const id = pattern(ID_PATTERN, 'an id of 1 to 128 of A-Z a-z 0-9 . _ : -');
export const token = pattern(
  new RegExp(`^[\\x21-\\x7e]{1,${TOKEN_MAX_CHARS}}$`),
  `1 to ${TOKEN_MAX_CHARS} visible ASCII characters`,
);
export const path = text(1, PATH_MAX_CHARS);
export const term = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/,
  'a terminal name such as xterm-256color',
);
export const sha256 = pattern(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits');
/** Any signal a process can die of, real-time ones included. */
export const deathSignal = pattern(/^SIG[A-Z0-9+-]{1,16}$/, 'a signal name such as SIGTERM');
export const errorCode = pattern(/^[A-Z][A-Z0-9_]{0,63}$/, 'an error code such as INVALID_REQUEST');
const TIME = 'a time in UTC such as 2026-02-27T20:20:00Z';
/** RFC 3339 in UTC. Only what we write: frames are ours, unlike the answers of other brokers. */
export const time = z.iso
  .datetime(TIME)
  .check(z.regex(/^.{10}T\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/, TIME));

/** The signals a client may send: what job control and shutting down need. */
export const signal = oneOf([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGABRT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGWINCH',
]);

export const actor = oneOf(['human', 'agent']);
/** A writer's input, size and signals count; an observer only watches. */
export const role = oneOf(['writer', 'observer']);
export const sizePolicy = oneOf(['driver', 'smallest', 'latest', 'fixed']);

/** A program and its arguments, never parsed again by any shell of ours. */
export const argv = z.pipe(
  z.custom<string[]>(
    isArgv,
    `a program and its arguments: texts without NUL and half surrogates, ${ARGV_MAX_BYTES} bytes at most`,
  ),
  z.array(z.string()),
);

export const env = z.pipe(
  z.custom<Record<string, string>>(
    isEnv,
    `at most ${ENV_MAX_VARIABLES} variables of ${ENV_MAX_BYTES} bytes: names without =, NUL and newline, values without NUL`,
  ),
  z.record(z.string(), z.string()),
);

/** How a program ended, and who says so: `remote` is the program itself, the others are what ended it or hid its end. */
export const outcome = {
  origin: oneOf(['remote', 'ailsd', 'transport', 'quota', 'lease']),
  exit_code: z.exactOptional(whole(0, 0xffff_ffff)),
  signal: z.exactOptional(deathSignal),
  timed_out: flag,
  oom: flag,
} as const;

/** Whether a text is longer than a bound in UTF-8; encodes it only when its length alone does not tell. */
export function isLongerThan(maxBytes: number, value: string): boolean {
  if (value.length > maxBytes) return true;
  return value.length * 3 > maxBytes && encodeUtf8(value).length > maxBytes;
}

function isWholeText(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0');
}

function isArgv(value: unknown): value is string[] {
  if (!Array.isArray(value) || typeof value[0] !== 'string' || value[0] === '') return false;
  let left = ARGV_MAX_BYTES;
  for (const argument of value) {
    if (typeof argument !== 'string' || !isWholeText(argument)) return false;
    left -= encodeUtf8(argument).length + 1;
    if (left < 0) return false;
  }
  return true;
}

function isEnv(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const variables = Object.entries(value);
  if (variables.length > ENV_MAX_VARIABLES) return false;
  let left = ENV_MAX_BYTES;
  for (const [name, content] of variables) {
    if (!isEnvName(name) || typeof content !== 'string' || !isWholeText(content)) return false;
    left -= encodeUtf8(name).length + encodeUtf8(content).length + 2;
    if (left < 0) return false;
  }
  return true;
}

/** `__proto__` can't be a key of a plain object: refused, because leaving it out in silence would be worse. */
function isEnvName(name: string): boolean {
  return (
    name.length >= 1 &&
    name.length <= ENV_NAME_MAX_CHARS &&
    name !== '__proto__' &&
    name.isWellFormed() &&
    !/[=\0\r\n]/.test(name)
  );
}
