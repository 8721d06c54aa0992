/** Files in the workspace of a sandbox: what names them, what a folder lists, what a write answers. Contents are bytes. */
import * as z from 'zod/mini';
import { PATH_MAX_CHARS, sha256 } from '../frame-fields.js';
import { pageOf, pageQuery } from './envelope.js';
import { count, maybe, queryFlag, timestamp } from './fields.js';

/** Whether a path stays inside the workspace by its spelling: what links do is the file system's to find out. Empty is the root. */
export function isWorkspacePath(path: string): boolean {
  if (path.length > PATH_MAX_CHARS || /[\0\\]/.test(path)) return false;
  if (path === '') return true;
  return path.split('/').every((step) => step !== '' && step !== '.' && step !== '..');
}

export const workspacePath = z.string().check(
  z.maxLength(PATH_MAX_CHARS),
  z.refine(isWorkspacePath, {
    error: 'a path inside the workspace, without .. and without a leading /',
  }),
  z.describe('a path inside the workspace; empty for its root'),
);

/** A strong ETag: the content's SHA-256 in quotes. It is what `If-Match` and `If-None-Match` compare. */
export const etag = z.string().check(z.regex(/^"[\x21\x23-\x7e]{1,128}"$/, 'a strong ETag'));

/** One thing in the workspace. A name that is not UTF-8 comes as base64 of its bytes, so that none is lost. */
export const fileEntry = z.object({
  name: z.string().check(z.maxLength(1024)),
  name_encoding: maybe(z.literal('base64')),
  kind: z.enum(['file', 'folder', 'link', 'other']),
  size_bytes: maybe(count),
  /** Permission bits; setuid and its kin are never among them. */
  mode: maybe(z.int().check(z.minimum(0), z.maximum(0o777))),
  modified_at: maybe(timestamp),
  etag: maybe(etag),
  /** Where a link points, as written. */
  target: maybe(z.string().check(z.maxLength(PATH_MAX_CHARS))),
});

export type FileEntry = z.output<typeof fileEntry>;

export const folderPage = pageOf(fileEntry);

/** A folder is listed, or sent as a tar when asked by `archive` or `Accept: application/x-tar`. */
export const fileQuery = z.extend(pageQuery, { archive: z.optional(z.enum(['tar'])) });

export const downloadQuery = z.object({
  path: workspacePath,
  archive: z.optional(z.enum(['tar'])),
});

export const uploadQuery = z.object({
  path: workspacePath,
  /** The body is a tar, to be unpacked into `path`. */
  extract: z.optional(queryFlag),
});

/** What is there now. */
export const writtenFile = z.object({
  path: z.string().check(z.maxLength(PATH_MAX_CHARS)),
  size_bytes: count,
  etag: maybe(etag),
  sha256: maybe(sha256),
});

export type WrittenFile = z.output<typeof writtenFile>;
