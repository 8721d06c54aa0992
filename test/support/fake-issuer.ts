/** An issuer that says what a test tells it to: a real HTTP server, every answer scripted, every request kept. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface IssuerRequest {
  readonly method: string;
  readonly path: string;
  readonly form: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** By the clock the issuer was given. */
  readonly at: number;
}

/** What to answer: a document with status 200 (or another), any body at all, silence, or a cut connection. */
export type Answer =
  | { readonly json: unknown; readonly status?: number; readonly headers?: Record<string, string> }
  | { readonly body: string; readonly status: number; readonly type: string }
  | 'silence'
  | 'cut';

/** Answers a request, or leaves it to the issuer's ordinary behaviour. */
export type Script = (request: IssuerRequest) => Answer | undefined | Promise<Answer | undefined>;

export interface FakeIssuerOptions {
  readonly script?: Script;
  /** Milliseconds, for `at`; by default the process's monotonic clock. */
  readonly clock?: () => number;
  readonly account?: string;
  /** Life of an access token. */
  readonly lifeSeconds?: number;
  /** What is granted; by default what was asked for. */
  readonly scope?: string;
  readonly port?: number;
  /** Replaces endpoints in the discovery document. */
  readonly endpoints?: Record<string, string>;
  /** Keeps every answer of the token endpoint back this long. */
  readonly tokenDelayMs?: number;
}

export interface FakeIssuer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly IssuerRequest[];
  /** Requests to the token endpoint of one grant, by the last word of its name. */
  grants(type: string): IssuerRequest[];
  /** The refresh token that is good now. */
  currentRefreshToken(): string | undefined;
  /** Makes a login without anybody logging in. */
  issueRefreshToken(): string;
  script: Script | undefined;
  /** What becomes of an answer that was made: by default it is sent. Asked after everything it says has happened. */
  lose: ((request: IssuerRequest) => 'silence' | 'cut' | undefined) | undefined;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

export async function startFakeIssuer(options: FakeIssuerOptions = {}): Promise<FakeIssuer> {
  const clock = options.clock ?? (() => performance.now());
  const requests: IssuerRequest[] = [];
  const refreshTokens = new Map<string, 'good' | 'used'>();
  const accessTokens = new Map<string, string>();
  const codes = new Map<string, string>();
  const repeats = new Map<string, Answer>();
  let url = '';
  const issuer: FakeIssuer = {
    get url() {
      return url;
    },
    requests,
    grants: (type) =>
      requests.filter(({ path, form }) => path === '/token' && form['grant_type']?.endsWith(type)),
    currentRefreshToken: () => [...refreshTokens].find(([, state]) => state === 'good')?.[0],
    issueRefreshToken: () => {
      const token = randomBytes(32).toString('base64url');
      refreshTokens.set(token, 'good');
      return token;
    },
    script: options.script,
    lose: undefined,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  const server = createServer((incoming, response) => {
    void serve(incoming, response).catch(() => response.destroy());
  });

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await received(incoming, clock());
    requests.push(request);
    if (request.path === '/token' && options.tokenDelayMs !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, options.tokenDelayMs));
    }
    const answer = (await issuer.script?.(request)) ?? ordinary(request, incoming);
    send(response, issuer.lose?.(request) ?? answer);
  }

  function ordinary(request: IssuerRequest, incoming: IncomingMessage): Answer {
    switch (request.path) {
      case '/.well-known/openid-configuration':
        return { json: { ...discovery(url), ...options.endpoints } };
      case '/device/code':
        return { json: deviceAnswer(url) };
      case '/token':
        return again(request) ?? token(request.form);
      case '/authorize':
        return authorize(new URL(incoming.url ?? '', url).searchParams);
      case '/revoke':
        refreshTokens.delete(request.form['token'] ?? '');
        accessTokens.delete(request.form['token'] ?? '');
        return { json: {} };
      case '/v1/whoami':
        return whoami(request.authorization?.replace('Bearer ', '') ?? '');
      default:
        return { json: { error: 'not_found' }, status: 404 };
    }
  }

  /** Our issuer gives the answer to a refresh once more to who names it. */
  function again(request: IssuerRequest): Answer | undefined {
    const { idempotencyKey: key, form } = request;
    if (key === undefined || form['grant_type'] !== 'refresh_token') return undefined;
    const known = repeats.get(key) ?? token(form);
    repeats.set(key, known);
    return known;
  }

  function token(form: IssuerRequest['form']): Answer {
    const asked = form['scope'] ?? 'read:sandbox write:sandbox exec:sandbox attach:sandbox';
    switch (form['grant_type']) {
      case DEVICE_GRANT:
      case 'authorization_code':
        return { json: tokens(options.account ?? 'ada', asked, true) };
      case 'refresh_token': {
        const presented = form['refresh_token'] ?? '';
        if (refreshTokens.get(presented) === 'used') refreshTokens.clear();
        if (refreshTokens.get(presented) !== 'good') return refused('invalid_grant');
        refreshTokens.set(presented, 'used');
        return { json: tokens(options.account ?? 'ada', asked, true) };
      }
      case 'client_credentials':
        return { json: tokens(form['client_id'] ?? 'service', asked, false) };
      case 'urn:ietf:params:oauth:grant-type:token-exchange':
        return { json: tokens('workload', asked, false) };
      default:
        return refused('unsupported_grant_type');
    }
  }

  function tokens(sub: string, scope: string, refreshable: boolean): object {
    const granted = options.scope ?? scope;
    const life = options.lifeSeconds ?? 900;
    const access = accessToken({ iss: url, sub, scope: granted, lifeSeconds: life });
    accessTokens.set(access, granted);
    const refresh = `rt_${randomBytes(16).toString('hex')}`;
    if (refreshable) refreshTokens.set(refresh, 'good');
    return {
      access_token: access,
      token_type: 'Bearer',
      expires_in: life,
      scope: granted,
      ...(refreshable ? { refresh_token: refresh } : {}),
    };
  }

  /** Approves at once: the browser of a test follows the redirect. */
  function authorize(query: URLSearchParams): Answer {
    const code = `code_${codes.size}`;
    codes.set(code, query.get('code_challenge') ?? '');
    const back = new URL(query.get('redirect_uri') ?? '');
    back.search = new URLSearchParams({
      code,
      state: query.get('state') ?? '',
      iss: url,
    }).toString();
    return { json: {}, status: 303, headers: { location: back.href } };
  }

  function whoami(bearer: string): Answer {
    const scope = accessTokens.get(bearer);
    if (scope === undefined) {
      const error = { code: 'UNAUTHENTICATED', message: 'the token is not accepted here' };
      return { json: { error: { ...error, retryable: false } }, status: 401 };
    }
    return {
      json: {
        sub: options.account ?? 'ada',
        principal: 'user',
        tenant: 'default',
        client_id: 'ailsd-cli',
        scopes: scope.split(' '),
        expires_at: new Date(Date.now() + 900_000).toISOString(),
      },
    };
  }

  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${portOf(server.address())}`;
  return issuer;
}

export function refused(error: string, description?: string, status = 400): Answer {
  return { json: { error, error_description: description }, status };
}

/** Looks like an access token of ours; nobody on the client's side checks its signature. */
export function accessToken(claims: {
  readonly iss: string;
  readonly sub: string;
  readonly scope: string;
  readonly lifeSeconds: number;
}): string {
  const { lifeSeconds, ...named } = claims;
  const iat = Math.floor(Date.now() / 1000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jti = `tok_${randomBytes(8).toString('hex')}`;
  const payload = {
    ...named,
    client_id: 'ailsd-cli',
    aud: claims.iss,
    iat,
    exp: iat + lifeSeconds,
    jti,
  };
  return `${part({ alg: 'RS256', typ: 'at+jwt' })}.${part(payload)}.${randomBytes(32).toString('base64url')}`;
}

function discovery(url: string): object {
  return {
    issuer: url,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/jwks`,
    device_authorization_endpoint: `${url}/device/code`,
    authorization_endpoint: `${url}/authorize`,
    revocation_endpoint: `${url}/revoke`,
    userinfo_endpoint: `${url}/userinfo`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    authorization_response_iss_parameter_supported: true,
  };
}

export function deviceAnswer(url: string): object {
  return {
    device_code: `dc_${randomBytes(16).toString('hex')}`,
    user_code: 'WDJB-MJHT',
    verification_uri: `${url}/device`,
    verification_uri_complete: `${url}/device?user_code=WDJB-MJHT`,
    expires_in: 600,
    interval: 5,
  };
}

const MOST_BODY_BYTES = 1 << 20;

async function received(incoming: IncomingMessage, at: number): Promise<IssuerRequest> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    size += chunk.length;
    if (size > MOST_BODY_BYTES) throw new Error('too much');
    chunks.push(chunk);
  }
  const path = new URL(incoming.url ?? '', 'http://issuer').pathname;
  const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
  const key = incoming.headers['idempotency-key'];
  return {
    method: incoming.method ?? '',
    path,
    form,
    authorization: incoming.headers.authorization,
    idempotencyKey: typeof key === 'string' ? key : undefined,
    at,
  };
}

function send(response: ServerResponse, answer: Answer): void {
  if (answer === 'silence') return;
  if (answer === 'cut') {
    response.destroy();
    return;
  }
  const [type, body] =
    'json' in answer
      ? ['application/json', JSON.stringify(answer.json)]
      : [answer.type, answer.body];
  const headers = 'json' in answer ? answer.headers : undefined;
  response.writeHead(answer.status ?? 200, {
    'content-type': type,
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(body);
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string')
    throw new Error('the issuer is not listening');
  return address.port;
}
