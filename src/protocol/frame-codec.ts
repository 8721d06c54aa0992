/** Frames and messages of a WebSocket: text is JSON, binary is bytes of a stream. Which of them to send is agreed at the upgrade. */
import type * as z from 'zod/mini';
import { decodeBinary, encodeBinary } from './frame-binary.js';
import { decodeJson, encodeJson } from './frame-json.js';
import type {
  ControlFrame,
  ControlSchema,
  DataFrame,
  DataType,
  Decoded,
  FrameSet,
} from './frames.js';

/** What may be offered in `Sec-WebSocket-Protocol`. A client that offers nothing is spoken to in JSON. */
export const SUBPROTOCOLS = { json: 'ailsd.v1.json', binary: 'ailsd.v1.binary' } as const;

/** How frames with bytes are sent; all others are JSON in both. */
export type Wire = keyof typeof SUBPROTOCOLS;

/** The first offered name that is known: a client offers what it likes best first. */
export function chooseWire(offered: Iterable<string>): Wire | undefined {
  for (const name of offered) {
    if (name === SUBPROTOCOLS.binary) return 'binary';
    if (name === SUBPROTOCOLS.json) return 'json';
  }
  return undefined;
}

/** Text goes out as a text message, bytes as a binary one. */
export function encodeFrame(
  frame: ControlFrame | DataFrame,
  wire: Wire,
): string | Uint8Array<ArrayBuffer> {
  return wire === 'binary' && frame.data !== undefined ? encodeBinary(frame) : encodeJson(frame);
}

/** Reads both kinds of message, whatever was agreed: the agreement binds a sender only. */
export function decodeFrame<S extends ControlSchema, D extends DataType>(
  frames: FrameSet<S, D>,
  message: string | Uint8Array,
  maxBytes?: number,
): Decoded<z.output<S> | DataFrame<D>> {
  return typeof message === 'string'
    ? decodeJson(frames, message, maxBytes)
    : decodeBinary(frames, message, maxBytes);
}
