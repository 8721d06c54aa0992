/** The commands of a sandbox by their ids, from whatever machine: starting one that is left alone, listing, looking, reading, ending. */
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import {
  buildPath,
  type ParametersOf,
  ROUTES,
  type RouteName,
  underBaseUrl,
} from '../../protocol/routes.js';
import { Backoff } from '../../stream/backoff.js';
import { errorFromAnswer, parseJsonAnswer } from '../http/answer.js';
import type { HttpResponse } from '../http/exchange.js';
import type { Http, HttpRequest } from '../http/http.js';
import { streamAnswer } from '../http/stream-answer.js';
import { type Document, isDocument, type Page } from '../sessions/call.js';
import type { Session } from '../sessions/session.js';
import type { CommandRequest } from './exec-words.js';
import { type LogPiece, parseLogPiece } from './log-piece.js';

export interface CommandsWorld {
  readonly http: Http;
  readonly clock: Clock;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
}

export interface LogOptions {
  readonly follow: boolean;
  /** Only the last so many lines of what is there already. */
  readonly tail?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

type CommandsSession = Pick<Session, 'httpUrl' | 'token' | 'refresh' | 'canRefresh'>;
type Query = Readonly<Record<string, string | number | undefined>>;

/** A line that is cut is tried again so often, and for so long. */
const TRIES = { maxTries: 8, maxElapsedMs: 30_000 } as const;
/** Between two looks at a command that runs: soon at first, for most end soon. */
const LOOK_MS = { first: 50, most: 1_000 } as const;

export class Commands {
  readonly #session: CommandsSession;
  readonly #world: CommandsWorld;

  constructor(session: CommandsSession, world: CommandsWorld) {
    this.#session = session;
    this.#world = world;
  }

  /** Starts one that nobody follows, once however often it has to be asked for. TRANSPORT_LOST where nobody knows whether it runs. */
  async start(request: CommandRequest, signal?: AbortSignal): Promise<Document> {
    const { argv, commandId, cwd, env, timeoutMs } = request;
    const wanted = { argv, command_id: commandId, cwd, env, timeout_ms: timeoutMs };
    const json = { ...wanted, background: true };
    try {
      return await this.#patiently(() => this.#json('exec', {}, { json, signal }), signal);
    } catch (error) {
      if (!isCut(error)) throw error;
      throw new AilsdError('TRANSPORT_LOST', 'the line was cut before the command was confirmed', {
        cause: error,
        details: { command_id: commandId },
        hint: `look whether it runs: \`ailsd job wait ${commandId}\``,
      });
    }
  }

  async list(
    query: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
    signal?: AbortSignal,
  ): Promise<Page> {
    const { items, next_cursor: cursor } = await this.#json(
      'listSandboxCommands',
      {},
      { query: { ...query }, signal },
    );
    if (!Array.isArray(items) || !items.every(isDocument)) throw mismatch('items');
    return { items, nextCursor: typeof cursor === 'string' ? cursor : undefined };
  }

  get(commandId: string, signal?: AbortSignal): Promise<Document> {
    return this.#json('getSandboxCommand', { command_id: commandId }, { signal });
  }

  /** Its state once it has ended; a line that is cut meanwhile does not matter. */
  async wait(commandId: string, signal?: AbortSignal): Promise<Document> {
    const { clock } = this.#world;
    for (let pauseMs: number = LOOK_MS.first; ; pauseMs = Math.min(pauseMs * 1.5, LOOK_MS.most)) {
      const state = await this.#patiently(() => this.get(commandId, signal), signal);
      if (state['state'] !== 'running') return state;
      await clock.sleep(pauseMs, signal);
    }
  }

  /** Asks it and all it started to end, then makes them; resolves when they have. */
  async kill(commandId: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('endSandboxCommand', { command_id: commandId }, { signal });
  }

  /** What it wrote, each byte once: a line that is cut is mended from where it was. */
  async *logs(
    commandId: string,
    { follow, tail, signal }: LogOptions,
  ): AsyncGenerator<LogPiece, void, undefined> {
    const backoff = new Backoff({ random: this.#world.random, ...TRIES });
    const from: { stdout?: number; stderr?: number } = {};
    const isResuming = (): boolean => from.stdout !== undefined || from.stderr !== undefined;
    for (;;) {
      try {
        const query = {
          follow: follow ? 1 : undefined,
          // Lines were counted once; afterwards offsets say where to go on.
          tail: isResuming() ? undefined : tail,
          stdout_offset: isResuming() ? (from.stdout ?? 0) : undefined,
          stderr_offset: isResuming() ? (from.stderr ?? 0) : undefined,
        };
        for await (const piece of this.#lines(commandId, query, signal)) {
          if (piece.stream !== 'system') from[piece.stream] = piece.end;
          backoff.reset();
          yield piece;
        }
        // A server that is being replaced ends its answers early, and well.
        if (!follow || (await this.get(commandId, signal))['state'] !== 'running') return;
      } catch (error) {
        await this.#pause(backoff, error, signal);
      }
    }
  }

  async *#lines(
    commandId: string,
    query: Query,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LogPiece, void, undefined> {
    const parameters = { command_id: commandId };
    const request = { ...this.#request('getSandboxCommandLogs', parameters, { query, signal }) };
    const headers = { accept: 'application/jsonl' };
    const answer = await this.#authorized((authorization) =>
      streamAnswer(this.#world.http, { ...request, headers: { ...headers, authorization } }),
    );
    if (answer.status !== 200) throw errorFromAnswer(await answer.whole());
    for await (const line of answer.lines()) {
      if (line !== '') yield parseLogPiece(line);
    }
  }

  async #json<N extends RouteName>(
    route: N,
    parameters: ParametersOf<N>,
    options: AskOptions,
  ): Promise<Document> {
    const value = parseJsonAnswer(await this.#ask(route, parameters, options));
    if (isDocument(value)) return value;
    throw mismatch('body');
  }

  async #ask<N extends RouteName>(
    route: N,
    parameters: ParametersOf<N>,
    options: AskOptions,
  ): Promise<HttpResponse> {
    const { headers, ...request } = this.#request(route, parameters, options);
    const answer = await this.#authorized((authorization) =>
      this.#world.http.request({ ...request, headers: { ...headers, authorization } }),
    );
    if (answer.status < 200 || answer.status > 299) throw errorFromAnswer(answer);
    return answer;
  }

  /** A token that expired on the way is refreshed once. */
  async #authorized<T extends { readonly status: number }>(
    send: (authorization: string) => Promise<T>,
  ): Promise<T> {
    const bearer = (token: Secret): string => `Bearer ${token.reveal()}`;
    const answer = await send(bearer(await this.#session.token()));
    if (answer.status !== 401 || !this.#session.canRefresh) return answer;
    return send(bearer(await this.#session.refresh()));
  }

  #request<N extends RouteName>(
    route: N,
    parameters: ParametersOf<N>,
    { query = {}, json, signal }: AskOptions,
  ): HttpRequest {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) search.set(key, String(value));
    }
    const path = buildPath(route, parameters);
    const url = underBaseUrl(this.#session.httpUrl, search.size === 0 ? path : `${path}?${search}`);
    const { method } = ROUTES[route];
    if (json === undefined) return { method, url, signal };
    const headers = { 'content-type': 'application/json' };
    return { method, url, signal, headers, body: JSON.stringify(json) };
  }

  async #patiently<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const backoff = new Backoff({ random: this.#world.random, ...TRIES });
    for (;;) {
      try {
        return await work();
      } catch (error) {
        await this.#pause(backoff, error, signal);
      }
    }
  }

  /** Throws what waiting does not help against. */
  async #pause(backoff: Backoff, error: unknown, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (!(error instanceof AilsdError) || !error.row.retryable) throw error;
    const { clock } = this.#world;
    const retry = backoff.next(clock.monotonic());
    if (retry.kind === 'give-up') throw error;
    const said = error.details['retry_after_ms'];
    await clock.sleep(Math.max(retry.delayMs, typeof said === 'number' ? said : 0), signal);
  }
}

interface AskOptions {
  readonly query?: Query | undefined;
  readonly json?: object | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** It was sent, and nobody said what became of it. */
function isCut(error: unknown): boolean {
  if (!(error instanceof AilsdError) || error.code !== 'UNREACHABLE') return false;
  return error.details['reason'] === 'cut' || error.details['reason'] === 'gateway';
}

function mismatch(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the sandbox's answer: ${field} is of another form`, {
    details: { field },
  });
}
