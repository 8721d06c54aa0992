/** Attached to a shell for as long as it runs and the user stays: connects, resumes after every cut, keeps the token fresh. */
import type { Agent } from 'node:http';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { createDeferred } from '../../base/deferred.js';
import { Scope } from '../../base/scope.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { ROUTES, underBaseUrl } from '../../protocol/routes.js';
import { Backoff } from '../../stream/backoff.js';
import { judgeEnd, judgeTold, type SocketEnd, type Verdict } from '../socket/socket-end.js';
import { Surroundings } from '../socket/surroundings.js';
import { ShellConnection } from './shell-connection.js';
import { type ShellEvent, ShellStream } from './shell-stream.js';
import type { Outcome, Size, StartOptions } from './shell-words.js';

/** What attaching needs of a session. */
export interface ShellSession {
  readonly wsUrl: string;
  readonly canRefresh: boolean;
  readonly signal: AbortSignal;
  token(signal?: AbortSignal): Promise<Secret>;
  refresh(signal?: AbortSignal): Promise<Secret>;
  tokens(signal?: AbortSignal): AsyncGenerator<Secret, void, undefined>;
  reopen(signal?: AbortSignal): Promise<void>;
}

export interface ShellWorld {
  readonly clock: Clock;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  readonly userAgent: string;
  readonly agentFor: (url: string) => Promise<Agent | undefined>;
  /** What happens, for whoever debugs. Never told a token. */
  readonly trace: (text: string) => void;
  readonly surroundings?: Surroundings | undefined;
}

export interface ShellOptions extends StartOptions {
  /** Whether a cut is mended; yes by default. */
  readonly reconnect?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type LinkState =
  | { readonly kind: 'up' }
  | { readonly kind: 'down'; readonly error: AilsdError; readonly tries: number };

export interface ShellListener {
  event(event: Exclude<ShellEvent, { kind: 'broken' | 'exit' }>): void;
  link(state: LinkState): void;
  /** The server refused something and goes on: input without the keyboard, a size nobody can have. */
  problem(error: AilsdError): void;
  /** Input that could not be kept can be given again. */
  room(): void;
}

export type ShellEnd =
  | { readonly kind: 'exit'; readonly outcome: Outcome }
  | { readonly kind: 'detached' };

/** Before anything was seen, a server that cannot be reached is soon called that. */
const FIRST_TRIES = { maxTries: 6, maxElapsedMs: 5_000 } as const;
/** Somebody sits there and waits: a server that is back is found within seconds. */
const RETRY_CAP_MS = 3_000;
/** How often the machine's own surroundings are looked at. */
const LOOK_MS = 500;
const MISMATCHES_MAX = 5;
/** After so many tries in vain the server is asked where the sandbox is now. */
const TRIES_TO_REOPEN = 6;

export class Shell implements AsyncDisposable {
  readonly #session: ShellSession;
  readonly #world: ShellWorld;
  readonly #listener: ShellListener;
  readonly #options: ShellOptions;
  readonly #stream: ShellStream;
  readonly #scope: Scope;
  readonly #ended = createDeferred<ShellEnd>();
  readonly #surroundings: Surroundings;
  #backoff: Backoff;
  #connection: ShellConnection | undefined;
  /** Cuts the wait before the next try short. */
  #hurry: AbortController | undefined;
  /** Ever. */
  #wasReady = false;
  /** Since the last connection ended. */
  #isFreshlyReady = false;
  #isRedrawing = false;
  /** Connections in a row that made no sense. */
  #mismatches = 0;
  #consumed = 0;

  constructor(
    session: ShellSession,
    world: ShellWorld,
    options: ShellOptions,
    listener: ShellListener,
  ) {
    this.#session = session;
    this.#world = world;
    this.#options = options;
    this.#listener = listener;
    this.#stream = new ShellStream(options);
    this.#surroundings = world.surroundings ?? new Surroundings(world.clock);
    this.#backoff = new Backoff({ random: world.random, ...FIRST_TRIES });
    this.#scope = new Scope({
      clock: world.clock,
      parent: options.signal,
      report: (_, error) => this.#ended.reject(error),
    });
    // Whoever waits for the end is told; nobody else needs to be.
    this.#ended.promise.catch(() => undefined);
    for (const signal of [session.signal, options.signal]) {
      if (signal === undefined) continue;
      this.#scope.defer(onAbort(signal, () => this.#ended.reject(signal.reason)));
    }
    this.#scope.run('connections', (signal) => this.#run(signal));
    this.#scope.run('surroundings', (signal) => this.#watch(signal));
    this.#scope.run('tokens', (signal) => this.#sendTokens(signal));
  }

  /** Settles when the program has ended and all its output was consumed, when we left, or when there is no way to go on. */
  get ended(): Promise<ShellEnd> {
    return this.#ended.promise;
  }

  get shellId(): string | undefined {
    return this.#stream.shellId;
  }

  get isUp(): boolean {
    return this.#stream.isReady;
  }

  /** `full`: nothing was taken; `room` tells when to come again. */
  write(bytes: Uint8Array): 'taken' | 'full' {
    const taken = this.#stream.write(bytes);
    if (taken === 'taken') this.#connection?.flush();
    return taken;
  }

  resize(size: Size): void {
    const frame = this.#stream.resize(size);
    if (frame !== undefined) this.#connection?.send(frame);
  }

  control(action: 'take' | 'request' | 'release'): void {
    this.#connection?.send({ type: 'control', action });
  }

  /** Output before this offset was shown: it is what lets more come. */
  consumed(offset: number): void {
    this.#consumed = offset;
    this.#connection?.consumed(offset);
  }

  /** Draws the whole screen again: by a connection that has seen nothing. */
  redraw(): void {
    this.#stream.forgetOutput();
    this.#hurry?.abort();
    // One that is only being made has already asked for something else.
    if (this.#connection === undefined) return;
    this.#isRedrawing = true;
    this.#connection.drop();
  }

  /** Leaves; the shell goes on without us. */
  detach(): void {
    this.#connection?.leave();
    this.#ended.resolve({ kind: 'detached' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection?.leave();
    await this.#scope[Symbol.asyncDispose]();
  }

  async #run(signal: AbortSignal): Promise<void> {
    let isRefreshed = false;
    let token: Secret | undefined;
    for (;;) {
      const verdict = await this.#connectOnce(token, signal);
      if (verdict === 'ended') return;
      if (this.#isFreshlyReady) isRefreshed = false;
      this.#isFreshlyReady = false;
      token = undefined;
      this.#world.trace(`the connection ended: ${verdict.kind}, ${verdict.error.message}`);
      if (verdict.kind === 'never') throw verdict.error;
      if (verdict.kind === 'refresh') {
        if (isRefreshed || !this.#session.canRefresh) throw verdict.error;
        isRefreshed = true;
        token = await this.#freshToken(verdict.error, signal);
      } else if (this.#isRedrawing) {
        this.#isRedrawing = false;
      } else {
        this.#mayRetry(verdict.error);
        await this.#pause(verdict, signal);
      }
    }
  }

  #mayRetry(error: AilsdError): void {
    if (this.#options.reconnect !== false) return;
    if (!this.#wasReady) throw error;
    throw new AilsdError('TRANSPORT_LOST', 'the connection was lost', {
      cause: error,
      hint: 'the shell goes on in the sandbox: attach again',
    });
  }

  /** One connection from its beginning to its end. */
  async #connectOnce(fresh: Secret | undefined, signal: AbortSignal): Promise<Verdict | 'ended'> {
    const url = underBaseUrl(this.#session.wsUrl, ROUTES.shellSocket.path);
    const host = new URL(url).host;
    let token = fresh;
    try {
      token ??= await this.#session.token(signal);
    } catch (error) {
      return verdictOfToken(error, signal);
    }
    const agent = await this.#world.agentFor(url);
    signal.throwIfAborted();
    const ended = createDeferred<SocketEnd | 'exit'>();
    const connection = new ShellConnection({
      stream: this.#stream,
      socket: { url, token, agent, userAgent: this.#world.userAgent },
      clock: this.#world.clock,
      consumed: this.#consumed,
      ready: () => this.#ready(),
      event: (event) => {
        if (event.kind === 'output') this.#mismatches = 0;
        this.#listener.event(event);
      },
      exit: (outcome) => {
        this.#ended.resolve({ kind: 'exit', outcome });
        ended.resolve('exit');
      },
      problem: (error) => this.#listener.problem(error),
      room: () => this.#listener.room(),
      ended: (end) => ended.resolve(end),
    });
    this.#connection = connection;
    const drop = (): void => connection.leave();
    signal.addEventListener('abort', drop, { once: true });
    try {
      const end = await ended.promise;
      if (end === 'exit') return 'ended';
      signal.throwIfAborted();
      if (connection.refusal !== undefined) return judgeTold(connection.refusal);
      if (connection.mismatch !== undefined) return this.#judgeMismatch(connection.mismatch);
      return judgeEnd(end, host, connection.told);
    } finally {
      signal.removeEventListener('abort', drop);
      this.#connection = undefined;
      this.#stream.cut();
    }
  }

  /** A gap that comes back is met with a fresh screen, and then with an end. */
  #judgeMismatch(error: AilsdError): Verdict {
    this.#mismatches += 1;
    if (this.#mismatches > 1) this.#stream.forgetOutput();
    if (this.#mismatches >= MISMATCHES_MAX) return { kind: 'never', error };
    return { kind: 'retry', afterMs: 0, error };
  }

  #ready(): void {
    this.#isFreshlyReady = true;
    if (!this.#wasReady) {
      this.#backoff = new Backoff({ random: this.#world.random, capMs: RETRY_CAP_MS });
    }
    this.#wasReady = true;
    this.#backoff.reset();
    this.#listener.link({ kind: 'up' });
  }

  /** Waits until the next try, or until there is a reason to hope. */
  async #pause(
    { error, afterMs }: { readonly error: AilsdError; readonly afterMs: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#world;
    const retry = this.#backoff.next(clock.monotonic());
    if (retry.kind === 'give-up') throw error;
    this.#listener.link({ kind: 'down', error, tries: retry.tries });
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
