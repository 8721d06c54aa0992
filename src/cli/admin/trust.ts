/** `ailsd admin trust`: CI systems whose identity tokens the server exchanges, changed while it runs. */
import { Asker } from '../../client/sessions/asker.js';
import { AilsdError } from '../../protocol/errors.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { scopeOption } from '../server/options.js';
import { shown } from '../sessions/document-text.js';
import { collectPairs, type PageOptions, pageOptions } from '../sessions/options.js';
import { type Column, printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';

interface AddOptions {
  readonly issuer?: string;
  readonly audience?: string;
  readonly claim?: Readonly<Record<string, string>>;
  readonly subject?: string;
  readonly tenant: string;
  readonly scope?: readonly string[];
}

export function adminTrustCommand(context: Context): Command {
  return new Command('trust')
    .description('CI systems whose jobs need no stored secret: list, add, remove')
    .example('ailsd admin trust list', 'who is let in, and as whom')
    .addCommand(listCommand(context))
    .addCommand(addCommand(context))
    .addCommand(removeCommand(context));
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .description('list the CI systems that are trusted')
    .example('ailsd admin trust list --json', 'for a script')
    .action((options: PageOptions) => runList(context, options));
}

function addCommand(context: Context): Command {
  const command = new Command('add')
    .option('--issuer <url>', 'who signs the jobs’ tokens')
    .option('--audience <text>', 'what those tokens must be for')
    .option('--claim <name=value>', 'what they must say; may be repeated', collectPairs)
    .option('--subject <name>', 'the service such a job becomes')
    .option('--tenant <name>', 'the tenant of that service', 'default');
  return scopeOption(command, 'what such a job may do')
    .description('let the jobs of a CI system in, by what their tokens say')
    .example(
      'ailsd admin trust add --issuer https://token.actions.githubusercontent.com --audience https://ailsd.example.com --claim repository=acme/app --subject ci-app --scope exec:sandbox',
      'the workflows of one repository',
    )
    .action((options: AddOptions) => runAdd(context, options));
}

function removeCommand(context: Context): Command {
  return new Command('rm')
    .argument('<id>', 'which one, by its id')
    .description('trust it no longer')
    .example('ailsd admin trust rm trust_1', 'its jobs get no new tokens')
    .action((id: string) => runRemove(context, id));
}

const COLUMNS: readonly Column[] = [
  { heading: 'ID', cell: (item) => shown(item, 'id') },
  { heading: 'ISSUER', cell: (item) => shown(item, 'issuer') },
  { heading: 'CLAIMS', cell: (item) => shown(item, 'claims') },
  { heading: 'BECOMES', cell: (item) => shown(item, 'subject') },
  { heading: 'TENANT', cell: (item) => shown(item, 'tenant') },
  { heading: 'SCOPES', cell: (item) => shown(item, 'scopes') },
];

async function runList(context: Context, options: PageOptions): Promise<void> {
  const { callForPage } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  await printPages(context, options, COLUMNS, (query) =>
    callForPage(asker, 'listWorkloadTrust', { parameters: {}, query: { ...query }, signal }),
  );
}

async function runAdd(context: Context, options: AddOptions): Promise<void> {
  const { issuer, audience, claim: claims, subject, tenant, scope: scopes } = options;
  const needed = { issuer, audience, claim: claims, subject, scope: scopes };
  for (const [name, value] of Object.entries(needed)) {
    if (value !== undefined) continue;
    throw new AilsdError('USAGE', `--${name} is missing`, {
      hint: 'see the example of `ailsd admin trust add --help`',
    });
  }
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const json = { issuer, audience, claims, subject, tenant, scopes };
  const trust = await callRoute(new Asker(world), 'addWorkloadTrust', {
    parameters: {},
    json,
    signal,
  });
  output.result(trust, () => shown(trust, 'id'));
}

async function runRemove(context: Context, id: string): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const parameters = { trust_id: id };
  await callRoute(new Asker(world), 'deleteWorkloadTrust', { parameters, signal });
  output.result({ id, removed: true }, () => escapeText(`${id} is not trusted any more`));
}
