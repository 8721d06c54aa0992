/** What a route's code is given, and what it answers with: no framework, no sockets. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { SandboxId } from '../../protocol/ids.js';
import { type Output, parseRequest, type Schema } from '../../protocol/parse.js';
import type { Principal } from '../../protocol/principal.js';
import { BODY_MAX_BYTES } from '../../protocol/shapes/envelope.js';
import { bearerOf } from './bearer.js';
import { readJson } from './body.js';
import type { Exchange } from './exchange.js';
import { readQuery } from './query.js';

export interface Answer {
  /** 200 unless it says otherwise. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; absent, and nothing below: no body. */
  readonly body?: object;
  /** Sent as it is, of the type that the headers name. */
  readonly text?: string;
  /** Sent piece by piece: the next is asked for when the caller has taken the one before. It ends when `exchange.signal` aborts. */
  readonly stream?: AsyncIterable<Uint8Array | string>;
  /** The code has written to `exchange.response` itself. */
  readonly isSent?: boolean;
}

export type RouteCode = (call: Call) => Answer | Promise<Answer>;

/** Who was found to be calling; which of them, the route's row says. */
export interface Caller {
  readonly principal?: Principal | undefined;
  /** Of a sandbox that proved to be itself. */
  readonly sandboxId?: SandboxId | undefined;
}

export class Call {
  readonly exchange: Exchange;
  /** Decoded, and each of the form that `PATH_PARAMETERS` asks for. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly #caller: Caller;

  constructor(
    exchange: Exchange,
    parameters: Readonly<Record<string, string>>,
    caller: Caller = {},
  ) {
    this.exchange = exchange;
    this.parameters = parameters;
    this.#caller = caller;
  }

  /** Present on every route whose row asks for an access token. */
  get principal(): Principal {
    const { principal } = this.#caller;
    if (principal !== undefined) return principal;
    throw new AilsdError('INTERNAL', 'this route asks nobody who they are');
  }

  /** Present on every route whose row asks for a sandbox's key. */
  get sandboxId(): SandboxId {
    const { sandboxId } = this.#caller;
    if (sandboxId !== undefined) return sandboxId;
    throw new AilsdError('INTERNAL', 'this route asks for no sandbox');
  }

  /** One of the path's, by its name in the route's row. */
  parameter(name: string): string {
    const value = this.parameters[name];
    if (value !== undefined) return value;
    throw new AilsdError('INTERNAL', `this route has no ${name} in its path`);
  }

  /** For routes that look at the token themselves. */
  bearer(): Secret {
    return bearerOf(this.exchange.request);
  }

  /** The query by its shape; INVALID_REQUEST naming the field. */
  query<S extends Schema>(schema: S): Output<S> {
    return known(parseRequest(schema, readQuery(this.exchange.request.url ?? '')));
  }

  /** The body by its shape; one that is absent counts as an empty object. */
  async body<S extends Schema>(schema: S): Promise<Output<S>> {
    const json = await this.json();
    return known(parseRequest(schema, json === undefined ? {} : json));
  }

  /** The body as JSON; `undefined` when there is none. */
  json(): Promise<unknown> {
    return readJson(this.exchange.request, BODY_MAX_BYTES);
  }
}

function known<T>(
  parsed: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: Error },
): T {
  if (parsed.ok) return parsed.value;
  throw parsed.error;
}
