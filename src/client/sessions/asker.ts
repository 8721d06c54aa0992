/** Asks the server with the login in use: one token for as long as it is good, another once the server refuses it. */
import { AilsdError } from '../../protocol/errors.js';
import { type Access, currentAccess, refusedAccess } from '../auth/access.js';
import { claimsOf } from '../auth/claims.js';
import type { AuthWorld } from '../auth/world.js';
import type { HttpResponse } from '../http/exchange.js';
import type { HttpRequest, JsonAnswer, JsonRequest } from '../http/http.js';

export class Asker {
  readonly #world: AuthWorld;
  #access: Access | undefined;

  constructor(world: AuthWorld) {
    this.#world = world;
  }

  /** Whose things are asked for, as far as the login says: what tells the accounts of one machine apart. */
  async account(signal?: AbortSignal): Promise<string> {
    const { origin, token } = await this.access(signal);
    if (origin.kind === 'stored') return origin.account;
    return claimsOf(token.reveal())?.sub ?? origin.variable;
  }

  async access(signal?: AbortSignal, refused = false): Promise<Access> {
    const held = this.#access;
    // What can't be renewed by us may be replaced from outside: it is looked up each time, which costs nothing.
    const isGood = held?.renewAtMs !== undefined && this.#world.clock.now() < held.renewAtMs;
    if (held !== undefined && isGood && !refused) return held;
    this.#access = await currentAccess(this.#world, { signal, refused });
    return this.#access;
  }

  /** Any answer but a 401, whatever its status. The URL is a path on the server. */
  async request(request: HttpRequest): Promise<HttpResponse> {
    return this.withAccess(request, (authorized, http) => http.request(authorized));
  }

  /** JSON both ways; an answer that is not 2xx is thrown as the error it names. */
  async json({ json, ...request }: JsonRequest): Promise<JsonAnswer> {
    const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
    if (json !== undefined) headers['content-type'] = 'application/json';
    const body = json === undefined ? undefined : JSON.stringify(json);
    const response = await this.request({ ...request, headers, body });
    const { errorFromAnswer, parseJsonAnswer } = await import('../http/answer.js');
    const { status } = response;
    if (status < 200 || status > 299) throw errorFromAnswer(response);
    return { status, headers: response.headers, value: parseJsonAnswer(response) };
  }

  /** Sends it by `send`; once more with another token where the server refuses the first and there is a way. */
  async withAccess<T extends { readonly status: number }>(
    request: HttpRequest,
    send: (authorized: HttpRequest, http: Awaited<ReturnType<AuthWorld['http']>>) => Promise<T>,
  ): Promise<T> {
    const { signal } = request;
    const url = this.#urlOf(request.url);
    let access = await this.access(signal);
    const http = await this.#world.http();
    const once = (): Promise<T> => {
      const headers = { ...request.headers, authorization: `Bearer ${access.token.reveal()}` };
      return send({ ...request, url, headers }, http);
    };
    let answer = await once();
    const mayAskAgain = access.origin.kind === 'stored' || access.renewAtMs !== undefined;
    if (answer.status === 401 && mayAskAgain) {
      access = await this.access(signal, true);
      answer = await once();
    }
    if (answer.status === 401) throw refusedAccess(access, this.#world.clock.now());
    return answer;
  }

  #urlOf(path: string): string {
    // URL parsers fold these away, encoded or not: the request would go somewhere else.
    const isFolded = /(?:^|\/)(?:\.|%2e){1,2}(?:[/?#]|$)/i.test(path);
    if (path.startsWith('/') && !isFolded) return `${this.#world.url()}${path}`;
    throw new AilsdError('INVALID_REQUEST', 'that path cannot be asked for', {
      hint: 'name a path of the server that begins with / and has no . or .. in it',
    });
  }
}
