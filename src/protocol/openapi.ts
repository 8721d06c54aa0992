/** The protocol as an OpenAPI 3.1 document, made from the routes and shapes alone: the same source, the same text. */
import * as z from 'zod/mini';
import { componentName, SHAPE_NAMES, shape } from './components.js';
import { type JsonObject, operation, plainSchema, schemaUri } from './openapi-operation.js';
import { AUTHS, type Auth, FAMILIES, type Route } from './routes/route.js';
import { ROUTES, routeNames } from './routes.js';
import { PROTOCOL_VERSION, VERSION } from './version.js';

export function buildOpenApi(): JsonObject {
  const schemas = componentSchemas();
  return {
    openapi: '3.1.0',
    info: {
      title: 'ailsd',
      version: VERSION,
      description: `The sandbox session access protocol ${PROTOCOL_VERSION}: issuer, broker and sandbox.`,
    },
    tags: Object.entries(FAMILIES).map(([name, description]) => ({ name, description })),
    paths: pathItems(schemas),
    components: {
      schemas: shownSchemas(schemas),
      headers: RESPONSE_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** By the shapes' names. All are shown as they are written, before anything is read into them: `io: 'input'`. */
function componentSchemas(): ReadonlyMap<string, JsonObject> {
  const registry = z.registry<{ id: string }>();
  for (const name of SHAPE_NAMES) registry.add(shape(name), { id: componentName(name) });
  const options = { uri: schemaUri, io: 'input', unrepresentable: 'any' } as const;
  const { schemas } = z.toJSONSchema(registry, options);
  return new Map(SHAPE_NAMES.map((name) => [name, plainSchema(schemas[componentName(name)])]));
}

/** A query is shown as the parameters it consists of, so it is no component. */
function shownSchemas(schemas: ReadonlyMap<string, JsonObject>): JsonObject {
  const queries = new Set<string | undefined>(
    routeNames()
      .map((name): Route => ROUTES[name])
      .map(({ query }) => query),
  );
  const shown: Record<string, JsonObject> = {};
  for (const name of SHAPE_NAMES) {
    if (!queries.has(name)) shown[componentName(name)] = schemas.get(name) ?? {};
  }
  return shown;
}

function pathItems(schemas: ReadonlyMap<string, JsonObject>): JsonObject {
  const items: Record<string, JsonObject> = {};
  for (const name of routeNames()) {
    const { method, path } = ROUTES[name];
    const verb = method === 'WS' ? 'get' : method.toLowerCase();
    items[path] = { ...items[path], [verb]: operation(name, schemas) };
  }
  return items;
}

const RESPONSE_HEADERS: JsonObject = {
  'Retry-After': { description: 'seconds to wait', schema: { type: 'integer', minimum: 0 } },
  'WWW-Authenticate': { description: 'Bearer error="…"', schema: { type: 'string' } },
};

const SECURITY_SCHEMES: Readonly<Record<Exclude<Auth, 'none'>, JsonObject>> = {
  browser: { type: 'apiKey', in: 'cookie', name: '_session', description: AUTHS.browser },
  client: { type: 'http', scheme: 'basic', description: AUTHS.client },
  'access-token': {
    type: 'openIdConnect',
    openIdConnectUrl: ROUTES.discover.path,
    description: AUTHS['access-token'],
  },
  'sandbox-token': bearer('sandbox-token'),
  'sandbox-key': bearer('sandbox-key'),
  invite: { type: 'apiKey', in: 'query', name: 'token', description: AUTHS.invite },
};

function bearer(auth: Auth): JsonObject {
  return { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: AUTHS[auth] };
}
