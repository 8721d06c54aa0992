/** `/device`: enter the code, compare it, approve or deny. A GET shows, a POST with proof of its page decides. */
import type { Clock } from '../../base/clock.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import type { StoredPayload } from '../store/oidc-payloads.js';
import type { User } from '../store/users.js';
import { codePage, unknownCodePage } from '../web/code-page.js';
import { consentPage } from '../web/consent-page.js';
import { deniedPage, donePage, expiredPage, tooManyPage } from '../web/outcome-page.js';
import { SCOPE_CLAIMS } from './accounts.js';
import { type Offer, offer, offerView, type Problem, readApproval, saveGrant } from './approval.js';
import type { BrowserSessions, Visit } from './browser-session.js';
import { DeviceCodes, normalizeUserCode, showUserCode } from './device-codes.js';
import { fieldsIn } from './fields.js';
import type { GuessLimits } from './guess-limits.js';
import type { Asking } from './pages.js';
import { readForm } from './read-form.js';
import { go, type Reply, show } from './reply.js';

export interface DeviceRouteParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly sessions: BrowserSessions;
  readonly limits: GuessLimits;
  readonly resource: string;
}

interface SignedIn extends Visit {
  readonly user: User;
}

export class DeviceRoute {
  readonly #parts: DeviceRouteParts;
  readonly #codes: DeviceCodes;

  constructor(parts: DeviceRouteParts) {
    this.#parts = parts;
    this.#codes = new DeviceCodes(parts.db);
  }

  async get(asking: Asking): Promise<Reply> {
    const visit = await this.#parts.sessions.find(asking.request);
    const typed = asking.url.searchParams.get('user_code') ?? '';
    // Before somebody is known no code is looked up: there would be nobody to count guesses for.
    if (!isSignedIn(visit)) return go(signInFirst(typed));
    if (typed === '') return show(codePage(await this.#view(visit)));
    return this.#withCode(asking, visit, typed, {
      undecided: (code) => this.#compare(asking, visit, code),
      decided: (code) => this.#decided(asking, code),
    });
  }

  async post(asking: Asking): Promise<Reply> {
    const { request } = asking;
    const visit = await this.#parts.sessions.find(request);
    const form = await readForm(request);
    if (form === undefined || !isSignedIn(visit)) return show(expiredPage());
    if (!(await this.#parts.sessions.isGenuine(request, visit, form.get('xsrf'))))
      return show(expiredPage());
    const decision = form.get('decision');
    return this.#withCode(asking, visit, form.get('user_code') ?? '', {
      undecided: (code) => {
        switch (decision) {
          case 'approve':
            return this.#approve(asking, visit, code, form);
          case 'deny':
            return this.#deny(visit, code);
          default:
            return this.#compare(asking, visit, code);
        }
      },
      // Only looked at again it tells what became of it; decided again it is as unknown as any.
      decided: async (code) => (decision === null ? goToResult(code) : this.#unknown(visit)),
    });
  }

  /**
   * A code that can't be decided is a wrong guess, whatever became of it, and gets one answer; but not for the account
   * that decided it, which comes back with it by reloading.
   */
  async #withCode(
    { address }: Asking,
    visit: SignedIn,
    typed: string,
    answer: Record<'undecided' | 'decided', (code: StoredPayload) => Promise<Reply>>,
  ): Promise<Reply> {
    const guess = await this.#parts.limits.userCode(visit.user.id, address);
    if (guess.kind === 'limited') return show(tooManyPage(guess.retryAfterSeconds, 'wrong codes'));
    const userCode = normalizeUserCode(typed);
    const code = await this.#codes.findUndecided(userCode);
    const own = code ?? (await this.#codes.findDecidedBy(userCode, visit.user.id));
    if (own === undefined) return this.#unknown(visit);
    await guess.wasRight();
    return code === undefined ? answer.decided(own) : answer.undecided(code);
  }

  async #compare(
    asking: Asking,
    visit: SignedIn,
    code: StoredPayload,
    problem?: Problem,
  ): Promise<Reply> {
    const { client, offered } = await this.#offer(asking, visit, code);
    if (client === undefined) return this.#unknown(visit);
    const page = consentPage(
      {
        ...(await this.#view(visit)),
        ...offerView(offered, problem?.form),
        action: '/device',
        client: { id: client.clientId, name: client.clientName ?? client.clientId },
        userCode: showUserCode(code.userCode ?? ''),
        origin: originOf(code),
        nowMs: this.#parts.clock.now(),
        notice: problem?.says,
      },
      problem === undefined ? 200 : 400,
    );
    return show(page);
  }

  async #approve(
    asking: Asking,
    visit: SignedIn,
    code: StoredPayload,
    form: URLSearchParams,
  ): Promise<Reply> {
    const { client, offered } = await this.#offer(asking, visit, code);
    if (client === undefined) return this.#unknown(visit);
    const read = readApproval(form, offered);
    if (read.kind === 'problem')
      return this.#compare(asking, visit, code, { form, says: read.says });
    const { db, resource, clock } = this.#parts;
    const { provider } = asking;
    const { user, signedInAtMs } = visit;
    const { approval } = read;
    const grantId = await saveGrant({
      provider,
      resource,
      client,
      user,
      offered,
      approval,
      origin: originOf(code),
      nowMs: clock.now(),
    });
    const isMine = await this.#codes.approve(code, grantId, {
      accountId: user.id,
      authTime: Math.floor((signedInAtMs ?? clock.now()) / 1000),
      scope: [...offered.identity, ...approval.scopes].join(' '),
      resource,
    });
    if (!isMine) {
      await provider.Grant.adapter.destroy(grantId);
      return this.#unknown(visit);
    }
    await new Audit(db).record({
      event: 'login_approved',
      subject: user.id,
      tenant: user.tenant,
      clientId: client.clientId,
      details: {
        grant_id: grantId,
        scope: approval.scopes.join(' '),
        life_seconds: approval.lifeSeconds,
        threads: approval.threads,
        ...originOf(code),
      },
    });
    return goToResult(code);
  }

  async #deny({ id, user }: SignedIn, code: StoredPayload): Promise<Reply> {
    if (!(await this.#codes.deny(code, user.id))) return this.#unknown({ id, user });
    await new Audit(this.#parts.db).record({
      event: 'login_denied',
      subject: user.id,
      tenant: user.tenant,
      clientId: clientIdOf(code),
      details: originOf(code),
    });
    return goToResult(code);
  }

  async #decided({ provider }: Asking, code: StoredPayload): Promise<Reply> {
    if (code.grantId === undefined) return show(deniedPage());
    const clientId = clientIdOf(code);
    const client = (await provider.Client.find(clientId))?.clientName ?? clientId;
    const scopes = String(code.payload['scope'] ?? '').split(' ');
    const granted = scopes.filter((scope) => scope !== '' && !(scope in SCOPE_CLAIMS));
    return show(donePage({ client, granted }));
  }

  async #offer({ provider }: Asking, { user }: SignedIn, code: StoredPayload) {
    const client = await provider.Client.find(clientIdOf(code));
    const { scope: asked } = fieldsIn(code.payload['params']);
    const nothing: Offer = { scopes: [], withheld: [], identity: [] };
    const offered =
      client === undefined ? nothing : offer(typeof asked === 'string' ? asked : '', client, user);
    return { client, offered };
  }

  async #unknown(visit: SignedIn): Promise<Reply> {
    return show(unknownCodePage(await this.#view(visit)));
  }

  async #view(visit: SignedIn) {
    return { xsrf: await this.#parts.sessions.xsrf(visit), account: visit.user.name };
  }
}

export function isSignedIn(visit: Visit | undefined): visit is SignedIn {
  return visit?.user !== undefined;
}

function signInFirst(userCode: string): string {
  const next =
    userCode === ''
      ? '/device'
      : `/device?${new URLSearchParams({ user_code: userCode.slice(0, 64) })}`;
  return `/sign-in?${new URLSearchParams({ next })}`;
}

/** By GET, so that reloading decides nothing. */
function goToResult({ userCode = '' }: StoredPayload): Reply {
  return go(`/device?${new URLSearchParams({ user_code: showUserCode(userCode) })}`);
}

function clientIdOf({ payload }: StoredPayload): string {
  return String(payload['clientId']);
}

/** As `deviceInfo` of the configuration wrote it when the login began. */
function originOf({ payload, createdAtMs }: StoredPayload) {
  const { address, userAgent, machineName, atMs } = fieldsIn(payload['deviceInfo']);
  return {
    address: typeof address === 'string' ? address : 'unknown',
    userAgent: typeof userAgent === 'string' ? userAgent : '',
    machineName: typeof machineName === 'string' ? machineName : undefined,
    atMs: typeof atMs === 'number' ? atMs : createdAtMs,
  };
}
