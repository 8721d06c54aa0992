/** Requests made up from the OpenAPI document, right and wrong in every part: nothing falls over, and every error is an envelope. */
import { createServer, request } from 'node:http';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import type { Json, JsonObject } from '../../../src/protocol/openapi-operation.js';
import { parseAnswer } from '../../../src/protocol/parse.js';
import { errorEnvelope } from '../../../src/protocol/shapes/envelope.js';
import type { ProviderFlags } from '../../../src/server/providers/provider.js';
import { FolderProvider } from '../../support/folder-provider.js';
import { newSeed, seededRandom } from '../../support/random.js';
import { type WholeServer, wholeServer } from '../../support/whole-server.js';

const SEED = newSeed();
const REQUESTS = process.env['AILSD_SOAK'] === '1' ? 20_000 : 1_000;
const AT_ONCE = 8;

// biome-ignore lint/suspicious/noExplicitAny: the document is looked into as any reader would
type Document = any;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operation: Document;
}

/** Can everything that a policy may ask for. */
class AbleProvider extends FolderProvider {
  override readonly flags: ProviderFlags = {
    isolation: 'none',
    egressControl: true,
    memoryLimit: true,
    snapshots: true,
    validatesTokens: true,
  };
  readonly snapshots = {
    take: async () => ({ sizeBytes: 1 }),
    restore: async () => undefined,
    remove: async () => undefined,
  };
}

/** A sandbox that takes everything and says little. */
async function quietSandbox(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.setHeader('Content-Type', 'application/json');
    response.end('{"items":[]}');
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.close(1000));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

class Fuzzer {
  readonly #document: Document;
  readonly #random: () => number;
  /** Ids that were seen in answers, so that some requests are about things that are there. */
  readonly known = new Map<string, string[]>();

  constructor(document: Document, random: () => number) {
    this.#document = document;
    this.#random = random;
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  operations(): readonly Operation[] {
    return Object.entries(this.#document.paths).flatMap(([path, item]) =>
      Object.entries(Object(item)).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
  }

  path({ path, operation }: Operation): string {
    return path.replace(/\{([a-z_]+)\}/g, (_, name: string) => {
      const known = this.known.get(name);
      if (known !== undefined && this.chance(0.6)) return encodeURIComponent(this.pick(known));
      if (this.chance(0.2)) return this.pick(STRANGE);
      const parameter = operation.parameters.find((one: Document) => one.name === name);
      return encodeURIComponent(String(this.sample(parameter?.schema ?? {}, 0)));
    });
  }

  query({ operation }: Operation): string {
    const query = new URLSearchParams();
    for (const { in: place, name, schema } of operation.parameters) {
      if (place !== 'query' || this.chance(0.5)) continue;
      query.append(name, this.chance(0.3) ? this.pick(STRANGE) : String(this.sample(schema, 0)));
      if (this.chance(0.05)) query.append(name, 'twice');
    }
    if (this.chance(0.1)) query.append(this.pick(['unknown', '__proto__', '']), this.pick(STRANGE));
    const text = query.toString();
    return text === '' ? '' : `?${text}`;
  }

  body({ operation }: Operation): string | undefined {
    const schema = operation.requestBody?.content?.['application/json']?.schema;
    if (schema === undefined) return this.chance(0.1) ? this.pick(STRANGE_BODIES) : undefined;
    if (this.chance(0.1)) return this.pick(STRANGE_BODIES);
    const value = this.sample(schema, 0);
    if (typeof value !== 'object' || value === null || this.chance(0.5))
      return JSON.stringify(value);
    const entries = Object.entries(value);
    const [name] = this.pick(entries) ?? ['x'];
    return JSON.stringify({ ...value, [name]: this.pick(STRANGE_VALUES) });
  }

  sample(schema: JsonObject | Document, depth: number): Json {
    if (schema === undefined || depth > 5) return null;
    if (typeof schema.$ref === 'string') {
      const name = schema.$ref.split('/').at(-1);
      return this.sample(this.#document.components.schemas[name], depth + 1);
    }
    for (const word of ['anyOf', 'oneOf', 'allOf'])
      if (Array.isArray(schema[word])) return this.sample(this.pick(schema[word]), depth + 1);
    if (Array.isArray(schema.enum)) return this.pick(schema.enum);
    if (schema.const !== undefined) return schema.const;
    switch (schema.type) {
      case 'object': {
        const made: Record<string, Json> = {};
        for (const [name, one] of Object.entries(schema.properties ?? {}))
          if (schema.required?.includes(name) || this.chance(0.5))
            made[name] = this.#known(name) ?? this.sample(one, depth + 1);
        return made;
      }
      case 'array':
        return Array.from({ length: Math.floor(this.#random() * 4) }, () =>
          this.sample(schema.items ?? {}, depth + 1),
        );
      case 'integer':
      case 'number':
        return Math.floor(this.#random() * 1_000);
      case 'boolean':
        return this.chance(0.5);
      case 'string':
        return this.#text(schema);
      default:
        return this.pick(STRANGE);
    }
  }

  #known(name: string): string | undefined {
    const known = this.known.get(name);
    return known !== undefined && this.chance(0.5) ? this.pick(known) : undefined;
  }

  #text({ pattern, format }: Document): string {
    if (format === 'date-time') return new Date(this.#random() * 2e12).toISOString();
    if (format === 'uri') return 'http://127.0.0.1:1/base';
    if (typeof pattern !== 'string') return this.pick(STRANGE);
    const seed = Math.floor(this.#random() * 2 ** 31);
    const [text = 'x'] = fc.sample(fc.stringMatching(new RegExp(pattern)), { seed, numRuns: 1 });
    return text;
  }
}

const STRANGE = [
  '',
  '.',
  '..',
  '%00',
  '%ff',
  '%',
  'a b',
  '-1',
  '1e309',
  'é',
  '😀',
  "' OR 1=1 --",
  'x'.repeat(5_000),
  '__proto__',
  '\u0000',
  '%2e%2e%2f',
  '{}',
  'null',
].map((one) => (one.startsWith('%') ? one : encodeURIComponent(one)));
const STRANGE_VALUES: readonly Json[] = [
  null,
  -1,
  1e308,
  '',
  '\u0000',
  [],
  {},
  [[[[]]]],
  'x'.repeat(10_000),
  true,
  { __proto__: 1 },
  '\ud800',
];
const STRANGE_BODIES = [
  '',
  'null',
  '[]',
  '"',
  '{',
  '{"a":1e999}',
  '\u0000',
  'x'.repeat(2_000_000),
  `${'['.repeat(100)}${']'.repeat(100)}`,
];

interface Answered {
  readonly status: number;
  readonly text: string;
}

function send(
  server: WholeServer,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port: server.port, method, path, headers, agent: false },
      (incoming) => {
        const status = incoming.statusCode ?? 0;
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
          // A log that is followed has no end.
          if (status === 200 && incoming.headers['content-type'] === 'application/jsonl')
            incoming.destroy();
        });
        incoming.on('close', () => resolve({ status, text }));
        incoming.on('error', () => undefined);
      },
    );
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy();
      resolve({ status: 101, text: '' });
    });
    outgoing.setTimeout(20_000, () => outgoing.destroy(new Error(`no answer: ${method} ${path}`)));
    outgoing.on('error', (cause) =>
      reject(new Error(`${cause.message}: ${method} ${path.slice(0, 300)} ${body?.slice(0, 100)}`)),
    );
    outgoing.end(body);
  });
}

describe('the OpenAPI document', () => {
  it(
    `${REQUESTS} requests made up from it: no crash, no 5xx, every error an envelope (seed ${SEED})`,
    async () => {
      await using sandbox = await quietSandbox();
      await using server = await wholeServer({
        file: { broker: { requests_per_minute: 0, address_requests_per_minute: 0 } },
        provider: (folder) => new AbleProvider(folder),
      });
      server.provider.plan.endpoints = {
        httpUrl: `http://127.0.0.1:${sandbox.port}`,
        wsUrl: `ws://127.0.0.1:${sandbox.port}`,
      };
      const reply = await fetch(`${server.url}/openapi.json`);
      const fuzzer = new Fuzzer(await reply.json(), seededRandom(SEED));
      const operations = fuzzer.operations();
      expect(operations.length).toBeGreaterThan(60);
      const all = 'read:sandbox write:sandbox exec:sandbox attach:sandbox';
      const tokens = [
        ...Array(6).fill(server.token()),
        server.token({ sub: 'usr_bob' }),
        server.token({ sub: 'usr_root', scope: `${all} admin:sandbox` }),
        server.token({ scope: 'read:sandbox' }),
        'nonsense',
        undefined,
      ];
      const wrong: string[] = [];
      const statuses = new Map<number, number>();
      fuzzer.known.set('thread_id', ['thr_1', 'thr_2', 'thr_3']);

      const once = async (): Promise<void> => {
        const operation = fuzzer.pick(operations);
        const isSocket = operation.operation['x-websocket'] !== undefined;
        const token = fuzzer.pick(tokens);
        const body = isSocket ? undefined : fuzzer.body(operation);
        const headers: Record<string, string> = {
          ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(fuzzer.chance(0.2) && {
            'Idempotency-Key': fuzzer.pick(['k1', 'k2', ' ', 'x'.repeat(300)]),
          }),
          ...(fuzzer.chance(0.5) && {
            Prefer: fuzzer.pick(['wait=5', 'wait=1e9', 'wait=-1', 'x']),
          }),
          ...(isSocket && {
            Connection: 'Upgrade',
            Upgrade: 'websocket',
            'Sec-WebSocket-Version': fuzzer.pick(['13', '13', '8']),
            'Sec-WebSocket-Key': fuzzer.pick(['dGhlIHNhbXBsZSBub25jZQ==', 'short']),
          }),
        };
        const path = `${fuzzer.path(operation)}${fuzzer.query(operation)}`;
        const { status, text } = await send(server, operation.method, path, headers, body);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        const told = `${operation.operation.operationId} ${operation.method} ${path.slice(0, 200)} ${body?.slice(0, 300)}: ${status} ${text.slice(0, 300)}`;
        if (status >= 500) wrong.push(told);
        const isIssuer = operation.operation.tags[0] === 'issuer';
        if (status >= 400 && !isIssuer && operation.method !== 'HEAD') {
          const parsed = parseAnswer(errorEnvelope, JSON.parse(text || 'null'));
          if (!parsed.ok) wrong.push(`no envelope: ${told}`);
        }
        if (status < 300) learn(fuzzer, text);
      };
      let left = REQUESTS;
      const worker = async (): Promise<void> => {
        while (left-- > 0) await once();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      expect(wrong.slice(0, 10)).toEqual([]);
      expect(statuses.get(200), JSON.stringify([...statuses])).toBeGreaterThan(REQUESTS / 50);
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect(server.log.filter((line) => line.includes('"level":"error"')).slice(0, 5)).toEqual([]);
    },
    REQUESTS * 60,
  );
});

function learn(fuzzer: Fuzzer, text: string): void {
  for (const [, name = '', value = ''] of text.matchAll(
    /"(session_id|sandbox_id|id|token|jti)":"([^"]{1,2000})"/g,
  )) {
    const kind =
      name !== 'id' ? name : (KINDS.find(([prefix]) => value.startsWith(prefix))?.[1] ?? name);
    const known = fuzzer.known.get(kind === 'token' ? 'current_token' : kind) ?? [];
    fuzzer.known.set(kind === 'token' ? 'current_token' : kind, [...known.slice(-20), value]);
  }
}

const KINDS = [
  ['sb_', 'sandbox_id'],
  ['ssn_', 'session_id'],
  ['grant_', 'grant_id'],
  ['snap_', 'snapshot_id'],
  ['trust_', 'trust_id'],
] as const;
