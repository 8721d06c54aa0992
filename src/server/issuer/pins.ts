/** The threads a login is pinned to, kept on its grant as an authorization detail (RFC 9396 section 2). */
import type { Grant } from 'oidc-provider';
import { isThreadId, type ThreadId } from '../../protocol/ids.js';
import { fieldsIn } from './fields.js';

const TYPE = 'ailsd_threads';

/** As many as a token may carry. */
export const MAX_PINNED_THREADS = 64;

export function pinGrant(grant: Grant, threads: readonly ThreadId[]): void {
  if (threads.length > 0) grant.addRar({ type: TYPE, threads: [...threads] });
}

export function pinnedThreads(grant: Grant | undefined): readonly ThreadId[] {
  return threadsIn(grant?.rar);
}

/** The same of a grant's details as they are stored. */
export function threadsIn(details: unknown): readonly ThreadId[] {
  const list: readonly unknown[] = Array.isArray(details) ? details : [];
  const threads = list.map(fieldsIn).find(({ type }) => type === TYPE)?.['threads'];
  return Array.isArray(threads)
    ? threads.filter((one) => typeof one === 'string' && isThreadId(one))
    : [];
}

/** What was typed into the field: `undefined` when something in it is no thread id, or it is too many. */
export function parsePins(typed: string): readonly ThreadId[] | undefined {
  const words = [...new Set(typed.split(/[\s,]+/).filter((word) => word !== ''))];
  const threads = words.filter(isThreadId);
  return threads.length === words.length && words.length <= MAX_PINNED_THREADS
    ? threads
    : undefined;
}
