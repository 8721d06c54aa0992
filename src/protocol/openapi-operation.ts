/** One route as an OpenAPI operation: its parameters, bodies, answers and errors. */
import * as z from 'zod/mini';
import { CLOSES } from './closes.js';
import { componentName } from './components.js';
import { type ErrorCode, errorRow } from './errors.js';
import { PATH_PARAMETERS } from './path-parameters.js';
import {
  AUTHS,
  type Content,
  HEADERS,
  type HttpRoute,
  type Route,
  type SocketRoute,
} from './routes/route.js';
import { ROUTES, type RouteName } from './routes.js';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** The JSON Schema of each shape by its name. */
type Schemas = ReadonlyMap<string, JsonObject>;

export function operation(name: RouteName, schemas: Schemas): JsonObject {
  const route: Route = ROUTES[name];
  return {
    operationId: name,
    tags: [route.family],
    summary: route.summary,
    description: describe(route),
    ...(IN_SANDBOX.has(route.family) && { servers: SANDBOX_SERVERS }),
    security: security(route),
    parameters: [
      ...pathParameters(route),
      ...queryParameters(route, schemas),
      ...headerParameters(route),
    ],
    ...(route.method === 'WS' ? socketParts(route) : httpParts(route, schemas)),
    ...(route.capability && { 'x-capability': route.capability }),
  };
}

export function schemaUri(component: string): string {
  return `#/components/schemas/${component}`;
}

/** A schema as JSON, without what zod says of one that stands alone. */
export function plainSchema(schema: unknown): JsonObject {
  const { $schema, $id, ...rest }: JsonObject = JSON.parse(JSON.stringify(schema));
  return rest;
}

function describe({ summary, notes, auth, scopes, capability, capabilities }: Route): string {
  const lines = [`${summary}.`, notes, `Auth: ${AUTHS[auth]}.`];
  if (scopes) lines.push(`Needs the scope ${scopes.map((one) => `\`${one}\``).join(' or ')}.`);
  if (capability) lines.push(`Needs the capability \`${capability}\`.`);
  if (capabilities)
    lines.push(
      `Needs one of the capabilities ${capabilities.map((one) => `\`${one}\``).join(', ')}.`,
    );
  return lines.filter((line) => line !== undefined).join(' ');
}

function httpParts(route: HttpRoute, schemas: Schemas): JsonObject {
  const responses: Record<string, Json> = errorAnswers(route);
  for (const [status, contents] of Object.entries(route.answers)) {
    responses[status] = { description: STATUS_TEXT[status] ?? 'Done', ...body(contents) };
  }
  return {
    ...(route.request && { requestBody: requestBody(route.request, schemas) }),
    responses,
    'x-idempotent': route.idempotent,
  };
}

/** A body of which every field may be left out may be left out itself. */
function requestBody(request: Content, schemas: Schemas): JsonObject {
  const schema = request.shape && schemas.get(request.shape);
  const isOptional = schema?.['type'] === 'object' && schema['required'] === undefined;
  return { required: !isOptional, ...body([request]) };
}

function socketParts(route: SocketRoute): JsonObject {
  const closes = route.errors.map((error) => {
    const { code, reason } = CLOSES[errorRow(error).close];
    return { error, code, reason };
  });
  return {
    responses: { ...errorAnswers(route), 101: { description: 'The connection is a WebSocket' } },
    'x-websocket': {
      frames: 'docs/protocol.md',
      ...(route.writes && { writes: route.writes }),
      ...(route.message && { message: { $ref: schemaUri(componentName(route.message)) } }),
      closes,
    },
  };
}

function errorAnswers({ errors, family, auth }: Route): Record<string, Json> {
  const codes = new Map<number, readonly ErrorCode[]>();
  for (const code of errors) {
    const { status } = errorRow(code);
    codes.set(status, [...(codes.get(status) ?? []), code]);
  }
  // To a client the issuer speaks OAuth; the envelope is for everyone else.
  const isOauth = family === 'issuer' && auth === 'client';
  const answer: Content = { shape: isOauth ? 'oauthError' : 'errorEnvelope' };
  const answers: Record<string, Json> = {};
  for (const [status, names] of codes) {
    answers[status] = { description: names.join(', '), ...headersOf(status), ...body([answer]) };
  }
  return answers;
}

function headersOf(status: number): JsonObject {
  const name = HEADER_OF_STATUS[status];
  return name === undefined
    ? {}
    : { headers: { [name]: { $ref: `#/components/headers/${name}` } } };
}

function body(contents: readonly Content[]): JsonObject {
  if (contents.length === 0) return {};
  const content: Record<string, Json> = {};
  for (const { media = 'application/json', shape } of contents) {
    content[media] =
      shape === undefined ? {} : { schema: { $ref: schemaUri(componentName(shape)) } };
  }
  return { content };
}

function pathParameters({ path }: Route): readonly JsonObject[] {
  return Object.entries(PATH_PARAMETERS)
    .filter(([name]) => path.includes(`{${name}}`))
    .map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      ...(name === 'path' && { description: 'may hold slashes' }),
      schema: plainSchema(z.toJSONSchema(schema)),
    }));
}

function queryParameters({ query }: Route, schemas: Schemas): readonly JsonObject[] {
  const { properties = {}, required = [] } = (query && schemas.get(query)) ?? {};
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: needed.includes(name),
    schema,
  }));
}

function headerParameters(route: Route): readonly JsonObject[] {
  const names = route.method === 'WS' ? [] : (route.headers ?? []);
  return names.map((name) => ({
    name,
    in: 'header',
    description: HEADERS[name],
    schema: { type: 'string', maxLength: 4096 },
  }));
}

/** Any one entry is enough. */
function security({ auth, scopes }: Route): readonly JsonObject[] {
  if (auth === 'none') return [];
  return scopes === undefined ? [{ [auth]: [] }] : scopes.map((scope) => ({ [auth]: [scope] }));
}

const IN_SANDBOX: ReadonlySet<string> = new Set(['exec', 'files', 'sockets']);

const SANDBOX_SERVERS: Json = [
  {
    url: '{base_url}',
    description: 'the base URL from the negotiation, less a trailing /v1',
    variables: { base_url: { default: 'https://sandbox.example' } },
  },
];

const HEADER_OF_STATUS: Readonly<Record<number, string>> = {
  401: 'WWW-Authenticate',
  423: 'Retry-After',
  429: 'Retry-After',
  503: 'Retry-After',
};

const STATUS_TEXT: Readonly<Record<string, string>> = {
  201: 'Made',
  202: 'Started, and runs on',
  204: 'Done, and nothing to say',
  206: 'The part that was asked for',
  303: 'Go on there',
  304: 'Unchanged',
  503: 'Not now',
};
