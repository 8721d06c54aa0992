/** A request's body as it comes: bounded in size, and given up when nothing more comes. */
import type { IncomingMessage } from 'node:http';
import { onAbort } from '../../../base/abort.js';
import { AilsdError } from '../../../protocol/errors.js';
import { checkBodyHeaders } from '../../http/body.js';

export const BODY_MAX_BYTES = 16 * 1024 ** 3;
/** Between two pieces. */
const STALL_MS = 60_000;

export async function* receive(
  request: IncomingMessage,
  signal: AbortSignal,
  maxBytes = BODY_MAX_BYTES,
): AsyncGenerator<Uint8Array, void, undefined> {
  checkBodyHeaders(request, maxBytes);
  let length = 0;
  let wake: NodeJS.Timeout | undefined;
  const callOff = onAbort(signal, () => request.destroy());
  const wait = (): void => {
    clearTimeout(wake);
    wake = setTimeout(() => request.destroy(), STALL_MS);
  };
  try {
    wait();
    // Left as it is on an error of ours, so that the caller can still be told.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (!(chunk instanceof Uint8Array)) continue;
      wait();
      length += chunk.length;
      if (length > maxBytes)
        throw new AilsdError('PAYLOAD_TOO_LARGE', `a body may have ${maxBytes} bytes`, {
          details: { max_bytes: maxBytes },
        });
      yield chunk;
    }
    if (!request.complete) throw cut();
  } catch (error) {
    if (error instanceof AilsdError) throw error;
    throw cut(error);
  } finally {
    clearTimeout(wake);
    callOff();
  }
}

function cut(cause?: unknown): AilsdError {
  return new AilsdError('INVALID_REQUEST', 'the body ended too early', {
    details: { field: 'body' },
    cause,
  });
}
