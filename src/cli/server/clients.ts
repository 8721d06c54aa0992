/** `ailsd server client`: the programs that may ask for tokens. */
import { Option } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { readJsonFile } from '../settings/json-file.js';
import type { Document } from './document.js';
import {
  collect,
  type FolderOptions,
  folderOption,
  itemsOf,
  operate,
  scopeOption,
  shown,
} from './options.js';

interface AddOptions extends FolderOptions {
  readonly id?: string;
  readonly tenant?: string;
  readonly public?: boolean;
  readonly grant?: readonly string[];
  readonly scope?: readonly string[];
  readonly redirectUri?: readonly string[];
  readonly jwks?: string;
}

export function clientCommand(context: Context): Command {
  const command = new Command('client')
    .description('programs that may ask for tokens: add, shut out, renew the secret, list')
    .example(
      'ailsd server client add "Nightly build" --scope exec:sandbox --dir ./data',
      'a service',
    )
    .example('ailsd server client list --dir ./data', 'all of them');
  for (const part of [addCommand, listCommand, disableCommand, enableCommand, rotateCommand])
    command.addCommand(part(context));
  return command;
}

const GRANTS = ['device', 'code', 'refresh', 'client-credentials', 'token-exchange'];

function addCommand(context: Context): Command {
  const command = folderOption(new Command('add').argument('<name>', 'what people see it called'));
  return scopeOption(command, 'the most it may get')
    .option('--id <client_id>', 'its id; one is made by default')
    .option('--public', 'it runs on other people’s machines and can keep no secret')
    .addOption(grantOption())
    .option('--redirect-uri <uri>', 'where a browser may be sent back to; may be repeated', collect)
    .option(
      '--jwks <file>',
      'its public keys (RFC 7517): it proves itself by private_key_jwt, without a secret',
    )
    .option('--tenant <name>', 'the tenant its tokens are for')
    .description('add a client; its secret is printed this once')
    .example(
      'ailsd server client add "Nightly build" --scope exec:sandbox --dir ./data',
      'a service',
    )
    .example(
      'ailsd server client add Board --public --grant code --redirect-uri https://board.example/cb --scope read:sandbox --dir ./data',
      'a page in the browser',
    )
    .action((name: string, options: AddOptions) => runAdd(context, name, options));
}

function listCommand(context: Context): Command {
  return folderOption(new Command('list'))
    .description('list the clients')
    .example('ailsd server client list --dir ./data --json', 'for a script')
    .action((options: FolderOptions) => runList(context, options));
}

function disableCommand(context: Context): Command {
  return onClient('disable')
    .description('shut a client out: no new tokens')
    .example('ailsd server client disable svc_1 --dir ./data', 'until enabled again')
    .action((id: string, options: FolderOptions) =>
      runSwitch(context, 'client-disable', id, options),
    );
}

function enableCommand(context: Context): Command {
  return onClient('enable')
    .description('let a client in again')
    .example('ailsd server client enable svc_1 --dir ./data', 'with the secret of before')
    .action((id: string, options: FolderOptions) =>
      runSwitch(context, 'client-enable', id, options),
    );
}

function rotateCommand(context: Context): Command {
  return onClient('rotate-secret')
    .description('give a client a new secret; the old one ends at once')
    .example('ailsd server client rotate-secret svc_1 --dir ./data', 'prints it this once')
    .action((id: string, options: FolderOptions) => runRotate(context, id, options));
}

function onClient(name: string): Command {
  return folderOption(new Command(name).argument('<client_id>', 'which client'));
}

function grantOption(): Option {
  const option = new Option('--grant <grant>', 'a way it may get tokens; may be repeated');
  option.choices(GRANTS);
  const check = option.parseArg;
  return option.argParser((value: string, before: readonly string[] | undefined) => {
    check?.(value, undefined);
    return collect(value, before);
  });
}

async function runAdd(context: Context, name: string, options: AddOptions): Promise<void> {
  const { id, tenant, scope: scopes, redirectUri } = options;
  if (scopes === undefined) {
    throw new AilsdError('USAGE', '--scope is missing', {
      hint: 'name what the client may get, such as --scope read:sandbox',
    });
  }
  const isPublic = options.public === true;
  const grants = options.grant ?? (isPublic ? ['device', 'refresh'] : ['client-credentials']);
  const kind = isPublic ? 'public' : 'confidential';
  const jwks = options.jwks === undefined ? undefined : readKeys(options.jwks);
  const client = { client_id: id, tenant, name, kind, grants, scopes, redirect_uris: redirectUri };
  saySecret(context, await operate(context, 'client-add', options, { ...client, jwks }));
}

function readKeys(file: string): object {
  const read = readJsonFile(file, () => true);
  if (read.kind === 'read') return read.value;
  throw new AilsdError('USAGE', `there is no file ${file}`, {
    hint: 'name a JSON file: {"keys": […]}',
  });
}

async function runRotate(context: Context, id: string, options: FolderOptions): Promise<void> {
  const client = await operate(context, 'client-rotate-secret', options, { client_id: id });
  saySecret(context, client);
}

async function runSwitch(
  context: Context,
  operation: string,
  id: string,
  options: FolderOptions,
): Promise<void> {
  const client = await operate(context, operation, options, { client_id: id });
  context.output.result(client, () => `${shown(client, 'client_id')} ${stateOf(client)}`);
}

async function runList(context: Context, options: FolderOptions): Promise<void> {
  const clients = itemsOf(await operate(context, 'client-list', options));
  context.output.list(clients, () =>
    columns(
      clients.map((client) => [
        shown(client, 'client_id'),
        shown(client, 'name'),
        shown(client, 'kind'),
        stateOf(client),
        shown(client, 'scopes'),
      ]),
    ),
  );
}

function saySecret({ output }: Context, client: Document): void {
  const secret = shown(client, 'client_secret');
  output.result(client, () =>
    columns([
      ['client_id', shown(client, 'client_id')],
      ...(secret === '' ? [] : [['client_secret', secret]]),
    ]),
  );
  if (secret !== '') output.notice('the secret is not shown again');
}

function stateOf(client: Document): string {
  return client['disabled_at'] === null ? 'enabled' : 'disabled';
}
