/** `ailsd run`: everything a CI job needs in one command: a sandbox, the command in it, its code, and nothing left. */
import { InvalidArgumentError } from 'commander';
import { isThreadId, type ThreadId } from '../../protocol/ids.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { type CommandOptions, commandOptions } from '../exec/options.js';
import { RestCommand } from '../exec/rest-command.js';

export interface RunOptions extends CommandOptions {
  readonly thread?: ThreadId;
  readonly template?: string;
  readonly keep?: boolean;
}

export function runCommand(context: Context): Command {
  const command = new RestCommand('run');
  command
    .usage('[options] -- <command> [argument...]')
    .description('for CI: get a sandbox, run one command in it, and let go of it')
    .option(
      '--thread <id>',
      'the thread whose sandbox to use; by default one of its own',
      parseThread,
    )
    .option('--template <name>', 'what a new sandbox is made from')
    .option('--keep', 'do not let go of the sandbox in the end');
  return commandOptions(command)
    .note('Exit code:', [
      ['', 'that of the command, or 128 + n if signal n ended it'],
      ['125', 'our own failure: the command did not run, or was ended for its time'],
      ['255', 'the connection was lost, and how it ended is not known'],
    ])
    .example('ailsd run -- make test', 'with its output and its exit code')
    .example('ailsd run --json --timeout 30m -- ./ci.sh', 'a summary of all steps as JSON')
    .action(async (options: RunOptions) => {
      context.endsWithRemoteCode = true;
      const argv = command.argv();
      const { runRun } = await import('../exec/run-run.js');
      context.exit(await runRun(context, argv, options));
    });
}

function parseThread(value: string): ThreadId {
  if (isThreadId(value)) return value;
  throw new InvalidArgumentError('A thread id is 1 to 128 of A-Z a-z 0-9 . _ : -');
}
