/** Frames as JSON text, for any client. Bytes are a string when they are UTF-8, and base64 when they are not. */
/// <reference lib="es2024.string" />
import * as z from 'zod/mini';
import { decodeUtf8, encodeUtf8 } from '../base/bytes.js';
import { decodeBase64, encodeBase64 } from './frame-base64.js';
import { isLongerThan, offset } from './frame-fields.js';
import {
  type ControlFrame,
  type ControlSchema,
  type DataFrame,
  type DataType,
  type Decoded,
  type FrameSet,
  MESSAGE_MAX_BYTES,
  refuse,
  refuseTooLong,
} from './frames.js';
import { parse } from './parse.js';

export function encodeJson(frame: ControlFrame | DataFrame): string {
  return frame.data === undefined ? JSON.stringify(frame) : encodeDataJson(frame);
}

export function decodeJson<S extends ControlSchema, D extends DataType>(
  frames: FrameSet<S, D>,
  text: string,
  maxBytes = MESSAGE_MAX_BYTES,
): Decoded<z.output<S> | DataFrame<D>> {
  if (isLongerThan(maxBytes, text)) return refuseTooLong(maxBytes);
  const value = parseObject(text);
  if (value === undefined) return refuse('the message is not a JSON object');
  const { type } = value;
  if (typeof type !== 'string') return refuse('type must be text', 'type');

  const stream = frames.data.find((name) => name === type);
  if (stream !== undefined) return decodeDataJson(stream, value);

  const schema = Object.hasOwn(frames.control, type) ? frames.control[type] : undefined;
  if (schema === undefined) return refuse('type is not one of this endpoint', 'type');
  const parsed = parse(schema, value, 'INVALID_REQUEST', `the ${type} frame: `);
  return parsed.ok ? { ok: true, frame: parsed.value } : parsed;
}

/** What a frame with bytes looks like on the wire, beside its `type`. */
export const dataFields = z.object({
  data: z.string('text'),
  encoding: z.exactOptional(z.literal('base64', 'base64, or left out')),
  offset: z.exactOptional(offset),
});

function encodeDataJson({ type, data, offset: at }: DataFrame): string {
  const head = at === undefined ? `{"type":"${type}",` : `{"type":"${type}","offset":${at},`;
  const text = decodeUtf8(data);
  return text === undefined
    ? `${head}"encoding":"base64","data":"${encodeBase64(data)}"}`
    : `${head}"data":${JSON.stringify(text)}}`;
}

function decodeDataJson<D extends DataType>(type: D, value: object): Decoded<DataFrame<D>> {
  const parsed = parse(dataFields, value, 'INVALID_REQUEST', `the ${type} frame: `);
  if (!parsed.ok) return parsed;
  const { data: text, encoding, offset: at } = parsed.value;
  const data = encoding === 'base64' ? decodeBase64(text) : toUtf8(text);
  if (data === undefined) {
    const says = encoding ?? 'text without half surrogates';
    return refuse(`the ${type} frame: data must be ${says}`, 'data');
  }
  return { ok: true, frame: at === undefined ? { type, data } : { type, data, offset: at } };
}

/** Half a surrogate pair has no bytes: encoding it would silently make another character of it. */
function toUtf8(text: string): Uint8Array | undefined {
  return text.isWellFormed() ? encodeUtf8(text) : undefined;
}

function parseObject(text: string): { readonly type?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    // The parser's own words quote the message, which may hold a token.
    return undefined;
  }
}
