/** Speaks to the daemon of a folder over its socket file. Knows nothing of what the requests are for. */
import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../../../base/error-code.js';
import { AilsdError, isErrorCode } from '../../../protocol/errors.js';
import { type Output, parse, type Schema } from '../../../protocol/parse.js';

export type ControlMethod = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** `absent`: nobody serves the folder. A daemon that is there and does not answer is PROVIDER_UNAVAILABLE. */
export async function callDaemon<S extends Schema>(
  socketPath: string,
  method: ControlMethod,
  path: string,
  schema: S,
  signal: AbortSignal,
  mayAskAgain = true,
): Promise<{ kind: 'answer'; value: Output<S> } | { kind: 'absent' }> {
  let reply: { status: number; text: string };
  try {
    reply = await exchange(socketPath, method, path, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (isNobodyThere(error)) return { kind: 'absent' };
    // Asking is asked again: of one that was dying, the next connection learns that nobody is there.
    if (method === 'GET' && mayAskAgain && errorCode(error) === 'ECONNRESET') {
      await sleep(ASK_AGAIN_MS);
      return callDaemon(socketPath, method, path, schema, signal, false);
    }
    throw new AilsdError('PROVIDER_UNAVAILABLE', "the sandboxes' daemon does not answer", {
      cause: error,
    });
  }
  const value = parseJson(reply.text);
  if (reply.status !== 200) throw toError(value);
  const parsed = parse(schema, value, 'PROTOCOL_MISMATCH', "the daemon's answer: ");
  if (!parsed.ok) throw parsed.error;
  return { kind: 'answer', value: parsed.value };
}

const ASK_AGAIN_MS = 100;

/** A daemon that dies takes those who were in its queue with it: they were never let in. */
function isNobodyThere(error: unknown): boolean {
  const code = errorCode(error) ?? '';
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return true;
  return code === 'ECONNRESET' && error instanceof Error && 'syscall' in error
    ? error.syscall === 'connect'
    : false;
}

/** Starting a sandbox takes milliseconds; a stopped or dying daemon must not hold a broker for longer. */
const ANSWER_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

function exchange(
  socketPath: string,
  method: ControlMethod,
  path: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { socketPath, method, path, signal, agent: false, headers: { host: 'sandboxd' } },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MAX_ANSWER_BYTES) request.destroy(new Error('the answer is too long'));
          chunks.push(chunk);
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(chunks).toString('utf8'),
          }),
        );
      },
    );
    request.setTimeout(ANSWER_MS, () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
    request.end();
  });
}

function toError(value: unknown): AilsdError {
  const error = isRecord(value) && isRecord(value['error']) ? value['error'] : {};
  const { code, message, ...details } = error;
  const known = typeof code === 'string' && isErrorCode(code) && code !== 'INTERNAL';
  return new AilsdError(
    known ? code : 'PROVIDER_UNAVAILABLE',
    typeof message === 'string' ? message : "the sandboxes' daemon failed",
    { details },
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
