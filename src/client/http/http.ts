/** HTTP as the client speaks it: node's own modules, bounded in bytes and time, through proxies, never redirected. */
import type { Agent } from 'node:http';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { Agents } from './agents.js';
import { errorFromAnswer, parseJsonAnswer } from './answer.js';
import { type ExchangeLimits, exchange, type HttpResponse } from './exchange.js';
import { toFailure } from './failures.js';
import type { ProxySettings } from './proxy.js';

export interface HttpOptions {
  /** What a request's path is relative to; it may have a path of its own. */
  readonly baseUrl?: string | undefined;
  readonly proxy?: ProxySettings | undefined;
  /** PEM certificates that are trusted besides the usual ones: AILSD_CA_FILE. */
  readonly caFile?: string | undefined;
  readonly userAgent: string;
  readonly clock: Clock;
  /** Told of each request; nobody by default. */
  readonly logger?: Logger | undefined;
}

export interface HttpRequest {
  readonly method?: string | undefined;
  /** Absolute, or a path that begins with `/` and continues the base URL. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long the server may take to begin its answer. */
  readonly timeoutMs?: number | undefined;
  /** How long an answer may be. */
  readonly maxBytes?: number | undefined;
}

export interface JsonRequest extends Omit<HttpRequest, 'body'> {
  /** Sent as JSON; nothing is sent where it is absent. */
  readonly json?: unknown;
}

export interface JsonAnswer {
  readonly status: number;
  readonly headers: HttpResponse['headers'];
  /** Still unknown: the caller's schema says what it is. `undefined` where the answer is empty. */
  readonly value: unknown;
}

export interface Http extends Disposable {
  /** Any answer, whatever its status, redirects included. Throws `AilsdError` where there is none, or the signal's reason. */
  request(request: HttpRequest): Promise<HttpResponse>;
  /** JSON both ways; an answer that is not 2xx is thrown as the error it names. */
  json(request: JsonRequest): Promise<JsonAnswer>;
  /** For a WebSocket to the same world: the agent that knows proxy and certificates. `ws:` and `wss:` are fine. */
  agentFor(url: string): Promise<Agent>;
}

export const HTTP_LIMITS = {
  /** Name lookup, TCP, proxy and TLS. */
  connectMs: 10_000,
  headersMs: 30_000,
  bodyMs: 30_000,
  bodyBytes: 4 * 1024 * 1024,
} as const;

export function createHttp(options: HttpOptions): Http {
  return new HttpClient(options);
}

class HttpClient implements Http {
  readonly #options: HttpOptions;
  readonly #agents: Agents;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#agents = new Agents({ proxy: options.proxy ?? {}, caFile: options.caFile });
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    const { signal, method = 'GET' } = request;
    const url = this.#urlOf(request.url);
    const told = this.#tell(method, url);
    let status: number | undefined;
    try {
      signal?.throwIfAborted();
      const response = await this.#send(url, method, request);
      status = response.status;
      return response;
    } catch (error) {
      throw toFailure(error, { host: url.host, signal });
    } finally {
      told?.(status);
    }
  }

  /** A query may hold what is nobody's business; the path does not. */
  #tell(method: string, { host, pathname: path }: URL) {
    const { clock, logger } = this.#options;
    if (logger === undefined) return undefined;
    const begin = clock.monotonic();
    return (status: number | undefined): void => {
      const durationMs = Math.round(clock.monotonic() - begin);
      logger.debug('request', { method, host, path, status, durationMs });
    };
  }

  async json({ json, ...request }: JsonRequest): Promise<JsonAnswer> {
    const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
    if (json !== undefined) headers['content-type'] = 'application/json';
    const body = json === undefined ? undefined : JSON.stringify(json);
    const response = await this.request({ ...request, headers, body });
    if (response.status < 200 || response.status > 299) throw errorFromAnswer(response);
    return {
      status: response.status,
      headers: response.headers,
      value: parseJsonAnswer(response),
    };
  }

  agentFor(url: string): Promise<Agent> {
    return this.#agents.of(new URL(url.replace(/^ws(?=s?:)/, 'http')));
  }

  [Symbol.dispose](): void {
    this.#agents.close();
  }

  async #send(url: URL, method: string, request: HttpRequest): Promise<HttpResponse> {
    const { clock, userAgent } = this.#options;
    const agent = await this.#agents.of(url);
    const limits: ExchangeLimits = {
      connectMs: HTTP_LIMITS.connectMs,
      headersMs: request.timeoutMs ?? HTTP_LIMITS.headersMs,
      bodyMs: HTTP_LIMITS.bodyMs,
      bodyBytes: request.maxBytes ?? HTTP_LIMITS.bodyBytes,
    };
    const headers = {
      'user-agent': userAgent,
      // Bounds are in bytes as they arrive: nothing is unpacked here.
      'accept-encoding': 'identity',
      ...request.headers,
    };
    const { body, signal } = request;
    return exchange({ url, method, headers, body, agent, limits, clock, signal });
  }

  #urlOf(text: string): URL {
    const base = this.#options.baseUrl;
    const url = text.startsWith('/') && base !== undefined ? joined(base, text) : text;
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (parsed?.protocol === 'https:' || parsed?.protocol === 'http:') return parsed;
    throw new AilsdError('CONFIG_INVALID', 'that is not an http or https address', {
      hint: 'check the server URL with `ailsd config get url`',
    });
  }
}

/** One slash between them, however many the base ends in. */
function joined(base: string, path: string): string {
  let end = base.length;
  while (base[end - 1] === '/') end -= 1;
  return base.slice(0, end) + path;
}
