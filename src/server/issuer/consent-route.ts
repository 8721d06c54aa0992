/** `/consent/…`: the one page between a browser login's request (authorization code) and its answer. */
import type { Interaction } from 'oidc-provider';
import type { Clock } from '../../base/clock.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import { consentPage } from '../web/consent-page.js';
import { expiredPage } from '../web/outcome-page.js';
import { offer, offerView, type Problem, readApproval, saveGrant } from './approval.js';
import type { BrowserSessions } from './browser-session.js';
import { isSignedIn } from './device-route.js';
import type { OidcLibrary } from './load-library.js';
import type { Asking } from './pages.js';
import { readForm } from './read-form.js';
import { go, type Reply, show } from './reply.js';
import { userAgentOf } from './request-origin.js';

export interface ConsentRouteParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly sessions: BrowserSessions;
  readonly resource: string;
  readonly library: OidcLibrary;
}

export class ConsentRoute {
  readonly #parts: ConsentRouteParts;

  constructor(parts: ConsentRouteParts) {
    this.#parts = parts;
  }

  async get(asking: Asking): Promise<Reply> {
    const interaction = await this.#interaction(asking);
    if (interaction === undefined) return show(expiredPage());
    return this.#show(asking, interaction);
  }

  async post(asking: Asking): Promise<Reply> {
    const { request, response, provider } = asking;
    const { sessions, db, clock, resource } = this.#parts;
    const interaction = await this.#interaction(asking);
    const visit = await sessions.find(request);
    const form = await readForm(request);
    if (interaction === undefined || form === undefined || !isSignedIn(visit))
      return show(expiredPage());
    if (!(await sessions.isGenuine(request, visit, form.get('xsrf')))) return show(expiredPage());
    const client = await provider.Client.find(String(interaction.params['client_id']));
    if (client === undefined) return show(expiredPage());
    const { user } = visit;
    const decision = form.get('decision');
    if (decision !== 'approve' && decision !== 'deny') return this.#show(asking, interaction);
    const record = { subject: user.id, tenant: user.tenant, clientId: client.clientId };
    if (decision === 'deny') {
      await new Audit(db).record({ ...record, event: 'login_denied' });
      const denial = { error: 'access_denied', error_description: 'the request was denied' };
      await provider.interactionFinished(request, response, denial);
      return { kind: 'sent' };
    }
    const offered = offer(String(interaction.params['scope'] ?? ''), client, user);
    const read = readApproval(form, offered);
    if (read.kind === 'problem') return this.#show(asking, interaction, { form, says: read.says });
    const { approval } = read;
    const grantId = await saveGrant({
      provider,
      resource,
      client,
      user,
      offered,
      approval,
      origin: { address: asking.address, userAgent: userAgentOf(request) },
      nowMs: clock.now(),
    });
    await new Audit(db).record({
      ...record,
      event: 'login_approved',
      details: {
        grant_id: grantId,
        scope: approval.scopes.join(' '),
        life_seconds: approval.lifeSeconds,
        threads: approval.threads,
      },
    });
    const ts = Math.floor((visit.signedInAtMs ?? clock.now()) / 1000);
    const result = { login: { accountId: user.id, remember: false, ts }, consent: { grantId } };
    await provider.interactionFinished(request, response, result);
    return { kind: 'sent' };
  }

  async #show(asking: Asking, interaction: Interaction, problem?: Problem): Promise<Reply> {
    const { request, provider, address, url } = asking;
    const { sessions, clock } = this.#parts;
    const visit = await sessions.find(request);
    if (!isSignedIn(visit)) return go(`/sign-in?${new URLSearchParams({ next: url.pathname })}`);
    const client = await provider.Client.find(String(interaction.params['client_id']));
    if (client === undefined) return show(expiredPage());
    const page = consentPage(
      {
        ...offerView(
          offer(String(interaction.params['scope'] ?? ''), client, visit.user),
          problem?.form,
        ),
        xsrf: await sessions.xsrf(visit),
        account: visit.user.name,
        action: url.pathname,
        client: { id: client.clientId, name: client.clientName ?? client.clientId },
        origin: { address, userAgent: userAgentOf(request), atMs: interaction.iat * 1000 },
        nowMs: clock.now(),
        notice: problem?.says,
        returnsTo: formTarget(String(interaction.params['redirect_uri'])),
      },
      problem === undefined ? 200 : 400,
    );
    return show(page);
  }

  /** `undefined` when it is over, or was begun in another browser. */
  async #interaction({
    request,
    response,
    provider,
    url,
  }: Asking): Promise<Interaction | undefined> {
    try {
      const interaction = await provider.interactionDetails(request, response);
      return url.pathname === `/consent/${interaction.uid}` ? interaction : undefined;
    } catch (error) {
      if (error instanceof this.#parts.library.errors.SessionNotFound) return undefined;
      throw error;
    }
  }
}

/** As a Content-Security-Policy source; programs also register schemes of their own. */
function formTarget(redirectUri: string): string | undefined {
  if (!URL.canParse(redirectUri)) return undefined;
  const { protocol, origin } = new URL(redirectUri);
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol;
}
