/** Logging in with a browser on this machine: authorization code with PKCE, answered to a listener on loopback (RFC 8252). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';
import { BoundedQueue } from '../../base/bounded-queue.js';
import { AilsdError } from '../../protocol/errors.js';
import { type Refusal, refusalText } from './grant-outcome.js';
import type { Issuer } from './issuer.js';
import type { Tokens } from './tokens.js';
import { webPage } from './web-page.js';

export interface WebLogin extends AsyncDisposable {
  /**
   * What to open, in a browser on this machine: a page of ours that leads to the issuer once. Other users can see what a
   * browser was started with, and the issuer's address holds the state of the login.
   */
  readonly url: string;
  /** Waits for the browser to come back. LOGIN_DENIED, LOGIN_EXPIRED or LOGIN_FAILED where it brings no login. */
  finished(options?: WebLoginOptions): Promise<Tokens>;
}

export interface WebLoginOptions {
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The browser brought a code that the issuer did not give to this login; the right one is still waited for. */
  readonly wrongCode?: (() => void) | undefined;
}

const TIMEOUT_MS = 300_000;
const CALLBACK_PATH = '/callback';
const START_PATH = '/start/';

/** Listens until it is disposed of. */
export async function startWebLogin(issuer: Issuer, scopes: readonly string[]): Promise<WebLogin> {
  if (issuer.metadata.authorization_endpoint === undefined) {
    throw new AilsdError('LOGIN_FAILED', 'the server offers no login by redirect', {
      hint: 'run `ailsd login` without --web',
    });
  }
  const verifier = randomPKCECodeVerifier();
  const state = randomState();
  const challenge = await calculatePKCECodeChallenge(verifier);
  const listener = await listenFor(
    (query) => isFrom(issuer, query) && query.get('state') === state,
  );
  const { href } = buildAuthorizationUrl(issuer.configuration(), {
    redirect_uri: listener.url,
    scope: scopes.join(' '),
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const checks = { pkceCodeVerifier: verifier, expectedState: state };
  return {
    url: listener.leadTo(href),
    finished: async ({ timeoutMs = TIMEOUT_MS, signal, wrongCode } = {}) => {
      const deadline = issuer.clock.monotonic() + timeoutMs;
      for (let wrong = 0; ; wrong += 1) {
        const callback = await listener.answered(issuer, deadline, signal);
        const outcome = await issuer.outcome({ scopes, signal }, (configuration) =>
          authorizationCodeGrant(configuration, callback.url, checks),
        );
        await callback.finish(outcome.kind === 'granted');
        if (outcome.kind === 'granted') return outcome.tokens;
        if (outcome.kind === 'failed') throw outcome.failure;
        // Whoever has seen the state can send any code here: that must not cost the login its own.
        if (outcome.error !== 'invalid_grant') throw endingOf(outcome);
        if (wrong + 1 === MOST_WRONG_CODES) throw tooManyWrong();
        wrongCode?.();
      }
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

const MOST_WRONG_CODES = 5;

function tooManyWrong(): AilsdError {
  return new AilsdError(
    'LOGIN_FAILED',
    `the browser brought ${MOST_WRONG_CODES} codes that the server did not give to this login`,
    {
      details: { oauth_error: 'invalid_grant' },
      hint: 'run it again; if it happens again, something on this machine interferes: use `ailsd login` without --web',
    },
  );
}

/** RFC 9207: an issuer that says it names itself does so in each redirect. */
function isFrom({ metadata }: Issuer, query: URLSearchParams): boolean {
  const isNamed = metadata.authorization_response_iss_parameter_supported === true;
  return !isNamed || query.get('iss') === metadata.issuer;
}

function endingOf(refusal: Refusal): AilsdError {
  if (refusal.error === 'access_denied') {
    return new AilsdError('LOGIN_DENIED', 'the login was denied');
  }
  return new AilsdError('LOGIN_FAILED', `the server refused the login (${refusalText(refusal)})`, {
    details: { oauth_error: refusal.error },
  });
}

interface Callback {
  readonly url: URL;
  /** Tells the browser how it went; the answer has left when it resolves. */
  finish(approved: boolean): Promise<void>;
}

interface Listener extends AsyncDisposable {
  readonly url: string;
  /** An address here that leads there, for the first who asks for it. */
  leadTo(target: string): string;
  /** The next redirect that came, each code once. */
  answered(issuer: Issuer, deadline: number, signal?: AbortSignal): Promise<Callback>;
}

/** Takes redirects that are ours, a few of them; whatever else comes to the port is turned away and changes nothing. */
async function listenFor(isOurs: (query: URLSearchParams) => boolean): Promise<Listener> {
  const arrived = new BoundedQueue<Callback>({
    maxItems: MOST_WRONG_CODES,
    maxWeight: MOST_WRONG_CODES,
    weigh: () => 1,
  });
  const arrivals = arrived[Symbol.asyncIterator]();
  const codes = new Set<string | null>();
  let origin = '';
  let start: { readonly path: string; readonly target: string } | undefined;
  const server = createServer((request, response) => {
    const url = addressOf(request, origin);
    if (start !== undefined && url?.pathname === start.path) {
      const { target } = start;
      start = undefined;
      answer(response, 303, webPage('leaving'), { location: target });
      return;
    }
    const code = url?.searchParams.get('code') ?? null;
    const isCallback = url?.pathname === CALLBACK_PATH && isOurs(url.searchParams);
    const isNew = !codes.has(code) && codes.size < MOST_WRONG_CODES;
    if (!isCallback || !isNew) {
      answer(response, 404, webPage('unknown'));
      return;
    }
    codes.add(code);
    arrived.push({ url, finish: (approved) => finish(response, approved) });
  });
  server.requestTimeout = REQUEST_MS;
  server.maxHeadersCount = MOST_HEADERS;
  origin = `http://127.0.0.1:${await listen(server)}`;
  return {
    url: `${origin}${CALLBACK_PATH}`,
    leadTo: (target) => {
      start = { path: `${START_PATH}${randomState()}`, target };
      return `${origin}${start.path}`;
    },
    answered: (issuer, deadline, signal) => within(arrivals, issuer, deadline, signal),
    [Symbol.asyncDispose]: async () => {
      arrived.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const REQUEST_MS = 10_000;
const MOST_HEADERS = 100;

/** What was asked for, if the Host is ours and not some name that leads here. */
function addressOf(request: IncomingMessage, origin: string): URL | undefined {
  if (request.method !== 'GET' || `http://${request.headers.host}` !== origin) return undefined;
  const target = `${origin}${request.url ?? ''}`;
  return URL.canParse(target) ? new URL(target) : undefined;
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new AilsdError('LOGIN_FAILED', 'no port can be opened on this machine for the browser', {
          cause: error,
          hint: 'run `ailsd login` without --web',
        }),
      ),
    );
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(address === null || typeof address === 'string' ? 0 : address.port);
    });
  });
}

async function within(
  arrivals: AsyncIterator<Callback>,
  { clock }: Issuer,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<Callback> {
  const timer = new AbortController();
  const stop = signal === undefined ? timer.signal : AbortSignal.any([timer.signal, signal]);
  try {
    const callback = await Promise.race([
      arrivals.next().then(({ value }) => value),
      clock.sleep(Math.max(0, deadline - clock.monotonic()), stop).then(() => undefined),
    ]);
    if (callback !== undefined) return callback;
  } finally {
    timer.abort();
  }
  throw new AilsdError('LOGIN_EXPIRED', 'nobody finished the login in the browser in time');
}

function finish(response: ServerResponse, approved: boolean): Promise<void> {
  return new Promise((resolve) => {
    // A browser that has gone does not hear it.
    if (response.closed) return resolve();
    response.once('close', resolve);
    answer(response, approved ? 200 : 400, webPage(approved ? 'done' : 'failed'));
  });
}

function answer(
  response: ServerResponse,
  status: number,
  page: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    ...headers,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(page);
}
