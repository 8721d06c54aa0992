/** The issuer (contract section 2): which requests are its own, and who answers each. */
import { webcrypto } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { Scope } from '../../base/scope.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { DEVICE_CODE_SECONDS } from '../../protocol/shapes/issuer.js';
import type { Db } from '../store/db.js';
import { homePage } from '../web/home-page.js';
import { errorPage } from '../web/outcome-page.js';
import { AccessTokens } from './access-tokens.js';
import { createAdapters } from './adapter.js';
import { gateAuthorize } from './authorize-gate.js';
import { BrowserSessions } from './browser-session.js';
import { ConsentRoute } from './consent-route.js';
import { DeviceRoute } from './device-route.js';
import { logInDirectly } from './direct-login.js';
import { GuessLimits } from './guess-limits.js';
import { KeyRing, type RingState } from './key-ring.js';
import { loadOidcLibrary } from './load-library.js';
import { answerPage, isHome, isPage } from './pages.js';
import { createProvider } from './provider.js';
import { isForPeople, LIBRARY_SESSION_COOKIE, ROUTES, resourceOf } from './provider-config.js';
import { RefreshAnswers } from './refresh-answers.js';
import { type Reply, send, sendTooMany, show } from './reply.js';
import { addressOf } from './request-origin.js';
import { SignInRoute } from './sign-in-route.js';
import { sweepForever } from './sweep.js';
import { TokenExchange } from './token-exchange.js';
import { isUnavailable, sendUnavailable } from './unavailable.js';
import { type UpstreamConfig, UpstreamLogin } from './upstream-login.js';
import { answerUserinfo } from './userinfo.js';
import { Workloads } from './workloads.js';

export interface IssuerParts {
  readonly db: Db;
  /** The public base URL: an origin, without a path. */
  readonly url: string;
  /** What access tokens are for. */
  readonly audience: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether `X-Forwarded-For` was settled by somebody who knows which proxies to believe. */
  readonly trustProxy: boolean;
  readonly deviceCodeSeconds?: number | undefined;
  readonly upstream?: UpstreamConfig | undefined;
}

export interface Issuer extends AsyncDisposable {
  /** Whether a request is the issuer's, by its path and what it takes. */
  owns(path: string, accept?: string): boolean;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** A login of the command line for a user who runs this server for themselves: its refresh token. */
  logIn(userId: string, lifeSeconds: number): Promise<Secret>;
}

export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  const { clock, logger } = parts;
  const scope = new Scope({
    clock,
    report: (name, error) => logger.error('background work of the issuer failed', { name, error }),
  });
  try {
    const { handle, logIn } = await createHandler(parts, scope);
    const close = () => scope[Symbol.asyncDispose]();
    return { owns, handle, logIn, [Symbol.asyncDispose]: close };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

async function createHandler(
  parts: IssuerParts,
  scope: Scope,
): Promise<Pick<Issuer, 'handle' | 'logIn'>> {
  const { db, clock, logger, audience, url: issuer } = parts;
  const url = new URL(issuer);
  if (url.origin !== issuer) {
    throw new AilsdError('CONFIG_INVALID', 'the public URL must be an origin, without a path');
  }
  const { signal } = scope;
  const library = await loadOidcLibrary();
  const keys = await KeyRing.open({ db, clock, logger });
  const resource = resourceOf(parts);
  const tokens = new AccessTokens({ db, keys, issuer, audience, logger, random });
  const answers = new RefreshAnswers(db, clock);
  const workloads = new Workloads({ db, clock, signal, ownIssuer: issuer });
  const exchange = new TokenExchange({ library, db, tokens, workloads, audience, resource });
  const adapter = createAdapters({ db, library, answers, logger });
  const sessions = new BrowserSessions({ db, keys, clock, origin: url.origin });
  const limits = new GuessLimits(db);
  const config = parts.upstream;
  const upstream = config && new UpstreamLogin({ db, clock, signal, url: issuer, config });
  const routes = {
    device: new DeviceRoute({ db, clock, sessions, limits, resource }),
    consent: new ConsentRoute({ db, clock, sessions, resource, library }),
    signIn: new SignInRoute({ db, sessions, limits, upstream, logger }),
  };
  const deviceCodeSeconds = parts.deviceCodeSeconds ?? DEVICE_CODE_SECONDS;
  // The library takes its keys once: other keys are another instance, and what is under way ends in the old one.
  const instanceFor = remembered((ring) => {
    const inside = { library, db, clock, url: issuer, audience, ring, tokens, adapter };
    const provider = createProvider(
      { ...inside, deviceCodeSeconds },
      { answers, exchange, logger },
    );
    return { provider, callback: provider.callback() };
  });
  instanceFor(await keys.current());
  scope.run('sweep', () => sweepForever({ db, clock, logger, keys, signal }));

  const logIn: Issuer['logIn'] = async (userId, lifeSeconds) => {
    const { provider } = instanceFor(await keys.current());
    return logInDirectly({ provider, db, resource, userId, lifeSeconds, nowMs: clock.now() });
  };
  const handle: Issuer['handle'] = async (request, response) => {
    const address = addressOf(request, parts.trustProxy);
    settleHeaders(request, url, address);
    const asked = new URL(request.url ?? '/', url);
    if (isHome(asked.pathname, request.headers.accept)) return send(response, home(request));
    try {
      const { provider, callback } = instanceFor(await keys.current());
      if (isPage(asked.pathname)) {
        const asking = { request, response, url: asked, address, provider };
        return send(response, await answerPage(routes, asking));
      }
      if (asked.pathname === ROUTES.userinfo) {
        return await answerUserinfo(request, response, { tokens, db });
      }
      if (asked.pathname === ROUTES.authorization) {
        const refused = await gateAuthorize({ request, response, url: asked, address }, limits);
        if (refused !== undefined) return send(response, refused);
      }
      if (asked.pathname === ROUTES.device_authorization && request.method === 'POST') {
        const login = await limits.deviceLogin(address);
        if (login.kind === 'limited') return sendTooMany(response, login.retryAfterSeconds);
      }
      await callback(request, response);
    } catch (error) {
      if (!isUnavailable(error) || response.headersSent) throw error;
      logger.error('the issuer failed', { error });
      const isPeoples = isPage(asked.pathname) || isForPeople(asked.pathname);
      sendUnavailable(request, response, isPeoples);
    }
  };
  return { handle, logIn };
}

function home({ method }: IncomingMessage): Reply {
  if (method === 'GET' || method === 'HEAD') return show(homePage());
  return show(errorPage(405, 'That is not how this page is used.'));
}

function random(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return webcrypto.getRandomValues(bytes);
}

interface Instance {
  readonly provider: Provider;
  readonly callback: ReturnType<Provider['callback']>;
}

/** Makes an instance when the keys have changed, and gives the last one again while they have not. */
function remembered(make: (ring: RingState) => Instance): (ring: RingState) => Instance {
  let last: { readonly version: string; readonly made: Instance } | undefined;
  return (ring) => {
    if (last?.version !== ring.version) last = { version: ring.version, made: make(ring) };
    return last.made;
  };
}

function owns(path: string, accept?: string): boolean {
  return OWN.has(path) || isPage(path) || isForPeople(path) || isHome(path, accept);
}

const OWN: ReadonlySet<string> = new Set([
  ...Object.values(ROUTES),
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
]);

/**
 * The library builds URLs from the request and believes forwarded headers: so there stands what is configured and what
 * we found, whatever was sent. Its own session is taken away: who is signed in is ours to say.
 */
function settleHeaders({ headers }: IncomingMessage, url: URL, address: string): void {
  headers.host = url.host;
  headers['x-forwarded-host'] = url.host;
  headers['x-forwarded-proto'] = url.protocol.slice(0, -1);
  headers['x-forwarded-for'] = address;
  const cookies = headers.cookie
    ?.split(';')
    .filter((pair) => !pair.trim().startsWith(LIBRARY_SESSION_COOKIE));
  if (cookies !== undefined) headers.cookie = cookies.join(';');
}
