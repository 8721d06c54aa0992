/** `ailsd server start`: runs the server until it is told to end, and ends it when this program does. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { type FolderOptions, folderOf, folderOption, urlOption } from './options.js';

interface Options extends FolderOptions {
  readonly listen?: string;
}

export function startCommand(context: Context): Command {
  return folderOption(new Command('start'))
    .option(
      '--listen <host:port>',
      'where to listen, 127.0.0.1:8484 by default; port 0 takes any that is free',
    )
    .description('run the server; its log goes to stderr as JSON lines')
    .example('ailsd server start --dir ./data --listen 127.0.0.1:8484', 'for this machine alone')
    .example('ailsd server start --dir ./data --listen 127.0.0.1:0 --json', 'for a script')
    .action((options: Options) => runStart(context, options));
}

async function runStart(context: Context, options: Options): Promise<void> {
  const input = {
    dir: folderOf(context, options),
    listen: options.listen,
    url: urlOption(context),
  };
  const { serve } = await import('./serve.js');
  await serve(context, input);
}
