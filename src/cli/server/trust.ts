/** `ailsd server trust`: CI systems whose identity tokens are exchanged for ours. */
import { InvalidArgumentError } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import {
  type FolderOptions,
  folderOption,
  itemsOf,
  operate,
  scopeOption,
  shown,
} from './options.js';

interface AddOptions extends FolderOptions {
  readonly issuer?: string;
  readonly audience?: string;
  readonly claim?: Readonly<Record<string, string>>;
  readonly subject?: string;
  readonly tenant?: string;
  readonly scope?: readonly string[];
}

export function trustCommand(context: Context): Command {
  return new Command('trust')
    .description('CI systems whose jobs need no stored secret: add, list, remove')
    .example('ailsd server trust list --dir ./data', 'who is let in, and as whom')
    .addCommand(addCommand(context))
    .addCommand(listCommand(context))
    .addCommand(removeCommand(context));
}

function addCommand(context: Context): Command {
  const command = folderOption(new Command('add'))
    .option('--issuer <url>', 'who signs the jobs’ tokens')
    .option('--audience <text>', 'what those tokens must be for')
    .option('--claim <name=value>', 'what they must say; may be repeated', collectClaims)
    .option('--subject <name>', 'the service such a job becomes')
    .option('--tenant <name>', 'the tenant of that service');
  return scopeOption(command, 'what such a job may do')
    .description('let the jobs of a CI system in, by what their tokens say')
    .example(
      'ailsd server trust add --issuer https://token.actions.githubusercontent.com --audience https://ailsd.example.com --claim repository=acme/app --subject ci-app --scope exec:sandbox --dir ./data',
      'the workflows of one repository',
    )
    .action((options: AddOptions) => runAdd(context, options));
}

function listCommand(context: Context): Command {
  return folderOption(new Command('list'))
    .description('list the CI systems that are trusted')
    .example('ailsd server trust list --dir ./data --json', 'for a script')
    .action((options: FolderOptions) => runList(context, options));
}

function removeCommand(context: Context): Command {
  return folderOption(new Command('rm').argument('<id>', 'which one, by its id'))
    .description('trust it no longer')
    .example('ailsd server trust rm trust_1 --dir ./data', 'its jobs get no new tokens')
    .action((id: string, options: FolderOptions) => runRemove(context, id, options));
}

async function runAdd(context: Context, options: AddOptions): Promise<void> {
  const { issuer, audience, claim: claims, subject, tenant, scope: scopes } = options;
  const needed = { issuer, audience, claim: claims, subject, scope: scopes };
  for (const [name, value] of Object.entries(needed)) {
    if (value !== undefined) continue;
    throw new AilsdError('USAGE', `--${name} is missing`, {
      hint: 'see the example of `ailsd server trust add --help`',
    });
  }
  const input = { issuer, audience, claims, subject, tenant, scopes };
  const trust = await operate(context, 'trust-add', options, input);
  context.output.result(trust, () => shown(trust, 'id'));
}

async function runList(context: Context, options: FolderOptions): Promise<void> {
  const items = itemsOf(await operate(context, 'trust-list', options));
  context.output.list(items, () =>
    columns(
      items.map((item) => [
        shown(item, 'id'),
        shown(item, 'issuer'),
        shown(item, 'claims'),
        shown(item, 'subject'),
        shown(item, 'scopes'),
      ]),
    ),
  );
}

async function runRemove(context: Context, id: string, options: FolderOptions): Promise<void> {
  await operate(context, 'trust-rm', options, { id });
  context.output.result({ id }, () => '');
}

function collectClaims(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = value.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...before, [value.slice(0, at)]: value.slice(at + 1) };
}
