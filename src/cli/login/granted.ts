/** Says what a login got: for people what they can't do with it, for programs the lists. */
import type { Credential } from '../../client/credentials/credential.js';
import type { CredentialStore } from '../../client/credentials/credential-store.js';
import { isScope, SCOPES } from '../../protocol/scopes.js';
import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { accountText } from './account-text.js';
import { timeText } from './time-text.js';

export interface Granted {
  readonly credential: Credential;
  readonly store: CredentialStore;
  readonly asked: readonly string[];
}

export function printGranted({ output, style }: Context, granted: Granted): void {
  const { credential, store, asked } = granted;
  const { issuer, account, name, tenant, clientId, scopes, threads } = credential;
  const { accessExpiresAtMs, loginExpiresAtMs } = credential;
  const missing = asked.filter((scope) => !scopes.includes(scope));
  const document = {
    server: issuer,
    account,
    name: name ?? null,
    tenant: tenant ?? null,
    client_id: clientId,
    scopes,
    not_granted: missing,
    threads: threads ?? null,
    expires_at: new Date(accessExpiresAtMs).toISOString(),
    login_expires_at:
      loginExpiresAtMs === undefined ? null : new Date(loginExpiresAtMs).toISOString(),
    renewable: credential.refreshToken !== undefined,
    source: null,
    stored: { kind: store.kind, place: store.place },
  };
  // A token that is renewed says nothing of how long one is logged in.
  const until = loginExpiresAtMs ?? (document.renewable ? undefined : accessExpiresAtMs);
  output.result(document, () => {
    const rows = [
      [style.dim('  scopes'), escapeText(scopes.join(' ')) || style.warn('none')],
      ...missing.map((scope) => [style.dim('  cannot'), style.warn(cannot(scope))]),
      ...(threads === undefined ? [] : [[style.dim('  only in'), escapeText(threads.join(' '))]]),
      ...(until === undefined ? [] : [[style.dim('  until'), timeText(until)]]),
      [style.dim('  stored'), escapeText(store.place)],
    ];
    const head = `Logged in to ${escapeText(issuer)} as ${accountText(account, name, style)}`;
    return `${head}\n${columns(rows)}`;
  });
}

/** What a login without the scope is not good for. */
export function cannot(scope: string): string {
  const meaning = isScope(scope) ? SCOPES[scope].split(';')[0] : undefined;
  return meaning === undefined ? escapeText(scope) : `${meaning} (${escapeText(scope)})`;
}
