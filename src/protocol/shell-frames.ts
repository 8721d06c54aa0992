/** The frames of a shell: a terminal that lives in the sandbox and is watched and driven over connections that come and go. */
import * as z from 'zod/mini';
import {
  ackFrame,
  authFrame,
  authOkFrame,
  closeFrame,
  eofFrame,
  errorFrame,
  pingFrame,
  pongFrame,
} from './common-frames.js';
import {
  actor,
  argv,
  env,
  few,
  flag,
  HISTORY_MAX_LINES,
  id,
  offset,
  oneOf,
  outcome,
  path,
  role,
  SCREEN_MAX_CHARS,
  signal,
  size,
  sizePolicy,
  term,
  text,
  VIEWERS_MAX,
  whole,
} from './frame-fields.js';
import { type FrameOf, frameSet } from './frames.js';

/** A client that only ever sends `auth` and `stdin` gets the main shell, as by a `start` without fields. */
const startFrame = z.object({
  type: z.literal('start'),
  /** Left out: the main shell, made when there is none. `new`: another one. */
  shell_id: z.exactOptional(id),
  /** The first output byte the client lacks; without it, it has seen nothing. */
  offset: z.exactOptional(offset),
  /** The first input byte the client can still send again. */
  input_offset: z.exactOptional(offset),
  /** Whose input offsets these are: the same on every connection of one client, and nobody else's. */
  client_id: z.exactOptional(id),
  cols: z.exactOptional(size),
  rows: z.exactOptional(size),
  size_policy: z.exactOptional(sizePolicy),
  /** Lines of earlier output wanted above the screen. */
  history: z.exactOptional(whole(0, HISTORY_MAX_LINES)),
  /** Only watch, whatever the token allows. */
  observe: z.exactOptional(flag),
  term: z.exactOptional(term),
  cwd: z.exactOptional(path),
  env: z.exactOptional(env),
  /** What to run in place of the login shell. */
  command: z.exactOptional(argv),
});

const resizeFrame = z.object({ type: z.literal('resize'), cols: size, rows: size });

const signalFrame = z.object({ type: z.literal('signal'), signal });

/** The writer's lease: taken at once where that is allowed, asked for otherwise, given back. */
const controlFrame = z.object({
  type: z.literal('control'),
  action: oneOf(['take', 'request', 'release']),
});

const readyFrame = z.object({
  type: z.literal('ready'),
  shell_id: id,
  /** `fresh`: all output from the first byte. `resumed`: from the offset asked for. `snapshot`: a screen comes first. */
  state: oneOf(['fresh', 'resumed', 'snapshot']),
  role,
  /** The offset of the next `stdout`, or of the snapshot. */
  offset,
  /** Input of this client that was applied: it sends again from here. */
  input_offset: offset,
  cols: size,
  rows: size,
  size_policy: z.exactOptional(sizePolicy),
});

/** The screen as escape sequences, for output that is no longer kept: what is shown when all before `offset` was. */
const snapshotFrame = z.object({
  type: z.literal('snapshot'),
  offset,
  cols: size,
  rows: size,
  screen: text(0, SCREEN_MAX_CHARS),
  /** The same screen goes on in another frame. */
  more: z.exactOptional(flag),
});

const resizedFrame = z.object({
  type: z.literal('resize'),
  cols: size,
  rows: size,
  /** Output from here on was written for this size. */
  offset: z.exactOptional(offset),
});

/** Who holds the writer's lease has changed, or somebody wants it. */
const leaseFrame = z.object({
  type: z.literal('control'),
  event: oneOf(['granted', 'taken', 'requested', 'released', 'refused']),
  /** What the receiver is from here on. */
  role,
  /** Who did it: the kind of actor, and their name. */
  actor: z.exactOptional(actor),
  subject: z.exactOptional(text(1, 256)),
});

/** Everybody attached, whenever that changes. */
const presenceFrame = z.object({
  type: z.literal('presence'),
  viewers: few(
    VIEWERS_MAX,
    z.object(
      {
        actor,
        role,
        client_id: z.exactOptional(id),
        subject: z.exactOptional(text(1, 256)),
      },
      'a viewer',
    ),
  ),
});

/** The program ended after the byte before `offset`: nothing follows. */
const exitFrame = z.object({ type: z.literal('exit'), ...outcome, offset });

export const shellClientFrames = frameSet(
  {
    auth: authFrame,
    start: startFrame,
    resize: resizeFrame,
    signal: signalFrame,
    control: controlFrame,
    ack: ackFrame,
    eof: eofFrame,
    ping: pingFrame,
    close: closeFrame,
  },
  ['stdin'],
);

export const shellServerFrames = frameSet(
  {
    auth_ok: authOkFrame,
    ready: readyFrame,
    snapshot: snapshotFrame,
    resize: resizedFrame,
    control: leaseFrame,
    presence: presenceFrame,
    ack: ackFrame,
    exit: exitFrame,
    pong: pongFrame,
    error: errorFrame,
  },
  ['stdout'],
);

export type ShellClientFrame = FrameOf<typeof shellClientFrames>;
export type ShellServerFrame = FrameOf<typeof shellServerFrames>;
