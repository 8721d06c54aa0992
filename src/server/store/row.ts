/** Rows from a driver to the store's, and fields of rows to what they are declared as: snake_case ends here. */
import { AilsdError } from '../../protocol/errors.js';
import type { Row } from './db.js';

/** Whatever the driver calls bytes and whole numbers becomes Uint8Array and number; nothing is rounded. */
export function toRow(raw: object): Row {
  const row: Record<string, Row[string]> = {};
  for (const [name, value] of Object.entries(raw)) row[name] = toField(name, value);
  return row;
}

function toField(name: string, value: unknown): Row[string] {
  switch (typeof value) {
    case 'string':
    case 'number':
      return value;
    case 'bigint': {
      const number = Number(value);
      if (Number.isSafeInteger(number)) return number;
      throw misread(name, 'a whole number beyond ±(2^53 - 1)');
    }
    default:
      if (value === null) return null;
      if (value instanceof ArrayBuffer) return new Uint8Array(value);
      // A Buffer may be a view of a shared pool, so its bytes are copied out.
      if (value instanceof Uint8Array) return new Uint8Array(value);
      throw misread(name, `a ${typeof value}`);
  }
}

export function textOf(row: Row, name: string): string {
  const value = row[name];
  if (typeof value === 'string') return value;
  throw misread(name, 'no text');
}

export function maybeTextOf(row: Row, name: string): string | undefined {
  return row[name] === null ? undefined : textOf(row, name);
}

export function numberOf(row: Row, name: string): number {
  const value = row[name];
  if (typeof value === 'number') return value;
  throw misread(name, 'no number');
}

export function maybeNumberOf(row: Row, name: string): number | undefined {
  return row[name] === null ? undefined : numberOf(row, name);
}

/** A column that holds JSON as text. */
export function jsonOf(row: Row, name: string): unknown {
  try {
    return JSON.parse(textOf(row, name));
  } catch (cause) {
    throw misread(name, 'no JSON', cause);
  }
}

export function fieldsOf(row: Row, name: string): Readonly<Record<string, unknown>> {
  const value = jsonOf(row, name);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value));
  }
  throw misread(name, 'no JSON object');
}

export function textsOf(row: Row, name: string): readonly string[] {
  const value = jsonOf(row, name);
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw misread(name, 'no JSON list of texts');
}

function misread(name: string, what: string, cause?: unknown): AilsdError {
  return new AilsdError('INTERNAL', `the column ${name} holds ${what}`, { cause });
}
