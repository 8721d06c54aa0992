/**
 * Lets through only what every driver takes and gives back unchanged. One of them ends the process on a Buffer, a
 * boolean or a Date, and cuts text at NUL: hence the look at each value whatever its type says.
 */
import { AilsdError } from '../../protocol/errors.js';
import type { Bind } from './db.js';

/** The values as drivers may have them: what is a subclass of Uint8Array, such as Buffer, becomes a plain one. */
export function guardBinds(binds: readonly unknown[], placeholders: number): readonly Bind[] {
  // A driver would bind NULL for what is missing and drop what is too many.
  if (binds.length !== placeholders) {
    throw refusal(`${placeholders} placeholders but ${binds.length} values`);
  }
  return binds.map(guardBind);
}

/** Whether a column can hold the text. A name from outside that none can hold is nobody's name, and no fault of ours. */
export function isStorable(text: string): boolean {
  return !text.includes('\0');
}

function guardBind(value: unknown, index: number): Bind {
  switch (typeof value) {
    case 'string':
      if (!isStorable(value)) throw refusal(`value ${index + 1} is text with NUL`);
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw refusal(`value ${index + 1} is not a finite number`);
      // Not every driver keeps the sign of zero.
      return value === 0 ? 0 : value;
    case 'bigint':
      // Rows hold numbers: what is larger could be stored, but not read back.
      if (value > MAX_INTEGER || value < -MAX_INTEGER) {
        throw refusal(`value ${index + 1} is beyond ±(2^53 - 1)`);
      }
      return value;
    case 'object':
      if (value === null) return null;
      if (value instanceof Uint8Array) {
        return value.constructor === Uint8Array ? value : new Uint8Array(value);
      }
      throw refusal(`value ${index + 1} is an object`);
    default:
      throw refusal(`value ${index + 1} is of type ${typeof value}`);
  }
}

const MAX_INTEGER = BigInt(Number.MAX_SAFE_INTEGER);

/** Names place and type, never the value: it may be a secret. */
function refusal(what: string): AilsdError {
  return new AilsdError('INTERNAL', `that can't be bound to a statement: ${what}`);
}
