/** A broker in memory behind a real HTTP server: it holds every request to the protocol's own shapes, and any answer can be scripted. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { shape } from '../../src/protocol/components.js';
import { type ErrorCode, errorRow } from '../../src/protocol/errors.js';
import { parse } from '../../src/protocol/parse.js';
import { matchRoute, ROUTES } from '../../src/protocol/routes.js';
import { accessToken } from './fake-issuer.js';

export interface BrokerRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The route's name, or the path where there is none. */
  readonly route: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into requests as any server would
  readonly json: any;
  readonly headers: IncomingMessage['headers'];
}

export type BrokerAnswer =
  | { readonly status: number; readonly json?: unknown; readonly headers?: Record<string, string> }
  | { readonly status: number; readonly lines: readonly unknown[] }
  | 'cut'
  | 'silence';

export type BrokerScript = (
  request: BrokerRequest,
) => BrokerAnswer | undefined | Promise<BrokerAnswer | undefined>;

export interface FakeBroker extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly BrokerRequest[];
  /** Requests of one route. */
  of(route: string): readonly BrokerRequest[];
  script: BrokerScript | undefined;
  /** Sandbox tokens that were given out, in order. */
  readonly tokens: readonly string[];
  /** How many sandboxes were made. */
  readonly made: number;
  /** An access token that it takes, good for a quarter of an hour. */
  readonly access: string;
  /** Variables that make `ailsd` talk to it. */
  readonly env: Readonly<Record<string, string>>;
}

export interface FakeBrokerOptions {
  /** Life of a sandbox token, in seconds. */
  readonly lifeSeconds?: number;
  /** How long a new sandbox takes to start. */
  readonly startMs?: number;
  readonly idleTimeoutSeconds?: number;
  /** Where its sandboxes are served, where that is not here: an http base. */
  readonly sandboxUrl?: string;
  /** Its clock, for `Date` and for ends of tokens. */
  readonly now?: () => number;
}

interface FakeSession {
  readonly id: string;
  readonly thread: string;
  readonly sandbox: string;
  readonly readyAt: number;
}

export function envelope(code: ErrorCode, message = 'no', details: object = {}): BrokerAnswer {
  const { status, retryable } = errorRow(code);
  const error = { code, message, retryable, request_id: 'req_1', ...details };
  return { status, json: { error } };
}

export async function startFakeBroker(options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  const { lifeSeconds = 900, startMs = 0, idleTimeoutSeconds = 900 } = options;
  const now = options.now ?? (() => Date.now());
  const requests: BrokerRequest[] = [];
  const tokens: string[] = [];
  const sessions = new Map<string, FakeSession>();
  const keys = new Map<string, string>();
  const grants: Record<string, unknown>[] = [];
  let made = 0;
  let url = '';
  const at = (ms: number): string => new Date(ms).toISOString();
  const id = (prefix: string): string => `${prefix}${randomBytes(8).toString('hex')}`;

  const broker: FakeBroker = {
    get url() {
      return url;
    },
    requests,
    of: (route) => requests.filter((request) => request.route === route),
    script: undefined,
    tokens,
    get made() {
      return made;
    },
    get access() {
      const scope = 'read:sandbox write:sandbox exec:sandbox attach:sandbox admin:sandbox';
      return accessToken({ iss: url, sub: 'ada', scope, lifeSeconds: 900 });
    },
    get env() {
      return { AILSD_URL: url, AILSD_TOKEN: this.access };
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  const server = createServer((incoming, response) => {
    void serve(incoming, response).catch(() => response.destroy());
  });

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await received(incoming);
    requests.push(request);
    const scripted = await broker.script?.(request);
    const answer = scripted ?? (await ordinary(request));
    if (answer === 'silence') return;
    if (answer === 'cut') return void response.destroy();
    response.setHeader('date', new Date(now()).toUTCString());
    if ('lines' in answer) {
      response.writeHead(answer.status, { 'content-type': 'application/jsonl' });
      response.end(answer.lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      return;
    }
    const { status, json, headers = {} } = answer;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(json === undefined ? undefined : JSON.stringify(json));
  }

  async function ordinary(request: BrokerRequest): Promise<BrokerAnswer> {
    if (request.headers.authorization?.startsWith('Bearer ') !== true) {
      return envelope('UNAUTHENTICATED');
    }
    const { route, json } = request;
    const session = [...sessions.values()].find((one) => request.path.includes(one.id));
    switch (route) {
      case 'negotiateSession':
        return negotiate(request);
      case 'listSessions':
        return { status: 200, json: { items: [...sessions.values()].map(stateOf) } };
      case 'listSandboxes': {
        const thread = request.query.get('thread_id');
        const all = [...sessions.values()].filter(
          (one) => thread === null || one.thread === thread,
        );
        return { status: 200, json: { items: all.map(sandboxOf), next_cursor: null } };
      }
      case 'listGrants':
        return { status: 200, json: { items: grants } };
      case 'createGrant': {
        const base = { id: id('grant_'), session_id: session?.id, created_at: at(now()) };
        const grant = { ...json, ...base, created_by: 'ada' };
        grants.push(grant);
        return { status: 201, json: grant };
      }
      case 'createInvite': {
        const end = at(now() + 60_000);
        const place = `${url.replace('http', 'ws')}/${json.endpoint}`;
        return { status: 201, json: { token: id('inv'), expires_at: end, url: place } };
      }
      default:
        return onOne(request, session);
    }
  }

  function onOne(request: BrokerRequest, session: FakeSession | undefined): BrokerAnswer {
    const { route } = request;
    const bySandbox = [...sessions.values()].find((one) => request.path.includes(one.sandbox));
    if (request.path.startsWith('/v1/sandboxes/')) {
      if (bySandbox === undefined) return envelope('NOT_FOUND');
      if (route === 'deleteSandbox') {
        sessions.delete(bySandbox.thread);
        return { status: 204 };
      }
      const name = route === 'renameSandbox' ? { name: request.json.name } : {};
      return { status: 200, json: { ...sandboxOf(bySandbox), ...name } };
    }
    if (session === undefined) return envelope('SESSION_NOT_FOUND');
    switch (route) {
      case 'getSession':
        return { status: 200, json: stateOf(session) };
      case 'refreshSession':
      case 'refreshBindingToken':
        return { status: 200, json: fresh() };
      case 'heartbeatSession': {
        const lease = at(now() + idleTimeoutSeconds * 1000);
        const ids = { session_id: session.id, sandbox_id: session.sandbox };
        return { status: 200, json: { ...ids, state: 'active', lease_expires_at: lease } };
      }
      case 'releaseSession':
        sessions.delete(session.thread);
        return { status: 204 };
      case 'deleteGrant':
        return { status: 204 };
      default:
        return envelope('NOT_FOUND');
    }
  }

  async function negotiate({ json, headers }: BrokerRequest): Promise<BrokerAnswer> {
    const key = headers['idempotency-key'];
    if (typeof key === 'string') {
      const body = JSON.stringify(json);
      if ((keys.get(key) ?? body) !== body) return envelope('BINDING_CONFLICT', 'another body');
      keys.set(key, body);
    }
    let session = sessions.get(json.thread_id);
    if (session !== undefined && json.mode === 'create_only') return envelope('BINDING_CONFLICT');
    if (session === undefined) {
      if (json.mode === 'get' || json.mode === 'attach_only') return envelope('BINDING_NOT_FOUND');
      made += 1;
      const readyAt = performance.now() + startMs;
      session = { id: id('ssn_'), thread: json.thread_id, sandbox: id('sb_'), readyAt };
      sessions.set(session.thread, session);
    }
    const leftMs = session.readyAt - performance.now();
    if (leftMs > 0) {
      const waitMs = Number(/wait=(\d+)/.exec(String(headers['prefer']))?.[1] ?? 0) * 1000;
      await new Promise((resolve) => setTimeout(resolve, Math.min(leftMs, waitMs)));
      if (leftMs > waitMs) return { ...starting(), headers: { 'retry-after': '1' } };
    }
    const granted = json.requested_capabilities ?? ['fs:rw', 'shell'];
    const state = stateOf(session);
    const { token, expires_at } = fresh();
    const credentials = {
      token_type: 'Bearer',
      access_token: token,
      expires_at,
      granted_capabilities: granted,
    };
    const base = options.sandboxUrl ?? url;
    const place = { http_base_url: base, ws_base_url: base.replace('http', 'ws') };
    const refresh = { refresh_before: at(Date.parse(expires_at) - (lifeSeconds * 1000) / 3) };
    const ttl = json.ttl !== undefined && (json.ttl < 60 || json.ttl > 900);
    const adjusted = ttl ? [{ field: 'ttl', requested: json.ttl, granted: 60 }] : [];
    const answer = { ...state, token, expires_at, ...refresh, credentials, dataplane: place };
    return { status: 200, json: { ...answer, adjustments: adjusted } };
  }

  function starting() {
    const { json } = envelope('SANDBOX_STARTING') as { json: unknown };
    return { status: 423, json };
  }

  function fresh() {
    const token = `sandbox-token-${tokens.length}-${randomBytes(12).toString('hex')}`;
    tokens.push(token);
    const end = now() + lifeSeconds * 1000;
    return {
      token,
      expires_at: at(end),
      refresh_before: at(end - (lifeSeconds * 1000) / 3),
    };
  }

  function stateOf(session: FakeSession) {
    const { id: sessionId, thread, sandbox } = session;
    return {
      session_id: sessionId,
      thread_id: thread,
      sandbox: {
        id: sandbox,
        provider: 'local',
        http_base_url: options.sandboxUrl ?? `${url}/s/${sandbox}`,
        ws_base_url: (options.sandboxUrl ?? `${url}/s/${sandbox}`).replace('http', 'ws'),
      },
      binding: {
        id: sessionId,
        scope: { type: 'thread', id: thread },
        sandbox_id: sandbox,
        provider: 'local',
        state: 'active',
        lease_expires_at: at(now() + idleTimeoutSeconds * 1000),
      },
      policy: { idle_timeout_seconds: idleTimeoutSeconds, hard_ttl_seconds: 28_800 },
    };
  }

  function sandboxOf(session: FakeSession) {
    return {
      id: session.sandbox,
      provider: 'local',
      state: 'active',
      thread_id: session.thread,
      session_id: session.id,
      owner: 'ada',
      created_at: at(now()),
    };
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  url = `http://127.0.0.1:${(address satisfies AddressInfo).port}`;
  return broker;
}

async function received(incoming: IncomingMessage): Promise<BrokerRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://broker');
  const method = incoming.method ?? '';
  const matched = matchRoute(method, pathname);
  const json = text === '' ? undefined : JSON.parse(text);
  if (matched.kind === 'found') {
    const route = ROUTES[matched.name];
    const request = 'request' in route ? route.request : undefined;
    if (request !== undefined && 'shape' in request && json !== undefined) {
      const checked = parse(shape(request.shape), json, 'INVALID_REQUEST', '');
      if (!checked.ok) throw checked.error;
    }
  }
  const name = matched.kind === 'found' ? matched.name : pathname;
  return {
    method,
    path: pathname,
    query: searchParams,
    route: name,
    json,
    headers: incoming.headers,
  };
}
