/** `ailsd admin sandboxes`: everybody's sandboxes, and ending one at once. */
import { Option } from 'commander';
import { Asker } from '../../client/sessions/asker.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { shown } from '../sessions/document-text.js';
import { type PageOptions, pageOptions, STATES } from '../sessions/options.js';
import { type Column, printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';

interface ListOptions extends PageOptions {
  readonly tenant?: string;
  readonly owner?: string;
  readonly state?: string;
  readonly threadId?: string;
}

export function adminSandboxesCommand(context: Context): Command {
  return new Command('sandboxes')
    .description('everybody’s sandboxes: list them, end one')
    .example('ailsd admin sandboxes list', 'of all tenants')
    .addCommand(listCommand(context))
    .addCommand(killCommand(context));
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .option('--tenant <name>', 'only those of this tenant')
    .option('--owner <account>', 'only those of this account')
    .addOption(new Option('--state <state>', 'only those in this state').choices(STATES))
    .option('--thread-id <thread>', 'only those of this thread')
    .description('list everybody’s sandboxes')
    .example('ailsd admin sandboxes list --tenant acme --state active', 'what runs for one tenant')
    .example('ailsd admin sandboxes list --all --json', 'for a script')
    .action((options: ListOptions) => runList(context, options));
}

function killCommand(context: Context): Command {
  return new Command('kill')
    .argument('<sandbox>', 'its id')
    .description('end anybody’s sandbox at once, and everything in it')
    .example('ailsd admin sandboxes kill sb_01hx', 'it is in the audit')
    .action((sandbox: string) => runKill(context, sandbox));
}

const COLUMNS: readonly Column[] = [
  { heading: 'SANDBOX', cell: (item) => shown(item, 'id') },
  { heading: 'TENANT', cell: (item) => shown(item, 'tenant') },
  { heading: 'OWNER', cell: (item) => shown(item, 'owner') },
  { heading: 'STATE', cell: (item) => shown(item, 'state') },
  { heading: 'THREAD', cell: (item) => shown(item, 'thread_id') },
  { heading: 'LAST ACTIVE', cell: (item) => shown(item, 'last_active_at') },
];

async function runList(context: Context, options: ListOptions): Promise<void> {
  const { callForPage } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { tenant, owner, state, threadId } = options;
  const filters = { tenant, owner, state, thread_id: threadId };
  const { signal } = context;
  await printPages(context, options, COLUMNS, (page) =>
    callForPage(asker, 'listAllSandboxes', {
      parameters: {},
      query: { ...page, ...filters },
      signal,
    }),
  );
}

async function runKill(context: Context, sandbox: string): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const parameters = { sandbox_id: sandbox };
  await callRoute(new Asker(world), 'killSandbox', { parameters, signal });
  output.result({ id: sandbox, killed: true }, () => escapeText(`${sandbox} has ended`));
}
