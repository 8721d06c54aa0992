import { describe, expect, it } from 'vitest';
import { errorRow } from '../../src/protocol/errors.js';
import { buildOpenApi } from '../../src/protocol/openapi.js';
import type { Route } from '../../src/protocol/routes/route.js';
import { ROUTES, routeNames } from '../../src/protocol/routes.js';
import { VERSION } from '../../src/protocol/version.js';
import { CONTRACT_PATHS, withoutNames } from '../fixtures/contract-paths.js';
import { proves } from '../requirements.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security: readonly Record<string, readonly string[]>[];
  readonly parameters: readonly { name: string; in: string; required?: boolean; schema: object }[];
  readonly requestBody?: { required: boolean; content: Record<string, object> };
  readonly responses: Readonly<Record<string, { description: string; content?: object }>>;
  readonly 'x-websocket'?: { closes: readonly { code: number; reason: string }[] };
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly tags: readonly { name: string; description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, unknown>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

const text = JSON.stringify(buildOpenApi());
const document: Document = JSON.parse(text);
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ path, verb, operation })),
);

/** Every object in the document, with where it stands. */
function* objectsIn(value: unknown, at: string): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [at, { ...value }];
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, `${at}/${key}`);
}

describe('the OpenAPI document', () => {
  it('is the same each time, and of this version', () => {
    expect(JSON.stringify(buildOpenApi())).toBe(text);
    expect(document.openapi).toBe('3.1.0');
    expect(document.info.version).toBe(VERSION);
  });

  for (const [section, paths] of Object.entries(CONTRACT_PATHS)) {
    it(proves(`section ${section}: every path is in it`, 'PR-10'), () => {
      const documented = operations.map(({ path, verb, operation }) => {
        const method = operation['x-websocket'] ? 'WS' : verb.toUpperCase();
        return `${method} ${withoutNames(path)}`;
      });
      expect(documented).toEqual(expect.arrayContaining(paths.map(withoutNames)));
    });
  }

  it(proves('holds every route once, under its name and with its family', 'PR-10'), () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.sort()).toEqual([...routeNames()].sort());
    const tags = new Set(document.tags.map(({ name }) => name));
    for (const { operation } of operations) {
      expect(operation.tags.every((tag) => tags.has(tag))).toBe(true);
      expect(operation.summary).not.toBe('');
      expect(operation.description.length).toBeGreaterThan(operation.summary.length);
    }
    for (const { description } of document.tags) expect(description).not.toBe('');
  });

  it('every reference leads somewhere', () => {
    let references = 0;
    for (const [at, { $ref }] of objectsIn(document, '#')) {
      if ($ref === undefined) continue;
      references += 1;
      const steps = String($ref).replace('#/', '').split('/');
      const target = steps.reduce<unknown>(
        (inner, step) =>
          typeof inner === 'object' && inner ? Reflect.get(inner, step) : undefined,
        document,
      );
      expect(target, `${at} → ${String($ref)}`).toBeDefined();
    }
    expect(references).toBeGreaterThan(100);
  });

  it('every parameter of a path is declared, and no other', () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
      const declared = operation.parameters.filter((one) => one.in === 'path');
      expect(declared.map(({ name }) => name).sort(), path).toEqual(inPath.sort());
      expect(declared.every(({ required }) => required === true)).toBe(true);
      const names = operation.parameters.map((one) => `${one.in} ${one.name}`);
      expect(new Set(names).size).toBe(names.length);
      for (const { schema } of operation.parameters) expect(Object.keys(schema)).not.toEqual([]);
    }
  });

  it(proves('every route has a good answer and answers for each of its errors', 'PR-10'), () => {
    for (const { path, operation } of operations) {
      const route: Route | undefined = Object.entries(ROUTES).find(
        ([name]) => name === operation.operationId,
      )?.[1];
      const statuses = Object.keys(operation.responses);
      const good = route?.method === 'WS' ? '101' : '2';
      expect(
        statuses.some((status) => status.startsWith(good)),
        path,
      ).toBe(true);
      for (const code of route?.errors ?? []) {
        const answer = operation.responses[errorRow(code).status];
        expect(answer?.description, `${path} ${code}`).toContain(code);
        expect(answer?.content, `${path} ${code}`).toBeDefined();
      }
    }
  });

  it('every security requirement is declared, and every route but the open ones has one', () => {
    for (const { operation, path } of operations) {
      for (const requirement of operation.security) {
        for (const name of Object.keys(requirement))
          expect(document.components.securitySchemes, path).toHaveProperty([name]);
      }
    }
    const open = operations.filter(({ operation }) => operation.security.length === 0);
    expect(open.map(({ path }) => path)).toEqual([
      '/.well-known/openid-configuration',
      '/jwks',
      '/healthz',
      '/readyz',
      '/metrics',
      '/openapi.json',
    ]);
    expect(document.paths['/v1/code/execute']?.['post']?.security).toEqual([
      { 'access-token': ['exec:sandbox'] },
    ]);
  });

  it('a WebSocket says how it closes', () => {
    const closes = document.paths['/computer']?.['get']?.['x-websocket']?.closes;
    expect(closes?.map(({ code, reason }) => `${code} ${reason}`)).toEqual([
      '1008 Missing token',
      '1008 Token expired',
      '1008 Invalid token',
      '1008 Unauthorized Room Access',
    ]);
  });

  it('a body that may be empty is not required, and a query is shown by its parts', () => {
    const required = (path: string, verb: string) =>
      document.paths[path]?.[verb]?.requestBody?.required;
    expect(required('/v1/sandbox/sessions', 'post')).toBe(true);
    expect(required('/v1/sandbox/sessions/{session_id}/refresh', 'post')).toBe(false);
    expect(required('/files/{path}', 'put')).toBe(true);
    expect(document.components.schemas).not.toHaveProperty('PageQuery');
    const { parameters = [] } = document.paths['/v1/sandboxes']?.['get'] ?? {};
    expect(parameters[0]).toEqual({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 200 },
    });
  });
});

describe('the JSON Schemas in it', () => {
  const schemas = [...objectsIn(document.components.schemas, '')];

  it('use the keywords of draft 2020-12, each with a value of its kind', () => {
    for (const [name, schema] of Object.entries(document.components.schemas))
      checkSchema(schema, name);
  });

  it('have patterns that mean the same with and without the unicode flag', () => {
    for (const [at, { pattern }] of schemas) {
      if (typeof pattern !== 'string') continue;
      expect(() => new RegExp(pattern), at).not.toThrow();
      expect(() => new RegExp(pattern, 'u'), at).not.toThrow();
      expect(pattern, at).not.toContain('\\p{');
    }
  });

  it('bound every string, list and dictionary, and forbid no field of a later version', () => {
    const loose: string[] = [];
    for (const [at, schema] of schemas) {
      if (schema['additionalProperties'] === false) loose.push(`${at} is closed`);
      if (schema['type'] === 'array' && schema['maxItems'] === undefined) loose.push(at);
      if (schema['type'] !== 'string') continue;
      const isBound = ['maxLength', 'pattern', 'enum', 'const'].some((key) => key in schema);
      if (!isBound) loose.push(at);
    }
    // Bound as a whole, in bytes, as the kernel does: see frame-fields.ts.
    const asWhole = /\/(argv|command|env|environment)(\/|$)/;
    expect(loose.filter((at) => !asWhole.test(at))).toEqual([]);
  });
});

const STRING = (value: unknown) => typeof value === 'string';
const COUNT = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;
const NUMBER = (value: unknown) => typeof value === 'number';
const WORDS = (value: unknown) => Array.isArray(value) && value.every(STRING);

const KEYWORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  $ref: STRING,
  description: STRING,
  format: STRING,
  pattern: STRING,
  type: (value) =>
    TYPES.has(value) || (Array.isArray(value) && value.every((one) => TYPES.has(one))),
  enum: Array.isArray,
  required: WORDS,
  const: () => true,
  default: () => true,
  minLength: COUNT,
  maxLength: COUNT,
  minItems: COUNT,
  maxItems: COUNT,
  maxProperties: COUNT,
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
};

const TYPES: ReadonlySet<unknown> = new Set([
  'array',
  'boolean',
  'integer',
  'null',
  'number',
  'object',
  'string',
]);

/** As much of the meta-schema as this document uses: an unknown keyword is a mistake. */
function checkSchema(schema: unknown, at: string): void {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    expect.fail(`${at} is no schema`);
  for (const [keyword, value] of Object.entries(schema)) {
    const where = `${at}/${keyword}`;
    if (keyword === 'properties') {
      for (const [name, inner] of Object.entries(value)) checkSchema(inner, `${where}/${name}`);
    } else if (keyword === 'anyOf' || keyword === 'oneOf') {
      expect(Array.isArray(value) && value.length > 0, where).toBe(true);
      for (const [index, inner] of Object.entries(value)) checkSchema(inner, `${where}/${index}`);
    } else if (['items', 'additionalProperties', 'propertyNames', 'not'].includes(keyword)) {
      checkSchema(value, where);
    } else {
      const isRight = KEYWORDS[keyword];
      if (isRight === undefined) expect.fail(`${where} is no keyword`);
      else expect(isRight(value), where).toBe(true);
    }
  }
}
