/** `ailsd exec`: one command in the thread's sandbox, its streams as if it ran here, and its exit code. */
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { type CommandOptions, commandOptions } from '../exec/options.js';
import { RestCommand } from '../exec/rest-command.js';
import { sandboxOption } from '../sessions/given-access.js';
import { threadArgument, threadIfNamed } from '../sessions/thread-argument.js';

export interface ExecOptions extends CommandOptions {
  readonly tty?: boolean;
  readonly detach?: boolean;
  readonly sandbox?: string;
}

export function execCommand(context: Context): Command {
  const command = commandOptions(new RestCommand('exec'));
  threadArgument(command)
    .usage('[options] [thread] -- <command> [argument...]')
    .description('run one command in the sandbox, and end with its exit code')
    .option('-t, --tty', 'give it a terminal')
    .option('-d, --detach', 'print its id and leave it running; see `ailsd job`')
    .note('Exit code:', [
      ['', 'that of the command, or 128 + n if signal n ended it'],
      ['125', 'our own failure: the command did not run, or was ended for its time'],
      ['255', 'the connection was lost, and how it ended is not known'],
    ])
    .note('Signals:', [
      ['', 'the first of a kind goes to the command, the second ends ailsd alone'],
    ])
    .example('ailsd exec thr_demo -- make test', 'with its output and its exit code')
    .example('tar c . | ailsd exec -- tar x -C src', 'input is passed on to its end')
    .example('ailsd exec --timeout 10m --status-file out.json -- ./build.sh', 'for scripts')
    .action(async (thread: string | undefined, options: ExecOptions) => {
      context.endsWithRemoteCode = true;
      const argv = command.argv();
      const { runExec } = await import('../exec/run-exec.js');
      context.exit(await runExec(context, threadIfNamed(context, thread), argv, options));
    });
  return sandboxOption(command);
}
