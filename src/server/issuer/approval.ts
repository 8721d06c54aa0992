/** What an approver can give and gives: the scopes left after every limit, narrowed by hand, for a chosen time, in chosen threads. */
import { randomBytes } from 'node:crypto';
import type { Client, Grant, Provider } from 'oidc-provider';
import type { ThreadId } from '../../protocol/ids.js';
import { parseScopes, SCOPES, type Scope } from '../../protocol/scopes.js';
import type { User } from '../store/users.js';
import type { ConsentView } from '../web/consent-page.js';
import { SCOPE_CLAIMS } from './accounts.js';
import { allowedScopes } from './client-metadata.js';
import { DEFAULT_LIFE, LIVES, lifeSeconds } from './lives.js';
import { type LoginOrigin, noteOrigin } from './login-origin.js';
import { parsePins, pinGrant } from './pins.js';

/** Asked for, as far as client and user allow it. */
export interface Offer {
  readonly scopes: readonly Scope[];
  readonly withheld: readonly Scope[];
  readonly identity: readonly string[];
}

export interface Approval {
  readonly scopes: readonly Scope[];
  readonly lifeSeconds: number;
  readonly threads: readonly ThreadId[];
}

export function offer(asked: string, client: Client, user: User): Offer {
  const words = asked.split(' ');
  const scopes = parseScopes(asked);
  const isAllowed = (scope: Scope) =>
    allowedScopes(client).includes(scope) && user.scopes.includes(scope);
  return {
    scopes: scopes.filter(isAllowed),
    withheld: scopes.filter((scope) => !isAllowed(scope)),
    identity: Object.keys(SCOPE_CLAIMS).filter((scope) => words.includes(scope)),
  };
}

/** What is shown of an offer: all of it, or, when a form comes back to be corrected, what was chosen there. */
export function offerView(
  offered: Offer,
  form?: URLSearchParams,
): Pick<ConsentView, 'scopes' | 'withheld' | 'asksIdentity' | 'lives' | 'threads'> {
  const ticked: readonly string[] = form?.getAll('scope') ?? offered.scopes;
  const life = form?.get('ttl') ?? DEFAULT_LIFE;
  return {
    scopes: offered.scopes.map((value) => ({
      value,
      says: SCOPES[value],
      isChosen: ticked.includes(value),
    })),
    withheld: offered.withheld,
    asksIdentity: offered.identity.length > 0,
    lives: LIVES.map(({ value, says }) => ({ value, says, isChosen: value === life })),
    threads: form?.get('threads') ?? '',
  };
}

export type ReadApproval =
  | { readonly kind: 'approval'; readonly approval: Approval }
  | { readonly kind: 'problem'; readonly says: string };

/** A form that is shown again, and why. */
export interface Problem {
  readonly form: URLSearchParams;
  readonly says: string;
}

/** A form may narrow an offer, and never widens it: what was not offered is not given, whatever is posted. */
export function readApproval(form: URLSearchParams, offered: Offer): ReadApproval {
  const ticked = parseScopes(form.getAll('scope').join(' '));
  const threads = parsePins(form.get('threads') ?? '');
  const life = lifeSeconds(form.get('ttl') ?? DEFAULT_LIFE);
  if (threads === undefined) {
    return {
      kind: 'problem',
      says: 'Thread ids have letters, digits and . _ : - and there may be 64 of them.',
    };
  }
  if (life === undefined) return { kind: 'problem', says: 'Choose for how long.' };
  const scopes = offered.scopes.filter((scope) => ticked.includes(scope));
  return { kind: 'approval', approval: { scopes, lifeSeconds: life, threads } };
}

export interface GrantParts {
  readonly provider: Provider;
  readonly resource: string;
  readonly client: Client;
  readonly user: User;
  readonly offered: Offer;
  readonly approval: Approval;
  /** Where it was asked for from. */
  readonly origin: LoginOrigin;
  readonly nowMs: number;
}

/** Saves the grant that everything of this login will hang on. */
export async function saveGrant(parts: GrantParts): Promise<string> {
  const { provider, resource, offered, approval } = parts;
  const grant: Grant = new provider.Grant({
    clientId: parts.client.clientId,
    accountId: parts.user.id,
  });
  // Its owner sees and types it, so it begins with a word; the library's own may begin with a dash.
  grant.jti = `login_${randomBytes(16).toString('hex')}`;
  if (offered.identity.length > 0) grant.addOIDCScope(offered.identity.join(' '));
  if (approval.scopes.length > 0) grant.addResourceScope(resource, approval.scopes.join(' '));
  // Said no to, not overlooked: the library would ask again.
  const refused = [...offered.scopes, ...offered.withheld].filter(
    (scope) => !approval.scopes.includes(scope),
  );
  if (refused.length > 0) grant.rejectResourceScope(resource, refused.join(' '));
  pinGrant(grant, approval.threads);
  noteOrigin(grant, parts.origin);
  grant.exp = Math.floor(parts.nowMs / 1000) + approval.lifeSeconds;
  return grant.save();
}
