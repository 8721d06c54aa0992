/** What a route's code is given, and what it answers with: no framework, no sockets. */
import { AilsdError } from '../../protocol/errors.js';
import type { Principal } from '../../protocol/principal.js';
import { BODY_MAX_BYTES } from '../../protocol/shapes/envelope.js';
import { readJson } from './body.js';
import type { Exchange } from './exchange.js';

export interface Answer {
  /** 200 unless it says otherwise. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; absent: no body. */
  readonly body?: object;
}

export type RouteCode = (call: Call) => Answer | Promise<Answer>;

export class Call {
  readonly exchange: Exchange;
  /** Decoded; what each must be is for whoever uses it to check. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly #principal: Principal | undefined;

  constructor(
    exchange: Exchange,
    parameters: Readonly<Record<string, string>>,
    principal: Principal | undefined,
  ) {
    this.exchange = exchange;
    this.parameters = parameters;
    this.#principal = principal;
  }

  /** Present on every route whose row asks for an access token. */
  get principal(): Principal {
    if (this.#principal !== undefined) return this.#principal;
    throw new AilsdError('INTERNAL', 'this route asks nobody who they are');
  }

  /** The body as JSON; `undefined` when there is none. */
  json(): Promise<unknown> {
    return readJson(this.exchange.request, BODY_MAX_BYTES);
  }
}
