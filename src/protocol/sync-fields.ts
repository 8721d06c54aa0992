/** What sync frames are made of: paths, what is at them, who put it there, and contents to be moved. */
import * as z from 'zod/mini';
import {
  actor,
  errorCode,
  flag,
  offset,
  oneOf,
  PATH_MAX_CHARS,
  sha256,
  text,
  time,
} from './frame-fields.js';
import { isWorkspacePath } from './shapes/files.js';

/** In one frame, be it entries, paths, items, changes or results. With long paths it is the message's own bound that counts. */
export const SYNC_LIST_MAX = 4096;
export const IGNORE_MAX_PATTERNS = 256;
/** Of one file that is sent as a delta; one that takes more is sent whole. */
export const PARTS_MAX = 1024;

/** Names with `/` between, relative to the root, which is the empty one. */
export const path = text(0, PATH_MAX_CHARS).check(
  z.refine(
    isWorkspacePath,
    'relative to the root: names with / between, without . and .. among them',
  ),
);

export const problem = z.object({ code: errorCode, message: text(0, 1024) }, 'a problem');

/** Who is known to have made a change; `at` is for people to read. */
export const by = z.exactOptional(
  z.object(
    {
      actor,
      subject: z.exactOptional(text(1, 256)),
      tool_call_id: z.exactOptional(text(1, 256)),
      at: z.exactOptional(time),
    },
    'who made it',
  ),
);

const file = { kind: z.literal('file'), sha256, size: offset, executable: flag } as const;
const folder = { kind: z.literal('folder') } as const;
const link = { kind: z.literal('link'), target: text(1, PATH_MAX_CHARS) } as const;

/** What is at a path, or is to be there. Files are alike by digest and executable bit, links by target. */
export const state = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('absent') }),
  z.object(file),
  z.object(folder),
  z.object(link),
]);

/**
 * What a scan found. A root that is there has an entry of its own. `problem`: there, but not to be read or synced, so that
 * nothing below it is known to be gone; a name that can't be a path is one, with U+FFFD in it. `ignored`: not looked into.
 */
export const entry = z.discriminatedUnion('kind', [
  z.object({ path, ...file, by }),
  z.object({ path, ...folder, by }),
  z.object({ path, ...link, by }),
  z.object({ path, kind: z.literal('problem'), problem }),
  z.object({ path, kind: z.literal('ignored') }),
]);

const part = z.object({ size: offset, from: z.exactOptional(offset) });

/** Up to the first that is wrong, since there are lists of these in a list: zod keeps an issue for each. */
function areParts(value: unknown): value is z.output<typeof part>[] {
  if (!Array.isArray(value) || value.length > PARTS_MAX) return false;
  return value.every((one) => z.safeParse(part, one).success);
}

/** Content to send. With parts it is put together: from where they say in `base`, and where they do not, from bytes sent. */
export const sendItem = z
  .object(
    {
      sha256,
      size: offset,
      base: z.exactOptional(sha256),
      parts: z.exactOptional(
        z.pipe(z.custom(areParts, `a list of at most ${PARTS_MAX} parts`), z.array(part)),
      ),
    },
    'content to send',
  )
  .check(
    z.refine(
      ({ size, base, parts }) =>
        (base === undefined) === (parts === undefined) &&
        (parts === undefined || parts.reduce((sum, part) => sum + part.size, 0) === size),
      { path: ['parts'], error: 'given with base, and make up the size together' },
    ),
  );

/** Content to fetch, from where a scan saw it. */
export const fetchItem = z.object(
  {
    path,
    sha256,
    /** Only so many bytes from here on. */
    from: z.exactOptional(offset),
    size: z.exactOptional(offset),
    /** In place of the bytes its blocks, 1 MiB each but the last: for each the length, 4 bytes big-endian, and the SHA-256. */
    blocks: z.exactOptional(oneOf(['fixed'])),
  },
  'content to fetch',
);
