/**
 * Frames with bytes, as bytes: 1 of version (high half, 1) and stream (low half, its descriptor's number), 8 of offset
 * (big-endian, all ones for none), then the data to the message's end.
 */
import {
  type ControlSchema,
  type DataFrame,
  type DataType,
  type Decoded,
  type FrameSet,
  MESSAGE_MAX_BYTES,
  refuse,
  refuseTooLong,
} from './frames.js';

export const DATA_HEADER_BYTES = 9;

/** One allocation and one copy of the data. */
export function encodeBinary({ type, data, offset }: DataFrame): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(DATA_HEADER_BYTES + data.length);
  writeDataHeader(message, 0, type, offset);
  message.set(data, DATA_HEADER_BYTES);
  return message;
}

/** For a sender that kept `DATA_HEADER_BYTES` free before its data: the header goes there, and nothing is copied. */
export function writeDataHeader(
  target: Uint8Array,
  at: number,
  type: DataType,
  offset: number | undefined,
): void {
  if (at < 0 || at + DATA_HEADER_BYTES > target.length) {
    throw new RangeError('there is no room for the header of a data frame');
  }
  target[at] = FIRST_BYTES[type];
  writeUint32(target, at + 1, offset === undefined ? NO_OFFSET : offset / 2 ** 32);
  writeUint32(target, at + 5, offset ?? NO_OFFSET);
}

/** The frame's data is a view of the message. */
export function decodeBinary<S extends ControlSchema, D extends DataType>(
  frames: FrameSet<S, D>,
  message: Uint8Array,
  maxBytes = MESSAGE_MAX_BYTES,
): Decoded<DataFrame<D>> {
  if (message.length > maxBytes) return refuseTooLong(maxBytes);
  if (message.length < DATA_HEADER_BYTES) return refuse('the message is too short for a frame');
  const first = message[0];
  const type = frames.data.find((name) => FIRST_BYTES[name] === first);
  if (type === undefined) return refuse('type is not one of this endpoint', 'type');

  const high = readUint32(message, 1);
  const low = readUint32(message, 5);
  const data = message.subarray(DATA_HEADER_BYTES);
  if (high === NO_OFFSET && low === NO_OFFSET) return { ok: true, frame: { type, data } };
  const offset = high * 2 ** 32 + low;
  if (!Number.isSafeInteger(offset)) {
    return refuse(`the ${type} frame: offset must be at most ${Number.MAX_SAFE_INTEGER}`, 'offset');
  }
  return { ok: true, frame: { type, data, offset } };
}

const FIRST_BYTES = { stdin: 0x10, stdout: 0x11, stderr: 0x12 } as const satisfies Record<
  DataType,
  number
>;
/** Both halves of an offset field that says there is none. */
const NO_OFFSET = 0xffff_ffff;

function writeUint32(target: Uint8Array, at: number, value: number): void {
  target[at] = value >>> 24;
  target[at + 1] = value >>> 16;
  target[at + 2] = value >>> 8;
  target[at + 3] = value;
}

function readUint32(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  const low = ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
  return high * 0x1_0000 + low;
}
