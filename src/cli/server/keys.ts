/** `ailsd server keys`: what access tokens are signed with. */
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import type { Document } from './document.js';
import { type FolderOptions, folderOption, itemsOf, operate, shown } from './options.js';

export function keysCommand(context: Context): Command {
  return new Command('keys')
    .description('the keys tokens are signed with: renew, list')
    .example('ailsd server keys rotate --dir ./data', 'a new key; nobody is logged out')
    .addCommand(rotateCommand(context))
    .addCommand(listCommand(context));
}

function rotateCommand(context: Context): Command {
  return folderOption(new Command('rotate'))
    .description('sign with a new key from now on; tokens of the old one stay valid')
    .example('ailsd server keys rotate --dir ./data', 'also while the server runs')
    .action((options: FolderOptions) => runRotate(context, options));
}

function listCommand(context: Context): Command {
  return folderOption(new Command('list'))
    .description('list the keys, and until when old ones are published')
    .example('ailsd server keys list --dir ./data', 'the current one first')
    .action((options: FolderOptions) => runList(context, options));
}

async function runRotate(context: Context, options: FolderOptions): Promise<void> {
  const answer = await operate(context, 'keys-rotate', options);
  context.output.result(answer, () => table(itemsOf(answer)));
}

async function runList(context: Context, options: FolderOptions): Promise<void> {
  const keys = itemsOf(await operate(context, 'keys-list', options));
  context.output.list(keys, () => table(keys));
}

function table(keys: readonly Document[]): string {
  return columns(
    keys.map((key) => {
      const until = shown(key, 'published_until');
      return [
        shown(key, 'kid'),
        shown(key, 'state'),
        until === '' ? '' : `published until ${until}`,
      ];
    }),
  );
}
