/**
 * The frames of sync: one root in the sandbox, which the client compares with its own and decides about. Contents are known
 * by their SHA-256, and no clock is ever compared. Whatever is asked for may be asked for again after a cut.
 */
import * as z from 'zod/mini';
import {
  authFrame,
  authOkFrame,
  closeFrame,
  errorFrame,
  pingFrame,
  pongFrame,
} from './common-frames.js';
import { few, flag, id, offset, oneOf, sha256, text } from './frame-fields.js';
import { type FrameOf, frameSet } from './frames.js';
import {
  by,
  entry,
  fetchItem,
  IGNORE_MAX_PATTERNS,
  path,
  problem,
  SYNC_LIST_MAX,
  sendItem,
  state,
} from './sync-fields.js';

/** Chooses the root, relative to the workspace. Patterns are as in .gitignore, on top of the ignore files in the tree. */
const startFrame = z.object({
  type: z.literal('start'),
  root: path,
  ignore: z.exactOptional(few(IGNORE_MAX_PATTERNS, text(1, 1024))),
  include_git: z.exactOptional(flag),
  /** Whose transfers these are: the same on every connection of one client, and nobody else's. */
  client_id: z.exactOptional(id),
});

/** Another one is another folder, made anew or mounted over: what was agreed on with the one before holds no longer. */
const instance = z.exactOptional(id);

const readyFrame = z.object({
  type: z.literal('ready'),
  root: path,
  /** Left out while there is no root. */
  instance,
  /** Whether `send` and `transition` are allowed. */
  writable: flag,
  case_sensitive: flag,
  keeps_executable: flag,
  /** What the disk makes of names; left out when it keeps them as they are. */
  normal_form: z.exactOptional(oneOf(['nfc', 'nfd'])),
});

/** Looks at the tree: at all of it, or, having had hints, at these paths and what is below them. */
const scanFrame = z.object({
  type: z.literal('scan'),
  scan_id: id,
  /** The snapshot the client still has: only what differs from it need be told. */
  since: z.exactOptional(sha256),
  paths: z.exactOptional(few(SYNC_LIST_MAX, path)),
});

/** What was found, and a name for it: the same name, the same tree. */
const scannedFrame = z.object({
  type: z.literal('scanned'),
  scan_id: id,
  instance,
  snapshot: sha256,
  /** As asked: entries and gone are what differs from it, none if nothing does. Left out: the entries are the whole tree. */
  since: z.exactOptional(sha256),
  entries: few(SYNC_LIST_MAX, entry),
  gone: z.exactOptional(few(SYNC_LIST_MAX, z.object({ path, by }, 'a path that is gone'))),
  /** The same scan goes on in another frame; it counts only when it is whole. */
  more: z.exactOptional(flag),
});

/** Asks for hints. The first `changed`, of all, says that watching has begun: what happens after it is told. */
const watchFrame = z.object({ type: z.literal('watch') });

/** Only a hint that a scan may find something; a problem says why hints come late, such as watches having run out. */
const changedFrame = z.object({
  type: z.literal('changed'),
  paths: z.union(
    [z.literal('all'), few(SYNC_LIST_MAX, path)],
    `all, or a list of at most ${SYNC_LIST_MAX} paths`,
  ),
  problem: z.exactOptional(problem),
});

const ONE_OF_FOUR = 'given, or else fetch, resume or end: one of them alone';

/**
 * Opens a transfer, goes on with one after a cut, or ends one early. Its bytes are those of its items, end to end, in `stdin`
 * frames for `send` and `stdout` frames for `fetch`, with offsets from its beginning. Many may be open: those of a direction
 * pass their bytes one after the other, in the order they were opened in on this connection.
 */
const stageFrame = z
  .object({
    type: z.literal('stage'),
    transfer_id: id,
    send: z.exactOptional(few(SYNC_LIST_MAX, sendItem)),
    fetch: z.exactOptional(few(SYNC_LIST_MAX, fetchItem)),
    /** The first byte of a fetch that the client lacks; for a `send` the answer says where to go on. */
    resume: z.exactOptional(offset),
    /** No more bytes of it are sent or wanted; what is whole is kept. */
    end: z.exactOptional(z.literal(true)),
  })
  .check(
    z.refine(
      ({ send, fetch, resume, end }) =>
        [send, fetch, resume, end].filter((one) => one !== undefined).length === 1,
      { path: ['send'], error: ONE_OF_FOUR },
    ),
  );

/** Answers `stage`, and comes again when the transfer is done: every byte passed and checked against its digest. */
const stagedFrame = z.object({
  type: z.literal('staged'),
  transfer_id: id,
  state: oneOf(['open', 'done']),
  /** Where the transfer's bytes go on. */
  offset,
  /** For each item the bytes still to pass, its last ones: none for content that is already there. */
  items: few(
    SYNC_LIST_MAX,
    z.object({ bytes: offset, problem: z.exactOptional(problem) }, 'an item'),
  ),
});

/** Everything before `offset` of a transfer was taken. */
const transferAckFrame = z.object({ type: z.literal('ack'), transfer_id: id, offset });

/** Changes, made in this order, each only if its path is still as expected. A folder goes only when it is empty. */
const transitionFrame = z.object({
  type: z.literal('transition'),
  transition_id: id,
  changes: few(SYNC_LIST_MAX, z.object({ path, expect: state, to: state, by }, 'a change')),
});

/** In the order of the changes. What already was as it should be is done, so that a transition can be sent again. */
const transitionedFrame = z.object({
  type: z.literal('transitioned'),
  transition_id: id,
  results: few(
    SYNC_LIST_MAX,
    z.discriminatedUnion('outcome', [
      z.object({ outcome: z.literal('done') }),
      z.object({ outcome: z.literal('conflict'), current: state, by }),
      z.object({ outcome: z.literal('problem'), problem }),
    ]),
  ),
});

/** `about` is the scan, transfer or transition that failed as a whole; without it, the frame before. */
const syncErrorFrame = z.extend(errorFrame, { about: z.exactOptional(id) });

export const syncClientFrames = frameSet(
  {
    auth: authFrame,
    start: startFrame,
    scan: scanFrame,
    watch: watchFrame,
    stage: stageFrame,
    transition: transitionFrame,
    ack: transferAckFrame,
    ping: pingFrame,
    close: closeFrame,
  },
  ['stdin'],
);

export const syncServerFrames = frameSet(
  {
    auth_ok: authOkFrame,
    ready: readyFrame,
    scanned: scannedFrame,
    changed: changedFrame,
    staged: stagedFrame,
    transitioned: transitionedFrame,
    ack: transferAckFrame,
    pong: pongFrame,
    error: syncErrorFrame,
  },
  ['stdout'],
);

export type SyncClientFrame = FrameOf<typeof syncClientFrames>;
export type SyncServerFrame = FrameOf<typeof syncServerFrames>;
