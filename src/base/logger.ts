/** A log of one JSON object a line: for people with `jq` and for machines. Where the lines go is the caller's. */
import type { Clock } from './clock.js';
import { cutText, type PrintableFields, toPrintableFields } from './printable.js';

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger whose every line has these fields too. */
  child(fields: LogFields): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;

export type LogLevel = keyof typeof LEVELS;

export interface LoggerOptions {
  /** Gets one whole line, newline included; must not throw. */
  readonly write: (line: string) => void;
  readonly clock: Clock;
  /** The least level that is written. At `debug` errors show their stacks. */
  readonly level: LogLevel;
}

export function createLogger(options: LoggerOptions): Logger {
  return createChild(options, {});
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** A line longer than this goes out without its fields. */
export const MAX_LINE_CHARACTERS = 65_536;

const LEVELS = { debug: 0, info: 1, warn: 2, error: 3 } as const;

function createChild(options: LoggerOptions, bound: PrintableFields): Logger {
  const print = (fields: LogFields): PrintableFields => ({
    ...bound,
    ...toPrintableFields(fields, { stacks: options.level === 'debug' }),
  });
  const log =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (LEVELS[level] < LEVELS[options.level]) return;
      const time = new Date(options.clock.now()).toISOString();
      options.write(toLine({ time, level, message: cutText(message) }, print(fields)));
    };
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    child: (fields) => createChild(options, print(fields)),
  };
}

function toLine(head: PrintableFields, fields: PrintableFields): string {
  // Head twice: first for its place in the line, last so that no field can pose as it.
  const line = toSafeJson({ ...head, ...fields, ...head });
  if (line.length <= MAX_LINE_CHARACTERS) return `${line}\n`;
  return `${toSafeJson({ ...head, '[cut]': line.length })}\n`;
}

/** JSON leaves characters alone that a terminal obeys, that turn text around or that are not seen: escaped, they mean the same. */
function toSafeJson(value: PrintableFields): string {
  return JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnits);
}

/** One escape for each half where JSON spells a character as a pair. */
function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
