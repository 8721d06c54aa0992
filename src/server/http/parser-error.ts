/** Answers what is not HTTP, or too much or too slow to be let in: there is no request yet, only a socket. */

import type { Duplex } from 'node:stream';
import { errorCode } from '../../base/error-code.js';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { newId, type RandomFill } from '../../protocol/ids.js';
import { errorAnswer } from './errors.js';

export function answerParserError(
  error: Error,
  socket: Duplex,
  random: RandomFill,
  logger: Logger,
): void {
  const code = errorCode(error) ?? 'unknown';
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = newId('request', random);
  const { line, error: reason } = answerFor(code);
  const { body } = errorAnswer(reason, requestId, false);
  logger.info('refused before it was a request', { request_id: requestId, reason: code });
  const head = [
    `HTTP/1.1 ${line}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  // Ends, and does not wait for a peer that never closes its own half.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

function answerFor(code: string): { readonly line: string; readonly error: AilsdError } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        line: '431 Request Header Fields Too Large',
        error: new AilsdError('PAYLOAD_TOO_LARGE', 'the header is too large'),
      };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return {
        line: '408 Request Timeout',
        error: new AilsdError('INVALID_REQUEST', 'the request took too long to arrive'),
      };
    default:
      return {
        line: '400 Bad Request',
        error: new AilsdError('INVALID_REQUEST', 'that is not an HTTP request'),
      };
  }
}
