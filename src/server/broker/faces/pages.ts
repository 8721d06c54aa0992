/** Lists in pages: a cursor is the last key of the page before, in a form that nobody takes for an id. */
import { AilsdError } from '../../../protocol/errors.js';
import { PAGE_ITEMS, type PageQuery } from '../../../protocol/shapes/envelope.js';

export interface Page {
  readonly limit: number;
  readonly after: string | undefined;
}

export function pageAsked({ limit = PAGE_ITEMS.default, cursor }: PageQuery): Page {
  return { limit, after: cursor === undefined ? undefined : decodeCursor(cursor) };
}

/** `found` has one more than was asked for when there are more. */
export function toPage<T, W>(
  found: readonly T[],
  { limit }: Page,
  keyOf: (item: T) => string,
  toWire: (item: T) => W,
): { readonly items: readonly W[]; readonly next_cursor: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const isMore = found.length > limit && last !== undefined;
  return {
    items: shown.map(toWire),
    next_cursor: isMore ? encodeCursor(keyOf(last)) : null,
  };
}

function encodeCursor(key: string): string {
  return PREFIX + Buffer.from(key, 'utf8').toString('base64url');
}

function decodeCursor(cursor: string): string {
  const text = cursor.startsWith(PREFIX) ? cursor.slice(PREFIX.length) : '';
  const key = Buffer.from(text, 'base64url').toString('utf8');
  // Only what we wrote ourselves reads back as it was written.
  if (text !== '' && PRINTABLE.test(key) && encodeCursor(key) === cursor) return key;
  throw new AilsdError('INVALID_REQUEST', 'the cursor is none of ours', {
    details: { field: 'cursor' },
  });
}

const PREFIX = 'c_';
const PRINTABLE = /^[\x21-\x7e]+$/;
