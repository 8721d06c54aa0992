/** The frames of a tunnel: one TCP connection to a port inside the sandbox, half-closed from either end by `eof`. */
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
import { whole } from './frame-fields.js';
import { type FrameOf, frameSet } from './frames.js';

const port = whole(1, 65_535);

const startFrame = z.object({ type: z.literal('start'), port });

/** The port was connected to. */
const readyFrame = z.object({ type: z.literal('ready'), port });

export const tunnelClientFrames = frameSet(
  {
    auth: authFrame,
    start: startFrame,
    ack: ackFrame,
    eof: eofFrame,
    ping: pingFrame,
    close: closeFrame,
  },
  ['stdin'],
);

export const tunnelServerFrames = frameSet(
  {
    auth_ok: authOkFrame,
    ready: readyFrame,
    ack: ackFrame,
    eof: eofFrame,
    pong: pongFrame,
    error: errorFrame,
  },
  ['stdout'],
);

export type TunnelClientFrame = FrameOf<typeof tunnelClientFrames>;
export type TunnelServerFrame = FrameOf<typeof tunnelServerFrames>;
