/** What a frame is, how the frames of one direction form a set, and what decoding a message gives. */
import type * as z from 'zod/mini';
import { AilsdError } from './errors.js';

/** The longest message either side reads, and what a server reads from a peer that has not said who it is. */
export const MESSAGE_MAX_BYTES = 1024 * 1024;
export const UNAUTHENTICATED_MESSAGE_MAX_BYTES = 16 * 1024;

/** Bytes that fit into one message in every encoding, JSON's sixfold `\u0000` included: senders cut their chunks to this. */
export const DATA_MAX_BYTES = 128 * 1024;

/** A frame that tells something. On the wire and in memory it has the same fields. */
export interface ControlFrame {
  readonly type: string;
  /** Bytes are what makes a frame the other kind. */
  readonly data?: never;
}

export type DataType = 'stdin' | 'stdout' | 'stderr';

/** A frame that carries bytes of a stream. */
export interface DataFrame<D extends DataType = DataType> {
  readonly type: D;
  readonly data: Uint8Array;
  /** Where in its stream the first byte of `data` stands; a peer that never resumes may leave it out. */
  readonly offset?: number;
}

/** The frames one side may send on one endpoint: a schema for each `type`, and the streams it sends bytes of. */
export interface FrameSet<S extends ControlSchema, D extends DataType> {
  readonly control: Readonly<Record<string, S>>;
  readonly data: readonly D[];
}

export type ControlSchema = z.ZodMiniType<ControlFrame>;

/** The frames of a set as a union, to be switched on `type`. */
export type FrameOf<T> =
  T extends FrameSet<infer S, infer D>
    ? Frozen<z.output<S>> | (D extends DataType ? DataFrame<D> : never)
    : never;

export function frameSet<S extends ControlSchema, D extends DataType>(
  control: Readonly<Record<string, S>>,
  data: readonly D[],
): FrameSet<S, D> {
  return { control, data };
}

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;

/** Decoding never throws: what is no frame of the set is an error to answer with. */
export type Decoded<F> =
  | { readonly ok: true; readonly frame: F }
  | { readonly ok: false; readonly error: AilsdError };

/** The words never repeat what was sent: it may be a token. */
export function refuse(message: string, field?: string): { ok: false; error: AilsdError } {
  const details = field === undefined ? {} : { field };
  return { ok: false, error: new AilsdError('INVALID_REQUEST', message, { details }) };
}

export function refuseTooLong(maxBytes: number): { ok: false; error: AilsdError } {
  const message = `the message is longer than ${maxBytes} bytes`;
  const details = { max_bytes: maxBytes };
  return { ok: false, error: new AilsdError('PAYLOAD_TOO_LARGE', message, { details }) };
}
