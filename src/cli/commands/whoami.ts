/** `ailsd whoami`: asks the server who we are to it, and says where the login comes from and whether it works. */
import type { AccessOrigin } from '../../client/auth/access.js';
import type { Whoami } from '../../client/auth/whoami.js';
import { LOGIN_SCOPES } from '../../protocol/scopes.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { createAuthWorld } from '../login/auth-world.js';
import { cannot } from '../login/granted.js';
import { timeText } from '../login/time-text.js';

export function whoamiCommand(context: Context): Command {
  return new Command('whoami')
    .description('print who you are to the server, and whether the login works')
    .example('ailsd whoami', 'account, scopes, and where the login is stored')
    .example('ailsd whoami --json', 'for a script: see state')
    .action(() => runWhoami(context));
}

async function runWhoami(context: Context): Promise<void> {
  using world = createAuthWorld(context);
  const { askWhoami } = await import('../../client/auth/whoami.js');
  const found = await askWhoami(world, context.signal);
  const document = toDocument(found, world.url());
  // Of nobody there is nothing to tell a person but what the error says.
  context.output.result(document, () => (found.state === 'none' ? '' : toText(document, context)));
  // The document says what is known; the error says what to do, and is what the process ends with.
  if (found.state !== 'valid') throw found.failure;
}

type Document = ReturnType<typeof toDocument>;

function toDocument(found: Whoami, server: string) {
  const { state, access } = found;
  const answer = found.state === 'valid' ? found.answer : undefined;
  const origin = access?.origin;
  const expiresAtMs = access?.expiresAtMs;
  return {
    state,
    server,
    account: answer?.sub ?? (origin?.kind === 'stored' ? origin.account : null),
    principal: answer?.principal ?? null,
    tenant: answer?.tenant ?? (origin?.kind === 'stored' ? (origin.tenant ?? null) : null),
    client_id: answer?.client_id ?? null,
    scopes: answer?.scopes ?? access?.scopes ?? [],
    threads: answer?.threads ?? null,
    act: answer?.act ?? null,
    expires_at:
      answer?.expires_at ??
      (expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString()),
    source: origin?.kind === 'variable' ? origin.variable : null,
    stored: storedOf(origin),
  };
}

function storedOf(origin: AccessOrigin | undefined) {
  return origin?.kind === 'stored' ? { kind: origin.store, place: origin.place } : null;
}

function toText(document: Document, { style }: Context): string {
  const { state, account, server, tenant, principal, scopes, threads, expires_at } = document;
  const who = account === null ? 'somebody' : style.bold(escapeText(account));
  const paint = state === 'valid' ? style.good : style.bad;
  const until = expires_at === null ? '' : `, token until ${timeText(Date.parse(expires_at))}`;
  const rows: [string, string][] = [['state', `${paint(state)}${until}`]];
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
