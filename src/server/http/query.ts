/** Reads a request's query: each name once, few of them, then by a shape. */
import { AilsdError } from '../../protocol/errors.js';

/** Undecodable percent signs stay as they are, as browsers have it. */
export function readQuery(url: string): Readonly<Record<string, string>> {
  const at = url.indexOf('?');
  if (at === -1) return {};
  const found = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    if (found.has(name)) throw badQuery(name, 'it is given twice');
    found.set(name, value);
    if (found.size > MOST_PARAMETERS) throw badQuery('', `it has more than ${MOST_PARAMETERS}`);
  }
  return Object.fromEntries(found);
}

const MOST_PARAMETERS = 32;

function badQuery(name: string, why: string): AilsdError {
  const field = PLAIN.test(name) ? name : 'query';
  return new AilsdError('INVALID_REQUEST', `the query cannot be read: ${why}`, {
    details: { field },
  });
}

const PLAIN = /^[a-z_]{1,64}$/;
