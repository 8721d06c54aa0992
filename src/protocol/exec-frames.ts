/** The frames of exec: one command, its streams apart, its outcome kept under its id. */
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
  argv,
  env,
  flag,
  id,
  offset,
  oneOf,
  outcome,
  path,
  sha256,
  signal,
  size,
  TIMEOUT_MAX_MS,
  term,
  whole,
} from './frame-fields.js';
import { type FrameOf, frameSet } from './frames.js';

/**
 * `argv` runs it; `command_id` alone goes on with a command that runs or ran. Both: it runs under that id unless it
 * already does, so that a start whose answer was lost can be sent again.
 */
const startFrame = z
  .object({
    type: z.literal('start'),
    argv: z.exactOptional(argv),
    command_id: z.exactOptional(id),
    /** The first bytes the client lacks. */
    stdout_offset: z.exactOptional(offset),
    stderr_offset: z.exactOptional(offset),
    cwd: z.exactOptional(path),
    env: z.exactOptional(env),
    timeout_ms: z.exactOptional(whole(1, TIMEOUT_MAX_MS)),
    /** What is kept and sent of each output; the rest is counted and dropped. */
    limits: z.exactOptional(
      z.object(
        {
          stdout_bytes: z.exactOptional(offset),
          stderr_bytes: z.exactOptional(offset),
        },
        'limits of the outputs',
      ),
    ),
    /** Run it in a terminal: one stream, `stdout`. */
    tty: z.exactOptional(flag),
    cols: z.exactOptional(size),
    rows: z.exactOptional(size),
    term: z.exactOptional(term),
  })
  .check(
    z.refine((start) => start.argv !== undefined || start.command_id !== undefined, {
      path: ['argv'],
      error: 'given, unless command_id names a command to go on with',
    }),
  );

const resizeFrame = z.object({ type: z.literal('resize'), cols: size, rows: size });

const signalFrame = z.object({ type: z.literal('signal'), signal });

/** Everything before `offset` of one output was dealt with. */
const outputAckFrame = z.object({
  type: z.literal('ack'),
  stream: oneOf(['stdout', 'stderr']),
  offset,
});

const readyFrame = z.object({
  type: z.literal('ready'),
  command_id: id,
  state: oneOf(['fresh', 'resumed']),
  /** Where each output goes on; past what was asked for if that is no longer kept. */
  stdout_offset: offset,
  stderr_offset: offset,
  /** Input that was applied: the client sends again from here. */
  input_offset: offset,
});

/** Follows the last byte of both outputs. */
const exitFrame = z.object({
  type: z.literal('exit'),
  ...outcome,
  /** All that the command wrote, also what a limit cut off. */
  stdout_offset: offset,
  stderr_offset: offset,
  stdout_truncated: flag,
  stderr_truncated: flag,
  /** Of all that the command wrote; left out when its end was not seen. */
  stdout_sha256: z.exactOptional(sha256),
  stderr_sha256: z.exactOptional(sha256),
});

export const execClientFrames = frameSet(
  {
    auth: authFrame,
    start: startFrame,
    resize: resizeFrame,
    signal: signalFrame,
    ack: outputAckFrame,
    eof: eofFrame,
    ping: pingFrame,
    close: closeFrame,
  },
  ['stdin'],
);

export const execServerFrames = frameSet(
  {
    auth_ok: authOkFrame,
    ready: readyFrame,
    ack: ackFrame,
    exit: exitFrame,
    pong: pongFrame,
    error: errorFrame,
  },
  ['stdout', 'stderr'],
);

export type ExecClientFrame = FrameOf<typeof execClientFrames>;
export type ExecServerFrame = FrameOf<typeof execServerFrames>;
