/** Keeps a way to a sandbox open: connects, judges each end, waits, renews tokens, looks at the surroundings. What is said on it is its owner's. */
import type { Agent } from 'node:http';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { createDeferred } from '../../base/deferred.js';
import { Scope } from '../../base/scope.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { underBaseUrl } from '../../protocol/routes.js';
import { Backoff } from '../../stream/backoff.js';
import type { SocketOptions } from './socket.js';
import { judgeEnd, judgeTold, type SocketEnd, type Verdict } from './socket-end.js';
import { Surroundings } from './surroundings.js';

/** What is needed of a session. */
export interface LinkSession {
  readonly wsUrl: string;
  readonly canRefresh: boolean;
  readonly signal: AbortSignal;
  token(signal?: AbortSignal): Promise<Secret>;
  refresh(signal?: AbortSignal): Promise<Secret>;
  tokens(signal?: AbortSignal): AsyncGenerator<Secret, void, undefined>;
  reopen(signal?: AbortSignal): Promise<void>;
}

export interface LinkWorld {
  readonly clock: Clock;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  readonly userAgent: string;
  readonly agentFor: (url: string) => Promise<Agent | undefined>;
  /** What happens, for whoever debugs. Never told a token. */
  readonly trace: (text: string) => void;
  readonly surroundings?: Surroundings | undefined;
}

export interface LinkConnection {
  /** What the server said last, if that was an error: it says more than the close that follows. */
  readonly told: AilsdError | undefined;
  /** The answer to the first frame, when it was an error: the attempt is over. */
  readonly refusal: AilsdError | undefined;
  /** What makes no sense on this connection: another one may do better. */
  readonly mismatch: AilsdError | undefined;
  authenticate(token: Secret): void;
  /** The line may be dead without having said so: ask at once. */
  doubt(): void;
  leave(): void;
}

export interface LinkPlan {
  /** Behind the session's base URL. */
  readonly path: string;
  /** Whether a cut is mended; yes by default. */
  readonly reconnect?: boolean | undefined;
  /** How long a cut may last; for ever by default. */
  readonly cutMaxMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Before each connection; what it throws ends everything. */
  readonly check: () => void;
  readonly connect: (socket: SocketOptions, ended: (end: SocketEnd) => void) => LinkConnection;
  /** A connection is over. */
  readonly cut: () => void;
  readonly link: (state: LinkState) => void;
  /** There is no way to go on. Told once, unless it was closed before. */
  readonly failed: (error: unknown) => void;
}

export type LinkState =
  | { readonly kind: 'up' }
  | { readonly kind: 'down'; readonly error: AilsdError; readonly tries: number };

/** Before anything was seen, a server that cannot be reached is soon called that. */
const FIRST_TRIES = { maxTries: 3, maxElapsedMs: 5_000 } as const;
/** How often the machine's own surroundings are looked at. */
const LOOK_MS = 500;
const MISMATCHES_MAX = 5;
/** After so many tries in vain the server is asked where the sandbox is now. */
const TRIES_TO_REOPEN = 6;

export class Link implements AsyncDisposable {
  readonly #session: LinkSession;
  readonly #world: LinkWorld;
  readonly #plan: LinkPlan;
  readonly #scope: Scope;
  readonly #surroundings: Surroundings;
  #backoff: Backoff;
  #connection: LinkConnection | undefined;
  /** Cuts the wait before the next try short. */
  #hurry: AbortController | undefined;
  /** Ever. */
  #wasReady = false;
  /** Since the last connection ended. */
  #isFreshlyReady = false;
  /** Connections in a row that made no sense. */
  #mismatches = 0;
  #isClosed = false;

  constructor(session: LinkSession, world: LinkWorld, plan: LinkPlan) {
    this.#session = session;
    this.#world = world;
    this.#plan = plan;
    this.#surroundings = world.surroundings ?? new Surroundings(world.clock);
    this.#backoff = new Backoff({ random: world.random, ...FIRST_TRIES });
    this.#scope = new Scope({
      clock: world.clock,
      parent: plan.signal,
      report: (_, error) => this.#failed(error),
    });
    for (const signal of [session.signal, plan.signal]) {
      if (signal === undefined) continue;
      this.#scope.defer(onAbort(signal, () => this.#failed(signal.reason)));
    }
    this.#scope.run('connections', (signal) => this.#run(signal));
    this.#scope.run('surroundings', (signal) => this.#watch(signal));
    this.#scope.run('tokens', (signal) => this.#sendTokens(signal));
  }

  /** The connection is good: it has answered. */
  ready(): void {
    this.#isFreshlyReady = true;
    if (!this.#wasReady) {
      const { cutMaxMs = Number.POSITIVE_INFINITY } = this.#plan;
      this.#backoff = new Backoff({ random: this.#world.random, maxElapsedMs: cutMaxMs });
    }
    this.#wasReady = true;
    this.#backoff.reset();
    this.#plan.link({ kind: 'up' });
  }

  /** Something came over it that made sense. */
  moved(): void {
    this.#mismatches = 0;
  }

  /** Says goodbye, and does not come again. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#connection?.leave();
    await this.#scope[Symbol.asyncDispose]();
  }

  #failed(error: unknown): void {
    if (!this.#isClosed) this.#plan.failed(error);
  }

  async #run(signal: AbortSignal): Promise<void> {
    let isRefreshed = false;
    let token: Secret | undefined;
    for (;;) {
      this.#plan.check();
      const verdict = await this.#connectOnce(token, signal);
      if (this.#isFreshlyReady) isRefreshed = false;
      this.#isFreshlyReady = false;
      token = undefined;
      this.#world.trace(`the connection ended: ${verdict.kind}, ${verdict.error.message}`);
      if (verdict.kind === 'never') throw verdict.error;
      if (verdict.kind === 'refresh') {
        if (isRefreshed || !this.#session.canRefresh) throw verdict.error;
        isRefreshed = true;
        token = await this.#freshToken(verdict.error, signal);
      } else {
        this.#mayRetry(verdict.error);
        await this.#pause(verdict, signal);
      }
    }
  }

  #mayRetry(error: AilsdError): void {
    if (this.#plan.reconnect === false) throw error;
  }

  /** One connection from its beginning to its end. */
  async #connectOnce(fresh: Secret | undefined, signal: AbortSignal): Promise<Verdict> {
    const url = underBaseUrl(this.#session.wsUrl, this.#plan.path);
    const host = new URL(url).host;
    let token = fresh;
    try {
      token ??= await this.#session.token(signal);
    } catch (error) {
      return verdictOfToken(error, signal);
    }
    const agent = await this.#world.agentFor(url);
    signal.throwIfAborted();
    const ended = createDeferred<SocketEnd>();
    const socket = { url, token, agent, userAgent: this.#world.userAgent };
    const connection = this.#plan.connect(socket, (end) => ended.resolve(end));
    this.#connection = connection;
    const stopListening = onAbort(signal, () => connection.leave());
    try {
      const end = await ended.promise;
      signal.throwIfAborted();
      if (connection.refusal !== undefined) return judgeTold(connection.refusal);
      if (connection.mismatch !== undefined) return this.#judgeMismatch(connection.mismatch);
      return judgeEnd(end, host, connection.told);
    } finally {
      stopListening();
      this.#connection = undefined;
      this.#plan.cut();
    }
  }

  #judgeMismatch(error: AilsdError): Verdict {
    this.#mismatches += 1;
    if (this.#mismatches >= MISMATCHES_MAX) return { kind: 'never', error };
    return { kind: 'retry', afterMs: 0, error };
  }

  /** Waits until the next try, or until there is a reason to hope. */
  async #pause(
    { error, afterMs }: { readonly error: AilsdError; readonly afterMs: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#world;
    const retry = this.#backoff.next(clock.monotonic());
    if (retry.kind === 'give-up') throw error;
    this.#plan.link({ kind: 'down', error, tries: retry.tries });
    if (retry.tries % TRIES_TO_REOPEN === 0) await this.#reopen(signal);
    const hurry = new AbortController();
    this.#hurry = hurry;
    try {
      await clock.sleep(Math.max(retry.delayMs, afterMs), AbortSignal.any([signal, hurry.signal]));
    } catch (thrown) {
      if (!hurry.signal.aborted || signal.aborted) throw thrown;
    } finally {
      this.#hurry = undefined;
    }
  }

  /** Asks for another token until there is one or the server says no: a broker that is away is no refusal. */
  async #freshToken(expired: AilsdError, signal: AbortSignal): Promise<Secret> {
    for (;;) {
      try {
        return await this.#session.refresh(signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof AilsdError) || !error.row.retryable) throw error;
        this.#mayRetry(expired);
        await this.#pause({ error, afterMs: 0 }, signal);
      }
    }
  }

  /** The sandbox may have been suspended or moved. A server that is away too is no answer. */
  async #reopen(signal: AbortSignal): Promise<void> {
    if (!this.#session.canRefresh) return;
    try {
      await this.#session.reopen(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AilsdError) || !error.row.retryable) throw error;
    }
  }

  /** A token that follows the one the connection was opened with is sent on it, before that one expires. */
  async #sendTokens(signal: AbortSignal): Promise<void> {
    for await (const token of this.#session.tokens(signal)) this.#connection?.authenticate(token);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#world.clock.sleep(LOOK_MS, signal);
      const change = this.#surroundings.look();
      if (change === 'same') continue;
      this.#world.trace(change === 'slept' ? 'the machine slept' : 'the network changed');
      this.#backoff.freshNetwork();
      this.#hurry?.abort();
      this.#connection?.doubt();
    }
  }
}

/** A broker that is away while a token is due is a cut line; its no is a no. */
function verdictOfToken(error: unknown, signal: AbortSignal): Verdict {
  signal.throwIfAborted();
  if (error instanceof AilsdError) {
    return error.row.retryable ? { kind: 'retry', afterMs: 0, error } : { kind: 'never', error };
  }
  throw error;
}
