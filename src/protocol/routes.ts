/** Every route of the protocol as data, and the two ways between a path and its parameters. Free of zod: shapes go by name. */
import { AilsdError } from './errors.js';
import { BROKER_ROUTES } from './routes/broker.js';
import { DATAPLANE_ROUTES } from './routes/dataplane.js';
import { ISSUER_ROUTES } from './routes/issuer.js';
import { RELAY_ROUTES } from './routes/relay.js';
import type { Route } from './routes/route.js';
import { SESSION_ROUTES } from './routes/sessions.js';

/** By name, which is also its `operationId`. */
export const ROUTES = {
  ...ISSUER_ROUTES,
  ...SESSION_ROUTES,
  ...BROKER_ROUTES,
  ...DATAPLANE_ROUTES,
  ...RELAY_ROUTES,
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof ROUTES;

/** The names in braces of a path. */
export type PathParameter<P extends string> = P extends `${string}{${infer N}}${infer Rest}`
  ? N | PathParameter<Rest>
  : never;

export type ParametersOf<N extends RouteName> = Readonly<
  Record<PathParameter<(typeof ROUTES)[N]['path']>, string>
>;

export type Matched =
  | {
      readonly kind: 'found';
      readonly name: RouteName;
      readonly route: Route;
      readonly parameters: Readonly<Record<string, string>>;
    }
  /** There is something at this path, but not by this method: 405. */
  | { readonly kind: 'wrong-method'; readonly allowed: readonly Route['method'][] }
  /** Percent-encoding that decodes to nothing: 400. */
  | { readonly kind: 'malformed' }
  | { readonly kind: 'none' };

/**
 * The path of a route. Each parameter is one segment, percent-encoded, but for `path`, which keeps its slashes. A thread
 * may be called `..`: its dots are encoded too, and the path is to be sent as it is, since URL parsers fold even `%2E%2E`.
 */
export function buildPath<N extends RouteName>(name: N, parameters: ParametersOf<N>): string {
  return ROUTES[name].path.replace(PARAMETER, (_braces, key: string) => {
    const value: unknown = Reflect.get(parameters, key);
    if (typeof value !== 'string' || (value === '' && key !== SPANNING)) throw badParameter(key);
    try {
      const segments = key === SPANNING ? value.split('/') : [value];
      return segments.map(encodeSegment).join('/');
    } catch (cause) {
      throw badParameter(key, cause);
    }
  });
}

/**
 * Finds the route of a request by its raw path, as it stood on the request line, without the query. The workspace's root
 * is `/files` as well as `/files/`.
 */
export function matchRoute(method: string, path: string): Matched {
  const candidates = TABLE.filter(({ pattern }) => pattern.test(path));
  const hit = candidates.find(({ route }) => route.method === method);
  if (hit === undefined) {
    const allowed = candidates.map(({ route }) => route.method);
    return allowed.length === 0 ? { kind: 'none' } : { kind: 'wrong-method', allowed };
  }
  const { name, route, pattern } = hit;
  try {
    const groups = Object.entries(pattern.exec(path)?.groups ?? {});
    const parameters = Object.fromEntries(
      groups.map(([key, value]) => [key, decodeURIComponent(value)]),
    );
    return { kind: 'found', name, route, parameters };
  } catch {
    return { kind: 'malformed' };
  }
}

/**
 * The address of a dataplane path under a base URL from a negotiation. S2's bases end in `/v1`, S3's do not: a path
 * here names its version itself, so one trailing `/v1` of the base gives way.
 */
export function underBaseUrl(baseUrl: string, path: string): string {
  const base = withoutSlashes(baseUrl);
  return (base.endsWith('/v1') ? withoutSlashes(base.slice(0, -3)) : base) + path;
}

/** A loop, since the regular expression for it looks at a run of slashes once for each of them. */
function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** The one parameter that spans segments, and may be empty: a path in the workspace. */
const SPANNING = 'path';
const PARAMETER = /\{([a-z_]+)\}/g;

interface Entry {
  readonly name: RouteName;
  readonly route: Route;
  readonly pattern: RegExp;
}

const TABLE: readonly Entry[] = routeNames().map((name) => ({
  name,
  route: ROUTES[name],
  pattern: patternOf(ROUTES[name].path),
}));

export function routeNames(): readonly RouteName[] {
  return Object.keys(ROUTES).filter(isRouteName);
}

export function isRouteName(name: string): name is RouteName {
  return Object.hasOwn(ROUTES, name);
}

function patternOf(template: string): RegExp {
  const source = template
    .replace(/[.]/g, '\\.')
    .replace(`/{${SPANNING}}`, `(?:/|$)(?<${SPANNING}>.*)`)
    .replace(PARAMETER, '(?<$1>[^/]+)');
  return new RegExp(`^${source}$`, 's');
}

function encodeSegment(value: string): string {
  return value === '.' || value === '..' ? value.replaceAll('.', '%2E') : encodeURIComponent(value);
}

function badParameter(field: string, cause?: unknown): AilsdError {
  return new AilsdError('INVALID_REQUEST', `${field} cannot be put into a path`, {
    details: { field },
    cause,
  });
}
