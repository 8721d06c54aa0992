/** The pages' routes: which path and method leads where. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import { errorPage } from '../web/outcome-page.js';
import type { ConsentRoute } from './consent-route.js';
import type { DeviceRoute } from './device-route.js';
import { type Reply, show } from './reply.js';
import type { SignInRoute } from './sign-in-route.js';
import { takesHtml } from './unavailable.js';
import { CALLBACK_PATH } from './upstream-login.js';

/** One request for a page. */
export interface Asking {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly address: string;
  readonly provider: Provider;
}

export interface PageRoutes {
  readonly device: DeviceRoute;
  readonly consent: ConsentRoute;
  readonly signIn: SignInRoute;
}

const CONSENT = '/consent';

const PATHS: ReadonlySet<string> = new Set([
  '/device',
  '/sign-in',
  '/sign-in/company',
  CALLBACK_PATH,
  '/sign-out',
]);

/** The address alone, if a browser asks for it; programs that end up there get an answer for programs. */
export function isHome(path: string, accept: string | undefined): boolean {
  return path === '/' && takesHtml(accept);
}

export function isPage(path: string): boolean {
  return PATHS.has(path) || path.startsWith(`${CONSENT}/`);
}

/** Only POST has effects. */
export async function answerPage(routes: PageRoutes, asking: Asking): Promise<Reply> {
  const { device, consent, signIn } = routes;
  const { pathname } = asking.url;
  const path = PATHS.has(pathname) ? pathname : CONSENT;
  const method = asking.request.method === 'HEAD' ? 'GET' : asking.request.method;
  switch (`${method} ${path}`) {
    case 'GET /device':
      return device.get(asking);
    case 'POST /device':
      return device.post(asking);
    case 'GET /sign-in':
      return signIn.get(asking);
    case 'POST /sign-in':
      return signIn.post(asking);
    case 'POST /sign-in/company':
      return signIn.postCompany(asking);
    case `GET ${CALLBACK_PATH}`:
      return signIn.getCallback(asking);
    case 'POST /sign-out':
      return signIn.postSignOut(asking);
    case `GET ${CONSENT}`:
      return consent.get(asking);
    case `POST ${CONSENT}`:
      return consent.post(asking);
    default:
      return show(errorPage(405, 'That is not how this page is used.'));
  }
}
