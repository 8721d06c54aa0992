/** Writes an answer piece by piece: no more is held than the caller has yet to take, and one that takes nothing is let go. */
import type { ServerResponse } from 'node:http';
import { AilsdError } from '../../protocol/errors.js';
import type { Answer } from './call.js';
import type { Exchange } from './exchange.js';

/** A caller that takes nothing for this long has gone, whatever its socket says. */
export const STALL_MS = 60_000;

/** Returns when all is handed over, or nobody is there to take it. The headers are out with the first piece. */
export async function streamAnswer(
  exchange: Exchange,
  { status = 200, headers, stream }: Answer,
  stallMs = STALL_MS,
): Promise<void> {
  const { response } = exchange;
  const pieces = (stream ?? nothing())[Symbol.asyncIterator]();
  try {
    // What fails before the first piece is still an answer of its own.
    let next = await pieces.next();
    if (exchange.isGone) return;
    response.writeHead(status, { ...exchange.headers, ...headers });
    response.flushHeaders();
    for (; next.done !== true; next = await pieces.next()) {
      if (exchange.isGone) return;
      if (!response.write(next.value)) await drained(response, stallMs);
    }
    response.end();
  } catch (thrown) {
    if (!exchange.isGone) exchange.fail(thrown);
  } finally {
    await pieces.return?.();
  }
}

/** Resolves also when the other side has gone: whoever writes next finds that out. */
function drained(response: ServerResponse, stallMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (settle: () => void): void => {
      clearTimeout(timer);
      response.off('drain', taken).off('close', taken);
      settle();
    };
    const taken = (): void => stop(resolve);
    const stalled = (): void => stop(() => reject(new AilsdError('TIMEOUT', STALLED)));
    const timer = setTimeout(stalled, stallMs);
    response.on('drain', taken).on('close', taken);
  });
}

const STALLED = 'the caller takes nothing';

async function* nothing(): AsyncGenerator<never> {}
