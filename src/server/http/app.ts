/** Serves routes of the protocol's table by code given for them: finds the route, asks who calls, writes the answer. */
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { AilsdError } from '../../protocol/errors.js';
import type { Route } from '../../protocol/routes/route.js';
import { matchRoute, ROUTES, type RouteName, routeNames } from '../../protocol/routes.js';
import { hasAuthorization } from './bearer.js';
import { type Answer, Call, type RouteCode } from './call.js';
import { type CallerParts, callerOf, checkParameters } from './caller.js';
import { errorAnswer } from './errors.js';
import type { Exchange } from './exchange.js';
import { streamAnswer } from './stream-answer.js';

export interface AppParts extends CallerParts {
  readonly routes: Readonly<Partial<Record<RouteName, RouteCode>>>;
}

/** Answers every exchange, whatever happens in it. */
export function createApp({ routes, ...parts }: AppParts): (exchange: Exchange) => Promise<void> {
  // The path is matched as it was sent: a thread may be called `..`, and URL parsers fold even `%2E%2E`.
  const app = new Hono<HonoEnv>({ getPath: (_, options) => options?.env?.exchange.path ?? '/' });
  for (const name of routeNames()) {
    const code = routes[name];
    const route: Route = ROUTES[name];
    if (code === undefined || route.method === 'WS') continue;
    const caller = callerOf(route, parts);
    app.on(route.method, honoPath(route.path), (context) =>
      answered(context.env.exchange, async (exchange) => {
        exchange.note({ route: name });
        const found = await caller(exchange);
        const call = new Call(exchange, checkParameters(context.req.param()), found);
        return toResponse(await code(call), exchange);
      }),
    );
  }
  app.notFound(({ env }: Context<HonoEnv>) => answered(env.exchange, nothingHere));

  const exchanges = new WeakMap<object, Exchange>();
  const listener = getRequestListener(
    (request, env) => {
      const exchange = 'incoming' in env ? exchanges.get(env.incoming) : undefined;
      if (exchange === undefined) throw new Error('a request without its exchange');
      return app.fetch(request, { exchange });
    },
    { errorHandler: (thrown) => refuse(thrown) },
  );
  return async (exchange) => {
    exchanges.set(exchange.request, exchange);
    await listener(exchange.request, exchange.response);
  };
}

interface HonoEnv {
  readonly Bindings: { readonly exchange: Exchange };
}

async function answered(
  exchange: Exchange,
  work: (exchange: Exchange) => Promise<Response>,
): Promise<Response> {
  try {
    return await work(exchange);
  } catch (thrown) {
    exchange.noteError(thrown);
    return errorResponse(thrown, exchange);
  }
}

async function toResponse(answer: Answer, exchange: Exchange): Promise<Response> {
  const { status = 200, headers, body, text, stream, isSent } = answer;
  if (stream !== undefined) await streamAnswer(exchange, answer);
  if (stream !== undefined || isSent === true) return RESPONSE_ALREADY_SENT;
  const all = { ...exchange.headers, ...headers };
  if (text !== undefined) return new Response(text, { status, headers: all });
  if (body === undefined) return new Response(null, { status, headers: all });
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/json', ...all },
  });
}

function errorResponse(thrown: unknown, { requestId, request, headers }: Exchange): Response {
  const answer = errorAnswer(thrown, requestId, hasAuthorization(request));
  const { status, body } = answer;
  return new Response(body, { status, headers: { ...headers, ...answer.headers } });
}

async function nothingHere({ request, path }: Exchange): Promise<never> {
  const matched = matchRoute(request.method ?? '', path);
  if (matched.kind === 'malformed')
    throw new AilsdError('INVALID_REQUEST', 'the path is not well formed', {
      details: { field: 'path' },
    });
  if (matched.kind === 'wrong-method')
    throw new AilsdError('METHOD_NOT_ALLOWED', 'this path is not for that method', {
      details: { allow: matched.allowed.filter((method) => method !== 'WS') },
    });
  throw new AilsdError('NOT_FOUND', 'there is nothing at this path');
}

/** A request line or Host header that no URL can be made of; everything else is caught nearer to its cause. */
function refuse(thrown: unknown): never {
  const isRequestError = thrown instanceof Error && thrown.name === 'RequestError';
  if (!isRequestError) throw thrown;
  throw new AilsdError('INVALID_REQUEST', 'the request names no place', {
    details: { field: 'host' },
    cause: thrown,
  });
}

function honoPath(template: string): string {
  return template.replace(/\{([a-z_]+)\}/g, (_braces, name: string) =>
    name === 'path' ? `:${name}{.*}` : `:${name}`,
  );
}
