/** What stands behind a WebSocket route: which frames it takes, and what it is given once somebody has said who they are. */
import type { Close } from '../../../protocol/closes.js';
import type { ControlFrame, DataFrame, FrameOf } from '../../../protocol/frames.js';
import type { Identity } from '../access/identity.js';

/** `auth` and `ping` are dealt with before. */
export type TakenFrame<F> = Exclude<FrameOf<F>, { type: 'auth' | 'ping' }>;

export interface Endpoint<F> {
  readonly frames: F;
  open(peer: Peer): EndpointSession<TakenFrame<F>>;
}

/** One connection's work. What it throws is answered with an `error` frame and changes nothing else. */
export interface EndpointSession<F> {
  /** Until a promise settles, no further frame comes. */
  take(frame: F): void | Promise<void>;
  /** What was sent has left our process. */
  drained?(): void;
  /** Whether the peer has left much unread that is on its way to it. */
  isBehind?(): boolean;
  /** A fresh token may allow more or less than the one before. */
  identified?(): void;
  closed(code: number): void;
}

/** The other side, as an endpoint sees it. */
export interface Peer {
  /** As the latest token says. */
  readonly identity: Identity;
  readonly bufferedBytes: number;
  readonly isClosed: boolean;
  send(frame: ControlFrame | DataFrame): void;
  /** Reads nothing more from it until `release`. */
  hold(): void;
  release(): void;
  /** It said that it leaves. */
  leave(): void;
  close(close: Close): void;
}
