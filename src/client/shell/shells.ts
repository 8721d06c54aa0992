/** The shells of a sandbox as a list, the end of one, and the recording of one: plain requests to the sandbox. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import {
  buildPath,
  type ParametersOf,
  type RouteName,
  underBaseUrl,
} from '../../protocol/routes.js';
import { errorFromAnswer, parseJsonAnswer } from '../http/answer.js';
import type { HttpResponse } from '../http/exchange.js';
import type { Http } from '../http/http.js';
import { type Document, isDocument } from '../sessions/call.js';
import type { Session } from '../sessions/session.js';

/** A recording is kept in two files of 4 MiB at most, and JSON may write a byte as six. */
const LOG_MAX_BYTES = 64 * 1024 * 1024;

export class Shells {
  readonly #session: Pick<Session, 'httpUrl' | 'token' | 'refresh' | 'canRefresh'>;
  readonly #http: Http;

  constructor(session: Pick<Session, 'httpUrl' | 'token' | 'refresh' | 'canRefresh'>, http: Http) {
    this.#session = session;
    this.#http = http;
  }

  async list(signal?: AbortSignal): Promise<readonly Document[]> {
    const answer = parseJsonAnswer(await this.#ask('GET', 'listShells', {}, signal));
    const items = isDocument(answer) ? answer['items'] : undefined;
    if (Array.isArray(items) && items.every(isDocument)) return items;
    throw new AilsdError('PROTOCOL_MISMATCH', "the sandbox's answer: items is of another form");
  }

  /** Asks its programs to end, and soon makes them. */
  async kill(shellId: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('DELETE', 'endShell', { shell_id: shellId }, signal);
  }

  /** Asciicast v2. */
  async log(shellId: string, signal?: AbortSignal): Promise<Uint8Array> {
    return (await this.#ask('GET', 'readShellLog', { shell_id: shellId }, signal)).body;
  }

  /** A token that expired on the way is refreshed once. */
  async #ask<N extends RouteName>(
    method: 'GET' | 'DELETE',
    route: N,
    parameters: ParametersOf<N>,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    const url = underBaseUrl(this.#session.httpUrl, buildPath(route, parameters));
    const request = { method, url, signal, maxBytes: LOG_MAX_BYTES };
    let answer = await this.#send(request, await this.#session.token(signal));
    if (answer.status === 401 && this.#session.canRefresh) {
      answer = await this.#send(request, await this.#session.refresh(signal));
    }
    if (answer.status < 200 || answer.status > 299) throw errorFromAnswer(answer);
    return answer;
  }

  #send(request: Parameters<Http['request']>[0], token: Secret): Promise<HttpResponse> {
    const headers = { authorization: `Bearer ${token.reveal()}` };
    return this.#http.request({ ...request, headers });
  }
}
