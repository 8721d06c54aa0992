/** `sandbox list|info|start|stop|rm|rename`. */
import { Asker } from '../../client/sessions/asker.js';
import { callForPage, callRoute, type Document } from '../../client/sessions/call.js';
import type { SandboxListOptions } from '../commands/sandbox.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import type { Style } from '../style.js';
import { fieldLines, shown } from './document-text.js';
import { onSandbox } from './find-sandbox.js';
import { type Column, printPages } from './pages.js';
import { createSessionWorld } from './session-world.js';
import { whileStarting } from './while-starting.js';

export const SANDBOX_COLUMNS: readonly Column[] = [
  { heading: 'SANDBOX', cell: (item) => shown(item, 'id') },
  { heading: 'NAME', cell: (item) => shown(item, 'name') },
  { heading: 'STATE', cell: (item) => shown(item, 'state') },
  { heading: 'THREAD', cell: (item) => shown(item, 'thread_id') },
  { heading: 'LAST ACTIVE', cell: (item) => shown(item, 'last_active_at') },
  { heading: 'ENDS', cell: (item) => shown(item, 'expires_at') },
];

export async function runSandboxList(context: Context, options: SandboxListOptions): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  const filters = { state: options.state, thread_id: options.threadId };
  await printPages(context, options, SANDBOX_COLUMNS, (page) =>
    callForPage(asker, 'listSandboxes', { parameters: {}, query: { ...page, ...filters }, signal }),
  );
}

export async function runSandboxInfo(context: Context, named: string | undefined): Promise<void> {
  await printAfter(context, named, (asker, id) =>
    callRoute(asker, 'getSandbox', { parameters: { sandbox_id: id }, signal: context.signal }),
  );
}

export async function runSandboxStart(context: Context, named: string | undefined): Promise<void> {
  await whileStarting(context, 'waiting for the sandbox to start', () =>
    printAfter(context, named, (asker, id) =>
      callRoute(asker, 'startSandbox', {
        parameters: { sandbox_id: id },
        json: {},
        signal: context.signal,
      }),
    ),
  );
}

export async function runSandboxStop(context: Context, named: string | undefined): Promise<void> {
  await printAfter(context, named, (asker, id) =>
    callRoute(asker, 'stopSandbox', {
      parameters: { sandbox_id: id },
      json: {},
      signal: context.signal,
    }),
  );
}

export async function runSandboxRename(
  context: Context,
  named: string,
  name: string,
): Promise<void> {
  await printAfter(context, named, (asker, id) =>
    callRoute(asker, 'renameSandbox', {
      parameters: { sandbox_id: id },
      json: { name },
      signal: context.signal,
    }),
  );
}

export async function runSandboxRemove(context: Context, named: string | undefined): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output } = context;
  const sandboxId = await onSandbox(context, world, asker, named, async (id) => {
    await callRoute(asker, 'deleteSandbox', { parameters: { sandbox_id: id }, signal });
    return id;
  });
  output.result({ id: sandboxId, removed: true }, () => escapeText(`${sandboxId} has ended`));
}

async function printAfter(
  context: Context,
  named: string | undefined,
  work: (asker: Asker, sandboxId: string) => Promise<Document>,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const sandbox = await onSandbox(context, world, asker, named, (id) => work(asker, id));
  context.output.result(sandbox, () => sandboxText(sandbox, context.style));
}

function sandboxText(sandbox: Document, style: Style): string {
  const name = shown(sandbox, 'name');
  const rows: [string, string][] = [
    ['name', name],
    ['thread', shown(sandbox, 'thread_id')],
    ['session', shown(sandbox, 'session_id')],
    ['provider', shown(sandbox, 'provider')],
    ['template', shown(sandbox, 'template')],
    ['owner', shown(sandbox, 'owner')],
    ['tenant', shown(sandbox, 'tenant')],
    ['created', shown(sandbox, 'created_at')],
    ['last active', shown(sandbox, 'last_active_at')],
    ['kept until', shown(sandbox, 'lease_expires_at')],
    ['ends', shown(sandbox, 'expires_at')],
  ];
  const state = shown(sandbox, 'state');
  const paint = state === 'active' ? style.good : style.warn;
  return `${style.bold(shown(sandbox, 'id'))} is ${paint(state)}\n${fieldLines(rows, style)}`;
}
