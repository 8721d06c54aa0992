/** `/sign-in` and `/sign-out`: who somebody is, by a local account or by the company's issuer. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Logger } from '../../base/logger.js';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import { type User, Users } from '../store/users.js';
import { hashPassword, verifyPassword } from '../tokens/password.js';
import { errorPage, expiredPage, signedOutPage, tooManyPage } from '../web/outcome-page.js';
import { signInPage } from '../web/sign-in-page.js';
import type { BrowserSessions, Visit } from './browser-session.js';
import type { GuessLimits } from './guess-limits.js';
import { type LocalLogin, parseLogin } from './local-login.js';
import type { Asking } from './pages.js';
import { readForm } from './read-form.js';
import { go, type Reply, show } from './reply.js';
import type { UpstreamLogin } from './upstream-login.js';

export interface SignInRouteParts {
  readonly db: Db;
  readonly sessions: BrowserSessions;
  readonly limits: GuessLimits;
  readonly upstream: UpstreamLogin | undefined;
  readonly logger: Logger;
}

export class SignInRoute {
  readonly #parts: SignInRouteParts;
  /** What an account that does not exist is compared with: it takes as long as one that does. */
  readonly #nobody: Promise<Secret> = hashPassword(
    new Secret(randomBytes(32).toString('base64url')),
  );

  constructor(parts: SignInRouteParts) {
    this.#parts = parts;
  }

  async get({ request, url }: Asking): Promise<Reply> {
    const next = safeNext(url.searchParams.get('next'));
    const visit = await this.#parts.sessions.find(request);
    if (visit?.user !== undefined) return go(next);
    return this.#form(visit, { next });
  }

  async post({ request, address }: Asking): Promise<Reply> {
    const genuine = await this.#genuineForm(request);
    if (genuine === undefined) return show(expiredPage());
    const { form, visit } = genuine;
    const next = safeNext(form.get('next'));
    const login = (form.get('login') ?? '').trim().slice(0, 128);
    const who = parseLogin(login);
    const guess = await this.#parts.limits.password(who, address);
    if (guess.kind === 'limited')
      return show(tooManyPage(guess.retryAfterSeconds, 'wrong passwords'));
    const user = await this.#authenticate(who, new Secret(form.get('password') ?? ''));
    if (user === undefined) {
      this.#parts.logger.info('a sign-in was refused', { address });
      return this.#form(visit, { next, login, notice: 'Account and password don’t match.' }, 401);
    }
    await guess.wasRight();
    return this.#signedIn(user, next, address, 'password');
  }

  /** Off to the company's issuer. */
  async postCompany({ request }: Asking): Promise<Reply> {
    const { upstream } = this.#parts;
    const genuine = await this.#genuineForm(request);
    if (genuine === undefined || upstream === undefined) return show(expiredPage());
    const { form, visit } = genuine;
    try {
      return go(await upstream.begin(visit.id, safeNext(form.get('next'))));
    } catch (error) {
      return this.#upstreamFailed(error);
    }
  }

  /** Back from it. */
  async getCallback({ request, url, address }: Asking): Promise<Reply> {
    const { upstream, sessions } = this.#parts;
    const visit = await sessions.find(request);
    if (upstream === undefined || visit === undefined) return show(expiredPage());
    try {
      const outcome = await upstream.finish(visit.id, url);
      switch (outcome.kind) {
        case 'user':
          return this.#signedIn(outcome.user, outcome.next, address, 'upstream');
        case 'unknown':
          return show(expiredPage());
        case 'refused':
          return show(errorPage(403, outcome.says));
      }
    } catch (error) {
      return this.#upstreamFailed(error);
    }
  }

  async postSignOut({ request }: Asking): Promise<Reply> {
    const genuine = await this.#genuineForm(request);
    if (genuine === undefined) return show(expiredPage());
    return show(signedOutPage(), [await this.#parts.sessions.signOut(genuine.visit)]);
  }

  async #genuineForm(
    request: IncomingMessage,
  ): Promise<{ form: URLSearchParams; visit: Visit } | undefined> {
    const { sessions } = this.#parts;
    const visit = await sessions.find(request);
    const form = await readForm(request);
    if (form === undefined || visit === undefined) return undefined;
    return (await sessions.isGenuine(request, visit, form.get('xsrf')))
      ? { form, visit }
      : undefined;
  }

  async #authenticate({ account }: LocalLogin, password: Secret): Promise<User | undefined> {
    const users = new Users(this.#parts.db);
    const user = account && (await users.findByName(account.tenant, account.name));
    const isRight = await verifyPassword(password, user?.passwordHash ?? (await this.#nobody));
    return isRight && user?.passwordHash !== undefined && user.disabledAtMs === undefined
      ? user
      : undefined;
  }

  async #signedIn(user: User, next: string, address: string, by: string): Promise<Reply> {
    await new Audit(this.#parts.db).record({
      event: 'sign_in',
      subject: user.id,
      tenant: user.tenant,
      details: { by, address },
    });
    return go(next, [await this.#parts.sessions.signIn(user)]);
  }

  async #form(
    known: Visit | undefined,
    view: { readonly next: string; readonly login?: string; readonly notice?: string },
    status = 200,
  ): Promise<Reply> {
    const { sessions, upstream } = this.#parts;
    const begun = known === undefined ? sessions.begin() : undefined;
    const visit = known ?? begun?.visit;
    if (visit === undefined) return show(expiredPage());
    const company =
      upstream === undefined
        ? undefined
        : { name: upstream.name, origin: await upstream.formTarget() };
    const xsrf = await sessions.xsrf(visit);
    const page = signInPage({ ...view, xsrf, upstream: company, hasLocalAccounts: true }, status);
    return show(page, begun === undefined ? undefined : [begun.cookie]);
  }

  #upstreamFailed(error: unknown): Reply {
    if (!(error instanceof AilsdError)) throw error;
    this.#parts.logger.warn('the company login failed', { error });
    return show(
      errorPage(502, 'The company login can’t be used at the moment. Try again in a minute.'),
    );
  }
}

/** Only pages of ours that need somebody signed in; anything else would be a way to send people elsewhere. */
function safeNext(next: string | null): string {
  return next !== null && next.length <= 2048 && NEXT.test(next) ? next : '/device';
}

const NEXT = /^\/(?:device(?:\?user_code=[A-Za-z0-9%._+-]*)?|consent\/[A-Za-z0-9_-]+)$/;
