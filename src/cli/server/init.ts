/** `ailsd server init`: a data folder and a first client that may do everything. */
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { type FolderOptions, folderOption, operate, shown, urlOption } from './options.js';

interface Options extends FolderOptions {
  readonly store?: string;
}

export function initCommand(context: Context): Command {
  return folderOption(new Command('init'))
    .option('--store <url>', 'postgres://… or the path of a file; a file in the folder by default')
    .description('make a data folder, its keys and store, and a first administrator')
    .example('ailsd server init --dir ./data', 'for this machine alone')
    .example(
      'ailsd server init --dir /srv/ailsd --url https://ailsd.example.com',
      'for everybody who reaches that address',
    )
    .action((options: Options) => runInit(context, options));
}

async function runInit(context: Context, options: Options): Promise<void> {
  const { output, style } = context;
  const url = urlOption(context);
  const made = await operate(context, 'init', options, { url, store: options.store });
  output.result(made, () =>
    columns([
      ['folder', shown(made, 'dir')],
      ['store', shown(made, 'store')],
      ['client_id', shown(made, 'client_id')],
      ['client_secret', shown(made, 'client_secret')],
    ]),
  );
  output.notice('the secret is not shown again; it may do everything, so keep it safe');
  output.notice(`next: ${style.bold(`ailsd server user add NAME --dir ${shown(made, 'dir')}`)}`);
  output.notice(`then: ${style.bold(`ailsd server start --dir ${shown(made, 'dir')}`)}`);
}
