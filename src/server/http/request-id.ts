/** One id for each request, in its answer, its log line and its errors: the caller's own, if it is a plain one. */
import type { IncomingMessage } from 'node:http';
import { REQUEST_ID_PATTERN } from '../../protocol/headers.js';
import { newId, type RandomFill } from '../../protocol/ids.js';

export function requestIdOf(request: IncomingMessage, random: RandomFill): string {
  const given = request.headers['x-request-id'];
  // Two headers arrive joined by a comma, which is not plain.
  if (typeof given === 'string' && REQUEST_ID_PATTERN.test(given)) return given;
  return newId('request', random);
}
