/** Serves routes of the protocol's table by code given for them: finds the route, asks who calls, writes the answer. */
import { getRequestListener } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { AilsdError } from '../../protocol/errors.js';
import type { Principal } from '../../protocol/principal.js';
import type { Route } from '../../protocol/routes/route.js';
import { matchRoute, ROUTES, type RouteName, routeNames } from '../../protocol/routes.js';
import { hasAuthorization } from './bearer.js';
import { type Answer, Call, type RouteCode } from './call.js';
import { errorAnswer } from './errors.js';
import type { Exchange } from './exchange.js';
import { authenticate, type VerifyToken } from './principal.js';

export interface AppParts {
  readonly routes: Readonly<Partial<Record<RouteName, RouteCode>>>;
  readonly verify: VerifyToken;
}

/** Answers every exchange, whatever happens in it. */
export function createApp({ routes, verify }: AppParts): (exchange: Exchange) => Promise<void> {
  // The path is matched as it was sent: a thread may be called `..`, and URL parsers fold even `%2E%2E`.
  const app = new Hono<HonoEnv>({ getPath: (_, options) => options?.env?.exchange.path ?? '/' });
  for (const name of routeNames()) {
    const code = routes[name];
    const route: Route = ROUTES[name];
    if (code === undefined || route.method === 'WS') continue;
    const caller = callerOf(route, verify);
    app.on(route.method, honoPath(route.path), (context) =>
      answered(context.env.exchange, async (exchange) => {
        exchange.note({ route: name });
        const principal = await caller(exchange);
        const call = new Call(exchange, context.req.param(), principal);
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

function callerOf(
  route: Route,
  verify: VerifyToken,
): (exchange: Exchange) => Promise<Principal | undefined> {
  switch (route.auth) {
    case 'none':
      return async () => undefined;
    case 'access-token':
      return (exchange) => authenticate(exchange, verify, route.scopes);
    default:
      throw new Error(`${route.path} asks for ${route.auth}, which is not served here`);
  }
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

function toResponse({ status = 200, headers, body }: Answer, exchange: Exchange): Response {
  const all = { ...exchange.headers, ...headers };
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
