/** Asks the server for a thread's sandbox, and waits for one that is still starting. */
import type { Capability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import type { ThreadId } from '../../protocol/ids.js';
import { Backoff } from '../../stream/backoff.js';
import type { JsonAnswer } from '../http/http.js';
import { type Negotiated, parseNegotiated } from './answer.js';
import type { Asker } from './asker.js';
import { clockSkewMs } from './clock-skew.js';
import type { SessionWorld } from './world.js';

/** `get` and `attach_only` never create, `create_only` always does, `ensure` does when it must. */
export type SessionMode = 'get' | 'ensure' | 'attach_only' | 'create_only';

export interface NegotiateOptions {
  /** What to ask for; by default what the server gives the actor. */
  readonly capabilities?: readonly Capability[] | undefined;
  /** Who will use it, which can only narrow what the login may; by default what the login is. */
  readonly actor?: 'human' | 'agent' | undefined;
  /** Of the token; the server clamps it. */
  readonly ttlSeconds?: number | undefined;
  readonly template?: string | undefined;
  readonly provider?: string | undefined;
  /** A sandbox to use again if it can be, before the one that is remembered. */
  readonly sandboxHint?: string | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long a sandbox may take to start; 0 does not wait at all. */
  readonly startTimeoutMs?: number | undefined;
  /** Told that the sandbox is still starting, each time that is learned. */
  readonly starting?: ((elapsedMs: number) => void) | undefined;
}

export interface NegotiateRequest extends NegotiateOptions {
  readonly thread: ThreadId;
  readonly mode: SessionMode;
}

/** A session and by how much the server's clock is ahead of ours. */
export interface Negotiation {
  readonly negotiated: Negotiated;
  readonly skewMs: number;
}

/** Written out and not built from the table of routes, which this shortest of paths does without; a test compares them. */
export const NEGOTIATE_PATH = '/v1/sandbox/sessions';

export const START_TIMEOUT_MS = 120_000;

/** Throws SANDBOX_STARTING where nobody wanted to wait, TIMEOUT where it took longer than they did. */
export async function negotiate(
  world: SessionWorld,
  asker: Asker,
  request: NegotiateRequest,
  wait: WaitOptions = {},
): Promise<Negotiation> {
  return new Attempts(world, asker, request, wait).run();
}

/** The longest that one request is left open for a sandbox to start. */
const PREFER_WAIT_SECONDS = 25;
/** On top of it, for the server to begin its answer. */
const ANSWER_MS = 15_000;
/** What a server may make us wait between two questions. */
const MOST_PAUSE_MS = 5_000;
/** A connection that was cut, say by a server that is starting anew, is tried again so often. */
const CUT_TRIES = 4;

class Attempts {
  readonly #world: SessionWorld;
  readonly #asker: Asker;
  readonly #request: NegotiateRequest;
  readonly #wait: WaitOptions;
  readonly #began: number;
  readonly #limitMs: number;
  /** One for the whole intent: however often it is sent, one session comes of it. */
  readonly #key: string | undefined;
  readonly #backoff: Backoff;
  #cuts = 0;

  constructor(world: SessionWorld, asker: Asker, request: NegotiateRequest, wait: WaitOptions) {
    this.#world = world;
    this.#asker = asker;
    this.#request = request;
    this.#wait = wait;
    this.#began = world.clock.monotonic();
    this.#limitMs = wait.startTimeoutMs ?? START_TIMEOUT_MS;
    const mayCreate = request.mode === 'ensure' || request.mode === 'create_only';
    this.#key = mayCreate ? globalThis.crypto.randomUUID() : undefined;
    this.#backoff = new Backoff({ random: world.random, baseMs: 250, capMs: 2_000 });
  }

  async run(): Promise<Negotiation> {
    for (;;) {
      try {
        const answer = await this.#send();
        const skewMs = clockSkewMs(answer.headers['date'], this.#world.clock.now());
        return { negotiated: parseNegotiated(answer.value), skewMs };
      } catch (error) {
        if (!(error instanceof AilsdError)) throw error;
        await this.#pauseAfter(error);
      }
    }
  }

  #send(): Promise<JsonAnswer> {
    const { signal } = this.#wait;
    const waitSeconds = Math.floor(Math.min(PREFER_WAIT_SECONDS, this.#leftMs() / 1000));
    return this.#asker.json({
      method: 'POST',
      url: NEGOTIATE_PATH,
      headers: {
        ...(waitSeconds > 0 && { prefer: `wait=${waitSeconds}` }),
        ...(this.#key !== undefined && { 'idempotency-key': this.#key }),
      },
      json: toBody(this.#request),
      timeoutMs: waitSeconds * 1000 + ANSWER_MS,
      signal,
    });
  }

  /** Throws what waiting does not help against. */
  async #pauseAfter(error: AilsdError): Promise<void> {
    const { clock, trace } = this.#world;
    if (error.code === 'SANDBOX_STARTING') {
      if (this.#limitMs <= 0) throw error;
      if (this.#leftMs() <= 0) throw this.#tooLate(error);
      this.#wait.starting?.(clock.monotonic() - this.#began);
    } else if (isCut(error) && this.#cuts < CUT_TRIES) {
      this.#cuts += 1;
    } else {
      throw error;
    }
    const pauseMs = Math.min(this.#pauseMs(error), Math.max(this.#leftMs(), 0));
    trace(`${error.code}: asking again in ${Math.round(pauseMs)} ms`);
    await clock.sleep(pauseMs, this.#wait.signal);
  }

  #pauseMs({ details }: AilsdError): number {
    const said = details['retry_after_ms'];
    if (typeof said === 'number') return Math.min(Math.max(said, 0), MOST_PAUSE_MS);
    const retry = this.#backoff.next(this.#world.clock.monotonic());
    return retry.kind === 'wait' ? retry.delayMs : MOST_PAUSE_MS;
  }

  #leftMs(): number {
    return this.#began + this.#limitMs - this.#world.clock.monotonic();
  }

  #tooLate(cause: AilsdError): AilsdError {
    const { thread } = this.#request;
    const seconds = Math.round(this.#limitMs / 1000);
    const message = `the sandbox of ${thread} is still starting after ${seconds} s`;
    return new AilsdError('TIMEOUT', message, {
      cause,
      details: { thread_id: thread },
      hint: 'give it longer with --timeout, or look at it with `ailsd sandbox why`',
    });
  }
}

/** It was sent, and nobody said what became of it: sending it again is safe, by its key or by its mode. */
function isCut({ code, details }: AilsdError): boolean {
  return code === 'UNREACHABLE' && (details['reason'] === 'cut' || details['reason'] === 'gateway');
}

/** Both shapes at once: a server that knows only the MVP reads `thread_id`, one that knows only the full one `scope`. */
function toBody(request: NegotiateRequest): object {
  const { thread, mode, capabilities, actor, ttlSeconds, template, provider, sandboxHint } =
    request;
  return {
    thread_id: thread,
    scope: { type: 'thread', id: thread },
    mode,
    actor: actor && { type: actor },
    requested_capabilities: capabilities,
    sandbox_hint: sandboxHint,
    provider_preference: provider,
    template,
    ttl: ttlSeconds,
  };
}
