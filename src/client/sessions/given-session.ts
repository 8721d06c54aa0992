/** Access that was negotiated elsewhere (S2 phase 0): no server is asked, and when its token ends so does it. */
import type { Clock } from '../../base/clock.js';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { ThreadId } from '../../protocol/ids.js';
import { LEEWAY_SECONDS } from '../../protocol/lifetimes.js';
import { type Bootstrap, parseBootstrap } from '../../protocol/shapes/bootstrap.js';
import type { Lease, Session } from './session.js';
import type { GivenAccess, SessionWorld } from './world.js';

export const GIVEN_ACCESS_MAX_CHARS = 64 * 1024;

/** CONFIG_INVALID where it is not what it should be, or is for another thread than the one that was named. */
export function openGivenSession(
  { clock }: Pick<SessionWorld, 'clock'>,
  given: GivenAccess,
  thread: ThreadId | undefined,
): Session {
  const access = parseGivenAccess(given);
  if (thread !== undefined && thread !== access.thread_id) {
    throw new AilsdError('CONFIG_INVALID', `${given.from} gives access to another thread`, {
      details: { thread_id: access.thread_id },
      hint: `leave the thread out, or unset ${given.from} to ask the server for it`,
    });
  }
  return new GivenSession(clock, access, given.from);
}

export function parseGivenAccess({ text, from }: GivenAccess): Bootstrap {
  const parsed = parseBootstrap(jsonOf(text, from));
  if (parsed.ok) return parsed.value;
  const { code, message, details } = parsed.error;
  throw new AilsdError(code, `${from}: ${message}`, { details, hint: HINT });
}

const HINT =
  'give what `ailsd session get --json` prints, or a run’s configuration that holds it under config.configurable.sandbox';

function jsonOf(text: string, from: string): unknown {
  if (text.length > GIVEN_ACCESS_MAX_CHARS) {
    throw new AilsdError('CONFIG_INVALID', `${from} is too long for the access to a sandbox`, {
      hint: HINT,
    });
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's words repeat the text, which holds a token.
    throw new AilsdError('CONFIG_INVALID', `${from} does not hold JSON`, { hint: HINT });
  }
}

class GivenSession implements Session {
  readonly #clock: Clock;
  readonly #access: Bootstrap;
  readonly #from: string;
  readonly #token: Secret;
  readonly #closed = new AbortController();

  constructor(clock: Clock, access: Bootstrap, from: string) {
    this.#clock = clock;
    this.#access = access;
    this.#from = from;
    this.#token = new Secret(access.token);
    this.expiresAtMs = Date.parse(access.expires_at);
  }

  readonly expiresAtMs: number;
  readonly canRefresh = false;
  readonly capabilities = undefined;

  get signal() {
    return this.#closed.signal;
  }

  get sessionId() {
    return this.#access.session_id;
  }

  get threadId() {
    return this.#access.thread_id;
  }

  get sandboxId() {
    return this.#access.sandbox.id;
  }

  get provider() {
    return this.#access.sandbox.provider;
  }

  get httpUrl() {
    return this.#access.sandbox.http_base_url;
  }

  get wsUrl() {
    return this.#access.sandbox.ws_base_url;
  }

  async token(): Promise<Secret> {
    if (this.#clock.now() < this.expiresAtMs + LEEWAY_SECONDS.sandbox * 1000) return this.#token;
    throw this.#cannotRenew('has expired');
  }

  async refresh(): Promise<Secret> {
    throw this.#cannotRenew('is not accepted any more');
  }

  /** There is never another one. */
  async *tokens(signal?: AbortSignal): AsyncGenerator<Secret, void, undefined> {
    const either = signal === undefined ? this.signal : AbortSignal.any([this.signal, signal]);
    if (either.aborted) return;
    await new Promise((resolve) => either.addEventListener('abort', resolve, { once: true }));
  }

  async reopen(): Promise<void> {
    await this.token();
  }

  async heartbeat(): Promise<Lease> {
    throw new AilsdError('CONFIG_INVALID', `${this.#from} names no server to send heartbeats to`, {
      hint: `unset ${this.#from} to go by the server`,
    });
  }

  async release(): Promise<void> {
    // It was not ours to hold.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new Error('the session is closed'));
  }

  #cannotRenew(what: string): AilsdError {
    const message = `the token of ${this.#from} ${what}, and without a server it cannot be renewed`;
    return new AilsdError('TOKEN_EXPIRED', message, {
      details: { expires_at: this.#access.expires_at },
      hint: `get fresh access where it was negotiated and set ${this.#from} again, or unset it to go by the server`,
    });
  }
}
