/** `share add|list|rm`: grants on a thread's session. */
import { Asker } from '../../client/sessions/asker.js';
import { callForPage, callRoute, type Document, isDocument } from '../../client/sessions/call.js';
import { onSession } from '../../client/sessions/remembered.js';
import type { ShareAddOptions } from '../commands/share.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { shown } from './document-text.js';
import type { PageOptions } from './options.js';
import { type Column, printPages } from './pages.js';
import { createSessionWorld } from './session-world.js';
import { threadOf } from './thread-argument.js';

/** Who says nothing lets others look, and no more. */
const OBSERVER = ['fs:ro', 'shell:ro'] as const;

export async function runShareAdd(
  context: Context,
  account: string,
  named: string | undefined,
  { cap = OBSERVER, agent = false, for: seconds }: ShareAddOptions,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output } = context;
  const thread = threadOf(context, named);
  const ends = seconds === undefined ? undefined : world.clock.now() + seconds * 1000;
  const json = {
    grantee: { type: agent ? 'agent' : 'user', id: account },
    capabilities: cap,
    expires_at: ends === undefined ? undefined : new Date(ends).toISOString(),
  };
  const grant = await onSession(
    world,
    asker,
    thread,
    (id) => callRoute(asker, 'createGrant', { parameters: { session_id: id }, json, signal }),
    signal,
  );
  output.result(grant, () => {
    const until = shown(grant, 'expires_at');
    const end = until === '' ? '' : `, until ${until}`;
    const what = `${shown(grant, 'capabilities')}${end}`;
    return `${granteeText(grant)} has ${what} in ${escapeText(thread)} (${shown(grant, 'id')})`;
  });
}

const COLUMNS: readonly Column[] = [
  { heading: 'GRANT', cell: (item) => shown(item, 'id') },
  { heading: 'WHO', cell: (item) => granteeText(item) },
  { heading: 'MAY', cell: (item) => shown(item, 'capabilities') },
  { heading: 'UNTIL', cell: (item) => shown(item, 'expires_at') },
  { heading: 'BY', cell: (item) => shown(item, 'created_by') },
];

export async function runShareList(
  context: Context,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  const thread = threadOf(context, named);
  await printPages(context, options, COLUMNS, (query) =>
    onSession(
      world,
      asker,
      thread,
      (id) =>
        callForPage(asker, 'listGrants', {
          parameters: { session_id: id },
          query: { ...query },
          signal,
        }),
      signal,
    ),
  );
}

export async function runShareRemove(
  context: Context,
  grant: string,
  named: string | undefined,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output } = context;
  const thread = threadOf(context, named);
  await onSession(
    world,
    asker,
    thread,
    (id) =>
      callRoute(asker, 'deleteGrant', { parameters: { session_id: id, grant_id: grant }, signal }),
    signal,
  );
  output.result({ id: grant, removed: true }, () => escapeText(`${grant} is taken back`));
}

function granteeText(grant: Document): string {
  const { grantee } = grant;
  if (!isDocument(grantee)) return '';
  return `${shown(grantee, 'type')} ${shown(grantee, 'id')}`;
}
