/** The run of `ailsd api`: sends it, prints the answer, ends with what the answer's error means. */
import { decodeUtf8 } from '../../base/bytes.js';
import { errorFromAnswer } from '../../client/http/answer.js';
import type { HttpResponse } from '../../client/http/exchange.js';
import { Asker } from '../../client/sessions/asker.js';
import { isDocument } from '../../client/sessions/call.js';
import { AilsdError } from '../../protocol/errors.js';
import type { ApiOptions } from '../commands/api.js';
import type { Context } from '../context.js';
import { escapeLines } from '../escape.js';
import { jsonText } from '../output.js';
import { readInput } from '../read-input.js';
import { createSessionWorld } from './session-world.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** The server reads no more. */
const MOST_BYTES = 1024 * 1024;
const MOST_ANSWER_BYTES = 64 * 1024 * 1024;

export async function runApi(
  context: Context,
  method: string,
  path: string,
  { data, header = {} }: ApiOptions,
): Promise<void> {
  const body = data === undefined ? undefined : bodyOf(context, data);
  const url = checkPath(path);
  using world = createSessionWorld(context);
  const response = await new Asker(world).request({
    method: checkMethod(method),
    url,
    headers: {
      accept: 'application/json, */*;q=0.5',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...header,
    },
    body,
    maxBytes: MOST_ANSWER_BYTES,
    signal: context.signal,
  });
  if (response.status < 200 || response.status > 299) throw errorFromAnswer(response);
  print(context, response);
}

function checkMethod(method: string): string {
  const upper = method.toUpperCase();
  if (METHODS.includes(upper)) return upper;
  throw new AilsdError('USAGE', 'that is not a method', {
    hint: `a method is one of ${METHODS.join(', ')}`,
  });
}

/** The token goes to the server in use and to nobody else. */
function checkPath(path: string): string {
  if (path.startsWith('/') && !path.startsWith('//') && /^[\x21-\x7e]+$/.test(path)) return path;
  throw new AilsdError('USAGE', 'that is not a path of the server', {
    hint: 'write it as /v1/whoami; other servers are chosen with --url',
  });
}

function bodyOf(context: Context, data: string): string {
  const isPlace = data === '-' || data.startsWith('@');
  const place = data.startsWith('@') ? data.slice(1) : data;
  const text = isPlace ? readInput(context, place, MOST_BYTES) : data;
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw new AilsdError('USAGE', 'what is to be sent is not JSON', {
      hint: 'give --data JSON, @FILE, or - for standard input',
    });
  }
}

function print({ output, io }: Context, { status, headers, body }: HttpResponse): void {
  const type = headers['content-type'] ?? '';
  const text = decodeUtf8(body) ?? '';
  if (body.length === 0) {
    output.result({ status }, () => '');
  } else if (/^application\/(jsonl|x-ndjson)/.test(type)) {
    const lines = text.split('\n').filter((line) => line !== '');
    const items = lines.map(parsed).filter(isDocument);
    output.list(items, () => items.map((item) => jsonText(item, false)).join('\n'));
  } else if (/json/.test(type)) {
    io.out.write(`${jsonText(parsed(text), output.mode !== 'jsonl')}\n`);
  } else {
    output.result({ status, content_type: type, body: text }, () => escapeLines(text));
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AilsdError('PROTOCOL_MISMATCH', 'the server answered something that is not JSON');
  }
}
