/** `ailsd cp`: copies files and folders into a sandbox and out of it. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';

export interface CpOptions {
  readonly sandbox?: string;
  readonly recursive?: boolean;
  readonly ifMatch?: string;
}

export function cpCommand(context: Context): Command {
  return sandboxOption(new Command('cp'))
    .description('copy files and folders into a sandbox or out of it')
    .argument(
      '<places...>',
      'from where, one or several, and last to where: a path here, THREAD:PATH or -',
    )
    .option('-r, --recursive', 'copy folders with all that is in them')
    .option('--if-match <etag>', 'replace the file only if it is still this one')
    .example('ailsd cp notes.txt thr_demo:docs/', 'a file into a folder')
    .example('ailsd cp -r thr_demo:dist ./dist', 'a folder out of the sandbox')
    .example('tar c . | ailsd cp - :all.tar', 'a pipe, to the thread that is set')
    .action(async (places: string[], options: CpOptions) => {
      const { runCp } = await import('../files/run-cp.js');
      await runCp(context, places, options);
    });
}
