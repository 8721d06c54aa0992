/** Under which condition a request is meant (RFC 9110 section 13), and which part of a file it asks for (section 14). */
import { AilsdError } from '../../../protocol/errors.js';

export interface Conditions {
  /** `*`: anything at all. */
  readonly ifMatch: readonly string[] | '*' | undefined;
  readonly ifNoneMatch: readonly string[] | '*' | undefined;
}

export type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

export const ALWAYS: Conditions = { ifMatch: undefined, ifNoneMatch: undefined };

export function conditionsOf(headers: HeaderValues): Conditions {
  return {
    ifMatch: tagsOf(headers['if-match'], 'if-match'),
    ifNoneMatch: tagsOf(headers['if-none-match'], 'if-none-match'),
  };
}

/** `etag`: of the file that is there; `null`: of something that has none, such as a folder; `undefined`: nothing is there. */
export function checkWrite(conditions: Conditions, etag: string | null | undefined): void {
  if (!meetsMatch(conditions, etag) || hasNoneMatch(conditions, etag)) throw stale(etag);
}

/** True: what the caller has is what there is. */
export function isFresh(conditions: Conditions, etag: string | null): boolean {
  if (!meetsMatch(conditions, etag)) throw stale(etag);
  return hasNoneMatch(conditions, etag);
}

export function needsTag({ ifMatch, ifNoneMatch }: Conditions): boolean {
  return Array.isArray(ifMatch) || Array.isArray(ifNoneMatch);
}

/** A range of bytes, the last included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** `undefined`: all of it. Several ranges, and what cannot be read, count as not asked for. */
export function rangeOf(
  headers: HeaderValues,
  sizeBytes: number,
  etag: string,
): ByteRange | 'unsatisfiable' | undefined {
  const { range, 'if-range': ifRange } = headers;
  if (typeof range !== 'string' || (ifRange !== undefined && ifRange !== etag)) return undefined;
  const [, from = '', to = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(range) ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const length = Math.min(Number(to), sizeBytes);
    return length === 0 ? 'unsatisfiable' : { first: sizeBytes - length, last: sizeBytes - 1 };
  }
  const first = Number(from);
  const last = to === '' ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= sizeBytes ? 'unsatisfiable' : { first, last };
}

function meetsMatch({ ifMatch }: Conditions, etag: string | null | undefined): boolean {
  if (ifMatch === undefined) return true;
  if (ifMatch === '*') return etag !== undefined;
  return typeof etag === 'string' && ifMatch.includes(etag);
}

function hasNoneMatch({ ifNoneMatch }: Conditions, etag: string | null | undefined): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === '*') return etag !== undefined;
  return typeof etag === 'string' && ifNoneMatch.includes(etag);
}

function stale(etag: string | null | undefined): AilsdError {
  const message =
    etag === undefined ? 'there is nothing at this path' : 'what is there is not what was expected';
  return new AilsdError('PRECONDITION_FAILED', message, { details: { etag: etag ?? null } });
}

const MOST_TAGS = 64;
const TAG = /^(W\/)?("[\x21\x23-\x7e]{0,128}")$/;

/** A weak tag never matches: bytes are the same or they are not. */
function tagsOf(header: HeaderValues[string], field: string): readonly string[] | '*' | undefined {
  if (typeof header !== 'string') return undefined;
  if (header.trim() === '*') return '*';
  const parts = header.split(',').map((part) => TAG.exec(part.trim()));
  if (parts.length > MOST_TAGS || parts.includes(null))
    throw new AilsdError('INVALID_REQUEST', `${field} must be * or ETags`, { details: { field } });
  return parts.flatMap((part) => (part?.[1] === undefined && part?.[2] ? [part[2]] : []));
}
