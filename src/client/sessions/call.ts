/** Calls a route of the server by its name and gives its answer as the document it is: the wire's names, nothing left out. */
import { AilsdError } from '../../protocol/errors.js';
import { buildPath, type ParametersOf, ROUTES, type RouteName } from '../../protocol/routes.js';
import type { Asker } from './asker.js';

export type Document = Readonly<Record<string, unknown>>;

export interface CallOptions<N extends RouteName> {
  readonly parameters: ParametersOf<N>;
  /** What is `undefined` is left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly json?: object | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Page {
  readonly items: readonly Document[];
  readonly nextCursor: string | undefined;
}

/** An answer without a body is an empty document. */
export async function callRoute<N extends RouteName>(
  asker: Asker,
  name: N,
  options: CallOptions<N>,
): Promise<Document> {
  const { parameters, query, json, headers, signal } = options;
  const url = routeUrl(name, parameters, query);
  const { value } = await asker.json({ method: ROUTES[name].method, url, json, headers, signal });
  if (value === undefined) return {};
  if (isDocument(value)) return value;
  throw mismatch('body');
}

export async function callForPage<N extends RouteName>(
  asker: Asker,
  name: N,
  options: CallOptions<N>,
): Promise<Page> {
  const { items, next_cursor: cursor } = await callRoute(asker, name, options);
  if (!Array.isArray(items) || !items.every(isDocument)) throw mismatch('items');
  if (cursor === undefined || cursor === null) return { items, nextCursor: undefined };
  if (typeof cursor === 'string') return { items, nextCursor: cursor };
  throw mismatch('next_cursor');
}

export function routeUrl<N extends RouteName>(
  name: N,
  parameters: ParametersOf<N>,
  query: CallOptions<N>['query'] = {},
): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) search.set(key, String(value));
  }
  const path = buildPath(name, parameters);
  return search.size === 0 ? path : `${path}?${search}`;
}

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mismatch(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the server's answer: ${field} is of another form`, {
    details: { field },
  });
}
