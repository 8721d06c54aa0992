/** `ailsd server user`: who may sign in. */
import { AilsdError } from '../../protocol/errors.js';
import { SCOPES } from '../../protocol/scopes.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { EXIT } from '../exit-codes.js';
import type { Document } from './document.js';
import {
  collectScopes,
  type FolderOptions,
  folderOption,
  itemsOf,
  operate,
  scopeOption,
  serverFolderOf,
  shown,
} from './options.js';
import { readPassword } from './password.js';

interface Options extends FolderOptions {
  readonly tenant?: string;
  readonly scope?: readonly string[];
  readonly generate?: boolean;
  readonly yes?: boolean;
  readonly upstream?: string;
  readonly upstreamSubject?: string;
}

export function userCommand(context: Context): Command {
  const command = new Command('user')
    .description('who may sign in: add, change, shut out, list')
    .example('ailsd server user add ada --dir ./data', 'asks for the password')
    .example('ailsd server user list --dir ./data', 'everybody of the default tenant');
  for (const part of [
    addCommand,
    passwdCommand,
    logoutCommand,
    disableCommand,
    enableCommand,
    scopesCommand,
    removeCommand,
    listCommand,
  ])
    command.addCommand(part(context));
  return command;
}

function addCommand(context: Context): Command {
  return scopeOption(onUser('add'), 'the most a login of this user may do')
    .option('--generate', 'make a password and print it')
    .option('--upstream <issuer>', 'the company login that vouches for the user, by its URL')
    .option('--upstream-subject <sub>', 'who the user is there')
    .description('add a user')
    .example('ailsd server user add ada --dir ./data < password.txt', 'with a password from a file')
    .example('ailsd server user add ada --dir ./data --generate --json', 'with one that is made')
    .action((name: string, options: Options) => runAdd(context, name, options));
}

function passwdCommand(context: Context): Command {
  return onUser('passwd')
    .option('--generate', 'make a password and print it')
    .description("change a user's password, and end the logins of before")
    .example('ailsd server user passwd ada --dir ./data', 'asks for the new one')
    .action((name: string, options: Options) => runPasswd(context, name, options));
}

function logoutCommand(context: Context): Command {
  return onUser('logout')
    .description('end all logins of a user, in terminals and browsers')
    .example(
      'ailsd server user logout ada --dir ./data',
      'ada signs in again, with the same password',
    )
    .action((name: string, options: Options) => runLogout(context, name, options));
}

function disableCommand(context: Context): Command {
  return onUser('disable')
    .description('shut a user out: all logins end, and there are no new ones')
    .example('ailsd server user disable ada --dir ./data', 'until enabled again')
    .action((name: string, options: Options) => runSwitch(context, 'user-disable', name, options));
}

function enableCommand(context: Context): Command {
  return onUser('enable')
    .description('let a user in again')
    .example('ailsd server user enable ada --dir ./data', 'with the password of before')
    .action((name: string, options: Options) => runSwitch(context, 'user-enable', name, options));
}

function scopesCommand(context: Context): Command {
  return tenantOption(
    folderOption(
      new Command('scopes')
        .argument('<name>', 'what the user signs in as')
        .argument('[scope...]', 'all that a login of this user may do; none: nothing'),
    ),
  )
    .note('Scopes:', Object.entries(SCOPES))
    .description('say anew what a user’s logins may do, those there are included')
    .example(
      'ailsd server user scopes ada read:sandbox exec:sandbox --dir ./data',
      'from the next token of each login on',
    )
    .action((name: string, scopes: readonly string[], options: Options) =>
      runScopes(context, name, scopes, options),
    );
}

function removeCommand(context: Context): Command {
  return onUser('rm')
    .option('--yes', 'do not ask')
    .description('remove a user for good, and end all logins')
    .example('ailsd server user rm ada --dir ./data', 'asks first; disable can be undone')
    .action((name: string, options: Options) => runRemove(context, name, options));
}

function listCommand(context: Context): Command {
  return tenantOption(folderOption(new Command('list')))
    .description('list the users of a tenant')
    .example('ailsd server user list --dir ./data --json', 'for a script')
    .action((options: Options) => runList(context, options));
}

function onUser(name: string): Command {
  return tenantOption(
    folderOption(new Command(name).argument('<name>', 'what the user signs in as')),
  );
}

function tenantOption(command: Command): Command {
  return command.option('--tenant <name>', "the user's tenant");
}

async function runAdd(context: Context, name: string, options: Options): Promise<void> {
  const { scope: scopes, tenant } = options;
  const upstream = upstreamOf(options);
  const password = upstream === undefined ? await passwordOf(context, name, options) : undefined;
  const input = { name, tenant, scopes, password, upstream };
  sayUser(context, await operate(context, 'user-add', options, input));
}

async function runPasswd(context: Context, name: string, options: Options): Promise<void> {
  const password = await passwordOf(context, name, options);
  const input = { name, tenant: options.tenant, password };
  sayUser(context, await operate(context, 'user-passwd', options, input));
}

async function runSwitch(
  context: Context,
  operation: string,
  name: string,
  options: Options,
): Promise<void> {
  const user = await operate(context, operation, options, { name, tenant: options.tenant });
  context.output.result(user, () => `${shown(user, 'name')} ${stateOf(user)}`);
}

async function runScopes(
  context: Context,
  name: string,
  words: readonly string[],
  options: Options,
): Promise<void> {
  const scopes = [...new Set(words.flatMap((word) => parseScopeWords(word)))];
  const input = { name, tenant: options.tenant, scopes };
  const user = await operate(context, 'user-scopes', options, input);
  context.output.result(user, () => `${shown(user, 'name')} ${shown(user, 'scopes') || 'nothing'}`);
}

function parseScopeWords(word: string): readonly string[] {
  try {
    return collectScopes(word);
  } catch (error) {
    const hint = error instanceof Error ? error.message : String(error);
    throw new AilsdError('USAGE', `there is no scope ${word}`, { hint });
  }
}

async function runRemove(context: Context, name: string, options: Options): Promise<void> {
  serverFolderOf(context, options);
  if (options.yes !== true) {
    const { confirm } = await import('./confirm.js');
    const question = `Remove ${name} and end all logins, for good?`;
    if (!(await confirm(context, question))) {
      context.output.notice('nothing was removed');
      return context.exit(EXIT.failed);
    }
  }
  const user = await operate(context, 'user-rm', options, { name, tenant: options.tenant });
  context.output.result(user, () => `${shown(user, 'name')} removed`);
}

async function runLogout(context: Context, name: string, options: Options): Promise<void> {
  const user = await operate(context, 'user-logout', options, { name, tenant: options.tenant });
  context.output.result(user, () => `${shown(user, 'name')} is logged out everywhere`);
}

async function runList(context: Context, options: Options): Promise<void> {
  const users = itemsOf(await operate(context, 'user-list', options, { tenant: options.tenant }));
  context.output.list(users, () =>
    columns(
      users.map((user) => [
        shown(user, 'name'),
        shown(user, 'id'),
        stateOf(user),
        shown(user, 'scopes'),
      ]),
    ),
  );
}

/** The folder first: nobody types a password to learn that there is no server. */
function passwordOf(context: Context, name: string, options: Options): Promise<string> | undefined {
  serverFolderOf(context, options);
  return options.generate === true ? undefined : readPassword(context, escapeText(name));
}

function upstreamOf({ upstream, upstreamSubject }: Options): object | undefined {
  if (upstream === undefined && upstreamSubject === undefined) return undefined;
  if (upstream !== undefined && upstreamSubject !== undefined)
    return { issuer: upstream, subject: upstreamSubject };
  throw new AilsdError('USAGE', '--upstream and --upstream-subject go together', {
    hint: 'the issuer says which login, the subject who it is there',
  });
}

function sayUser({ output }: Context, user: Document): void {
  output.result(user, () => {
    const password = shown(user, 'password');
    return columns([
      ['name', shown(user, 'name')],
      ['id', shown(user, 'id')],
      ...(password === '' ? [] : [['password', password]]),
    ]);
  });
}

function stateOf(user: Document): string {
  return user['disabled_at'] === null ? 'enabled' : 'disabled';
}
