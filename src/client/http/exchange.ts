/** One request and its answer over a given agent, with a limit on each phase and on the answer's size. */
import { type Agent, type ClientRequest, type IncomingMessage, request as send } from 'node:http';
import type { Clock } from '../../base/clock.js';
import { createDeferred } from '../../base/deferred.js';

export interface Exchange {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** Makes the connection: which kind of agent it is decides between TCP and TLS. */
  readonly agent: Agent;
  readonly limits: ExchangeLimits;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

export interface ExchangeLimits {
  readonly connectMs: number;
  readonly headersMs: number;
  readonly bodyMs: number;
  readonly bodyBytes: number;
}

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name; several of one name are joined, save cookies, which nobody here reads. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export type Phase = 'connect' | 'headers' | 'body';

/** A phase took longer than it may. */
export class PhaseTimeout extends Error {
  readonly phase: Phase;
  readonly limitMs: number;

  constructor(phase: Phase, limitMs: number) {
    super(`${phase}: nothing within ${limitMs} ms`);
    this.phase = phase;
    this.limitMs = limitMs;
  }
}

/** The answer is longer than it may be. */
export class AnswerTooLong extends Error {
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(`more than ${maxBytes} bytes`);
    this.maxBytes = maxBytes;
  }
}

export async function exchange(options: Exchange): Promise<HttpResponse> {
  const { url, method, headers, body, agent, limits, signal } = options;
  const done = createDeferred<HttpResponse>();
  const fail = (error: unknown): void => done.reject(error);
  const phases = new Phases(options.clock, limits, fail);
  phases.begin('connect');
  // The agent decides on TLS, so `node:http` serves both and `node:https` is loaded only by its agent.
  const outgoing = send(url, { method, headers: withLength(headers, body), agent });
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });

  // Stays for good: a connection may still fail after its outcome is known, and that is nobody's concern then.
  outgoing.on('error', fail);
  onConnected(outgoing, () => phases.begin('headers'));
  outgoing.once('response', (incoming) => {
    phases.begin('body');
    readAnswer(incoming, limits.bodyBytes).then(done.resolve, fail);
  });
  outgoing.end(body);
  try {
    return await done.promise;
  } catch (error) {
    outgoing.destroy();
    throw error;
  } finally {
    phases.end();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** One limit at a time: beginning a phase ends the one before. */
class Phases {
  readonly #clock: Clock;
  readonly #limits: ExchangeLimits;
  readonly #late: (error: PhaseTimeout) => void;
  readonly #ended = new AbortController();
  #current: Phase | undefined;

  constructor(clock: Clock, limits: ExchangeLimits, late: (error: PhaseTimeout) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#late = late;
  }

  begin(phase: Phase): void {
    this.#current = phase;
    const limitMs = this.#limits[`${phase}Ms`];
    this.#clock.sleep(limitMs, this.#ended.signal).then(
      () => {
        if (this.#current === phase) this.#late(new PhaseTimeout(phase, limitMs));
      },
      () => undefined,
    );
  }

  end(): void {
    this.#ended.abort(OVER);
  }
}

/** Made once: a reason of its own would be an error with a stack. */
const OVER = new Error('over');

function onConnected(outgoing: ClientRequest, connected: () => void): void {
  outgoing.once('socket', (socket) => {
    // A kept connection is ready, and a tunnel is handed over ready; both are past connecting.
    if (!socket.connecting) connected();
    else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', connected);
  });
}

async function readAnswer(incoming: IncomingMessage, maxBytes: number): Promise<HttpResponse> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) throw new AnswerTooLong(maxBytes);
  const body = await readBody(incoming, maxBytes);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return { status: incoming.statusCode ?? 0, headers, body };
}

/** By events: an async iterator takes most of a millisecond to begin. A line that is cut is an error event. */
function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    incoming.on('data', (chunk: Uint8Array) => {
      length += chunk.length;
      if (length > maxBytes) reject(new AnswerTooLong(maxBytes));
      else chunks.push(chunk);
    });
    incoming.once('end', () => resolve(Buffer.concat(chunks, length)));
    incoming.once('error', reject);
  });
}

/** A length that is said lets old proxies be; without a body only methods that usually have one say so. */
function withLength(
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | undefined,
): Record<string, string> {
  if (body === undefined) return { ...headers };
  return { ...headers, 'content-length': String(Buffer.byteLength(body)) };
}
