/** `session list|info|heartbeat|release`. */
import { Asker } from '../../client/sessions/asker.js';
import { callForPage, callRoute, type Document, isDocument } from '../../client/sessions/call.js';
import { forgetSession, onSession } from '../../client/sessions/remembered.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { fieldLines, shown } from './document-text.js';
import type { PageOptions } from './options.js';
import { printPages } from './pages.js';
import { createSessionWorld } from './session-world.js';
import { threadOf } from './thread-argument.js';

export async function runSessionList(context: Context, options: PageOptions): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const columns = [
    { heading: 'THREAD', cell: (item: Document) => shown(item, 'thread_id') },
    { heading: 'STATE', cell: (item: Document) => shown(part(item, 'binding'), 'state') },
    { heading: 'SANDBOX', cell: (item: Document) => shown(part(item, 'sandbox'), 'id') },
    { heading: 'PROVIDER', cell: (item: Document) => shown(part(item, 'sandbox'), 'provider') },
    {
      heading: 'KEPT UNTIL',
      cell: (item: Document) => shown(part(item, 'binding'), 'lease_expires_at'),
    },
    { heading: 'SESSION', cell: (item: Document) => shown(item, 'session_id') },
  ];
  await printPages(context, options, columns, (query) =>
    callForPage(asker, 'listSessions', {
      parameters: {},
      query: { ...query },
      signal: context.signal,
    }),
  );
}

export async function runSessionInfo(context: Context, named: string | undefined): Promise<void> {
  using world = createSessionWorld(context);
  const { signal, output, style } = context;
  const thread = threadOf(context, named);
  const asker = new Asker(world);
  const session = await onSession(
    world,
    asker,
    thread,
    (id) => callRoute(asker, 'getSession', { parameters: { session_id: id }, signal }),
    signal,
  );
  output.result(session, () => {
    const sandbox = part(session, 'sandbox');
    const binding = part(session, 'binding');
    const policy = part(session, 'policy');
    const rows: [string, string][] = [
      ['sandbox', `${shown(sandbox, 'id')} at ${shown(sandbox, 'provider')}`],
      ['session', shown(session, 'session_id')],
      ['http', shown(sandbox, 'http_base_url')],
      ['ws', shown(sandbox, 'ws_base_url')],
      ['lease', `kept until ${shown(binding, 'lease_expires_at')}`],
      ['idle after', `${shown(policy, 'idle_timeout_seconds')} s without use`],
      ['ends after', `${shown(policy, 'hard_ttl_seconds')} s in any case`],
    ];
    const head = `${style.bold(shown(session, 'thread_id'))} is ${shown(binding, 'state')}`;
    return `${head}\n${fieldLines(rows, style)}`;
  });
}

export async function runHeartbeat(context: Context, named: string | undefined): Promise<void> {
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const thread = threadOf(context, named);
  const asker = new Asker(world);
  const lease = await onSession(
    world,
    asker,
    thread,
    (id) =>
      callRoute(asker, 'heartbeatSession', { parameters: { session_id: id }, json: {}, signal }),
    signal,
  );
  output.result(
    lease,
    () => `${escapeText(thread)} is kept until ${shown(lease, 'lease_expires_at')}`,
  );
}

export async function runRelease(context: Context, named: string | undefined): Promise<void> {
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const thread = threadOf(context, named);
  const asker = new Asker(world);
  const sessionId = await onSession(
    world,
    asker,
    thread,
    async (id) => {
      await callRoute(asker, 'releaseSession', { parameters: { session_id: id }, signal });
      return id;
    },
    signal,
  );
  await forgetSession(world, asker, thread, signal);
  output.result({ thread_id: thread, session_id: sessionId, released: true }, () =>
    escapeText(`${thread} is released`),
  );
}

function part(document: Document, key: string): Document {
  const value = document[key];
  return isDocument(value) ? value : {};
}
