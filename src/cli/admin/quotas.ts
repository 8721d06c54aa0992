/** `ailsd admin quota`: how often code may be run, by tenant and by agent. */
import { InvalidArgumentError } from 'commander';
import { Asker } from '../../client/sessions/asker.js';
import type { Document } from '../../client/sessions/call.js';
import { AilsdError } from '../../protocol/errors.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { fieldLines, shown } from '../sessions/document-text.js';
import { type PageOptions, pageOptions } from '../sessions/options.js';
import { printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';

interface SetOptions {
  readonly tenant?: string;
  readonly tenantDaily?: number;
  readonly agentHourly?: number;
}

export function adminQuotaCommand(context: Context): Command {
  return new Command('quota')
    .description('the caps on code execution: look at them, change them')
    .example('ailsd admin quota list', 'everybody’s, and those of tenants with their own')
    .addCommand(listCommand(context))
    .addCommand(setCommand(context));
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .description('list the caps')
    .example('ailsd admin quota list --json', 'for a script')
    .action((options: PageOptions) => runList(context, options));
}

function setCommand(context: Context): Command {
  return new Command('set')
    .option('--tenant <name>', 'of this tenant; by default of all that have no caps of their own')
    .option('--tenant-daily <calls>', 'calls of a tenant in a UTC day; 0 stops them', parseCap)
    .option('--agent-hourly <calls>', 'calls of an agent in a UTC hour; 0 stops them', parseCap)
    .description('change a cap, at once and everywhere; what is not named stays')
    .example('ailsd admin quota set --tenant acme --agent-hourly 500', 'let its agents do more')
    .example('ailsd admin quota set --tenant-daily 0', 'stop all code execution')
    .action((options: SetOptions) => runSet(context, options));
}

async function runList(context: Context, options: PageOptions): Promise<void> {
  const { callForPage } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal } = context;
  const asker = new Asker(world);
  const columns = [
    { heading: 'TENANT', cell: (item: Document) => shown(item, 'tenant') || '(all others)' },
    { heading: 'DAILY', cell: (item: Document) => shown(item, 'tenant_daily') },
    { heading: 'AGENT HOURLY', cell: (item: Document) => shown(item, 'agent_hourly') },
  ];
  await printPages(context, options, columns, ({ limit, cursor }) =>
    callForPage(asker, 'listQuotas', { parameters: {}, query: { limit, cursor }, signal }),
  );
}

async function runSet(context: Context, options: SetOptions): Promise<void> {
  const { tenant, tenantDaily, agentHourly } = options;
  if (tenantDaily === undefined && agentHourly === undefined)
    throw new AilsdError('USAGE', 'no cap is named', {
      hint: 'name one: --tenant-daily, --agent-hourly',
    });
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal, output, style } = context;
  const json = { tenant, tenant_daily: tenantDaily, agent_hourly: agentHourly };
  const quota = await callRoute(new Asker(world), 'setQuota', { parameters: {}, json, signal });
  output.result(quota, () => {
    const rows: [string, string][] = [
      ['tenant daily', shown(quota, 'tenant_daily')],
      ['agent hourly', shown(quota, 'agent_hourly')],
    ];
    const name = shown(quota, 'tenant') || 'all without caps of their own';
    return `${style.bold(name)}\n${fieldLines(rows, style)}`;
  });
}

function parseCap(value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('It must be a whole number from 0 up.');
}
