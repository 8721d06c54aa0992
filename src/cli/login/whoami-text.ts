/** What `whoami` tells a person: who, whether it works and until when, what it can't do, and where it is kept. */
import { LOGIN_SCOPES } from '../../protocol/scopes.js';
import { columns } from '../columns.js';
import type { WhoamiDocument } from '../commands/whoami.js';
import { escapeText } from '../escape.js';
import type { Style } from '../style.js';
import { accountText } from './account-text.js';
import { cannot } from './granted.js';
import { timeText } from './time-text.js';

export function whoamiText(document: WhoamiDocument, style: Style): string {
  const { state, account, server, tenant, principal, scopes, threads, expires_at } = document;
  const who = account === null ? 'somebody' : accountText(account, document.name, style);
  const paint = state === 'valid' ? style.good : style.bad;
  const until = expires_at === null ? '' : `, token until ${timeText(Date.parse(expires_at))}`;
  const rows: [string, string][] = [['state', `${paint(state)}${until}`]];
  const { login_expires_at: loginEnd } = document;
  if (loginEnd !== null) rows.push(['login', `until ${timeText(Date.parse(loginEnd))}`]);
  if (tenant !== null) rows.push(['tenant', escapeText(tenant)]);
  if (principal !== null && principal !== 'user') rows.push(['acts as', principal]);
  rows.push(['scopes', escapeText(scopes.join(' ')) || style.warn('none')]);
  if (state === 'valid') {
    const missing = LOGIN_SCOPES.filter((scope) => !scopes.includes(scope));
    for (const scope of missing) rows.push(['cannot', style.warn(cannot(scope))]);
  }
  if (threads !== null) rows.push(['only in', escapeText(threads.join(' '))]);
  if (document.source !== null) rows.push(['from', document.source]);
  if (document.stored !== null) rows.push(['stored', escapeText(document.stored.place)]);
  const table = columns(rows.map(([name, value]) => [style.dim(`  ${name}`), value]));
  return `${who} at ${escapeText(server)}\n${table}`;
}
