/** A session that a server gave: its token is kept fresh, its lease lengthened while it is open. */
import { Scope } from '../../base/scope.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { IDLE_TIMEOUT_SECONDS } from '../../protocol/lifetimes.js';
import { parseFreshToken, parseLease } from './answer.js';
import { Asker } from './asker.js';
import { clockSkewMs } from './clock-skew.js';
import { NEGOTIATE_PATH, type NegotiateRequest, type Negotiation } from './negotiate.js';
import type { OpenOptions } from './open-session.js';
import { forgetSession, isGone, negotiateRemembered } from './remembered.js';
import type { Lease, Session } from './session.js';
import { sleepUntil } from './sleep-until.js';
import { type DatedToken, isPassing, TokenKeeper } from './token-keeper.js';
import { unlessAborted } from './unless-aborted.js';
import type { SessionWorld } from './world.js';

export async function openBrokerSession(
  world: SessionWorld,
  options: OpenOptions,
): Promise<Session> {
  const { thread, mode = 'ensure', keepAlive = true } = options;
  if (thread === undefined) {
    throw new AilsdError('USAGE', 'no thread is named', {
      hint: 'name one, set AILSD_THREAD, or run `ailsd config set thread THREAD`',
    });
  }
  const asker = new Asker(world);
  const request = { ...options, thread, mode };
  const negotiation = await negotiateRemembered(world, asker, request, options);
  return new BrokerSession(world, asker, { request, negotiation, wait: options, keepAlive });
}

interface Opening {
  readonly request: NegotiateRequest;
  readonly negotiation: Negotiation;
  readonly wait: OpenOptions;
  readonly keepAlive: boolean;
}

const RELEASE_MS = 5_000;
const HEARTBEAT_MS = { least: 1_000, most: 300_000 } as const;

class BrokerSession implements Session {
  readonly #world: SessionWorld;
  readonly #asker: Asker;
  readonly #opening: Opening;
  readonly #scope: Scope;
  readonly #keeper: TokenKeeper;
  readonly #over = new AbortController();
  #at: Negotiation['negotiated'];
  #reopening: Promise<void> | undefined;

  constructor(world: SessionWorld, asker: Asker, opening: Opening) {
    const { clock, random, trace } = world;
    this.#world = world;
    this.#asker = asker;
    this.#opening = opening;
    this.#at = opening.negotiation.negotiated;
    const renew = (current: Secret): Promise<DatedToken> => this.#renew(current);
    this.#keeper = new TokenKeeper(toDated(opening.negotiation), { clock, random, trace, renew });
    this.#scope = new Scope({
      clock,
      parent: opening.wait.signal,
      report: (name, error) => trace(`${name}: ${String(error)}`),
    });
    this.signal = AbortSignal.any([this.#scope.signal, this.#over.signal]);
    this.#scope.run('keep the token fresh', (signal) => this.#keeper.keepFresh(signal));
    if (opening.keepAlive) {
      this.#scope.run('keep the sandbox', (signal) => this.#keepAlive(signal));
    }
  }

  readonly signal: AbortSignal;
  readonly canRefresh = true;

  get sessionId() {
    return this.#at.sessionId;
  }

  get threadId() {
    return this.#at.threadId;
  }

  get sandboxId() {
    return this.#at.sandboxId;
  }

  get provider() {
    return this.#at.provider;
  }

  get httpUrl() {
    return this.#at.httpUrl;
  }

  get wsUrl() {
    return this.#at.wsUrl;
  }

  get capabilities() {
    return this.#at.capabilities;
  }

  get expiresAtMs() {
    return this.#keeper.expiresAtMs;
  }

  token(signal?: AbortSignal): Promise<Secret> {
    return this.#keeper.token(signal);
  }

  refresh(signal?: AbortSignal): Promise<Secret> {
    return this.#keeper.refresh(signal);
  }

  tokens(signal?: AbortSignal): AsyncGenerator<Secret, void, undefined> {
    const either = signal === undefined ? this.signal : AbortSignal.any([this.signal, signal]);
    return this.#keeper.tokens(either);
  }

  reopen(signal?: AbortSignal): Promise<void> {
    // What has ended is not made anew under the same name: whoever wants another opens one.
    if (this.#over.signal.aborted) return Promise.reject(this.#over.signal.reason);
    this.#reopening ??= this.#negotiateAgain(this.#opening.request)
      .then((dated) => void this.#keeper.hold(dated))
      .finally(() => {
        this.#reopening = undefined;
      });
    return unlessAborted(this.#reopening, signal);
  }

  async heartbeat(signal?: AbortSignal): Promise<Lease> {
    const { value, headers } = await this.#ask('heartbeat', {}, signal);
    const { state, endsAtMs } = parseLease(value);
    const skewMs = clockSkewMs(headers['date'], this.#world.clock.now());
    return { state, expiresAtMs: endsAtMs - skewMs };
  }

  async release(): Promise<void> {
    const url = `${NEGOTIATE_PATH}/${this.sessionId}`;
    const signal = AbortSignal.timeout(RELEASE_MS);
    try {
      await this.#asker.json({ method: 'DELETE', url, signal });
      await forgetSession(this.#world, this.#asker, this.threadId, signal);
    } catch (error) {
      this.#world.trace(`not released: ${String(error)}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }

  async #renew(current: Secret): Promise<DatedToken> {
    const { request } = this.#opening;
    const body = { current_token: current.reveal(), ttl: request.ttlSeconds };
    try {
      const { value, headers } = await this.#ask('refresh-token', body, this.#scope.signal);
      const skewMs = clockSkewMs(headers['date'], this.#world.clock.now());
      return { fresh: parseFreshToken(value), skewMs };
    } catch (error) {
      // The one in hand proves nothing any more, as after a long sleep or a new key: the login still does.
      if (!isRefusal(error)) throw error;
      return this.#negotiateAgain({ ...request, mode: 'attach_only' });
    }
  }

  async #negotiateAgain(request: NegotiateRequest): Promise<DatedToken> {
    const wait = { ...this.#opening.wait, signal: this.#scope.signal };
    const negotiation = await negotiateRemembered(this.#world, this.#asker, request, wait);
    this.#at = negotiation.negotiated;
    return toDated(negotiation);
  }

  async #ask(what: string, json: object, signal: AbortSignal | undefined) {
    const url = `${NEGOTIATE_PATH}/${this.sessionId}/${what}`;
    try {
      return await this.#asker.json({ method: 'POST', url, json, signal });
    } catch (error) {
      if (isGone(error)) this.#over.abort(error);
      throw error;
    }
  }

  /** Three times in each idle timeout: two may be lost on the way. */
  async #keepAlive(signal: AbortSignal): Promise<void> {
    const { clock, trace } = this.#world;
    const { idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS } = this.#at.policy ?? {};
    const wishedMs = (idleTimeoutSeconds * 1000) / 3;
    const everyMs = Math.min(Math.max(wishedMs, HEARTBEAT_MS.least), HEARTBEAT_MS.most);
    for (;;) {
      await sleepUntil(clock, clock.now() + everyMs, signal);
      try {
        await this.heartbeat(signal);
      } catch (error) {
        signal.throwIfAborted();
        trace(`no heartbeat: ${String(error)}`);
        if (!isPassing(error)) return;
      }
    }
  }
}

function toDated({ negotiated, skewMs }: Negotiation): DatedToken {
  return { fresh: negotiated.fresh, skewMs };
}

function isRefusal(error: unknown): boolean {
  return error instanceof AilsdError && error.details['status'] === 403;
}
