/** `ailsd server migrate`: the store's tables, brought up to date. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { type FolderOptions, folderOption, operate, shown } from './options.js';

interface Options extends FolderOptions {
  readonly check?: boolean;
}

export function migrateCommand(context: Context): Command {
  return folderOption(new Command('migrate'))
    .option('--check', 'change nothing; end with 6 if something is missing')
    .description('bring the store up to date; `server start` does so too')
    .example('ailsd server migrate --dir ./data --check', 'what an upgrade would change')
    .action((options: Options) => runMigrate(context, options));
}

async function runMigrate(context: Context, options: Options): Promise<void> {
  const isCheck = options.check === true;
  const answer = await operate(context, 'migrate', options, { check: isCheck });
  const pending = shown(answer, 'pending');
  context.output.result(answer, () => {
    if (isCheck) return pending === '' ? 'up to date' : `missing: ${pending}`;
    return `applied: ${shown(answer, 'applied') || 'nothing, it was up to date'}`;
  });
  if (pending !== '') context.exit(EXIT.conflict);
}
