/** `ailsd job`: commands by their ids, from any machine: which there are, how one ended, what it wrote, its end. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';
import { type PageOptions, pageOptions, parseCount } from '../sessions/options.js';

export interface JobOptions {
  readonly sandbox?: string;
}

export interface JobListOptions extends JobOptions, PageOptions {}

export interface JobLogOptions extends JobOptions {
  readonly follow?: boolean;
  readonly tail?: number;
}

export function jobCommand(context: Context): Command {
  return new Command('job')
    .description('commands that were started with `ailsd exec`: list, wait for, read and end them')
    .example('ailsd job list thr_demo', 'what runs and what ran')
    .example('ailsd job wait cmd_…', 'until it has ended, with its exit code')
    .addCommand(listCommand(context))
    .addCommand(waitCommand(context))
    .addCommand(logsCommand(context))
    .addCommand(killCommand(context));
}

function listCommand(context: Context): Command {
  return pageOptions(sandboxOption(new Command('list')))
    .description('list the commands that run or ran, the latest first')
    .argument('[thread]', 'which thread; by default the one that is set')
    .example('ailsd job list', 'of the thread that is set')
    .action(async (thread: string | undefined, options: JobListOptions) => {
      const { runJobList } = await import('../exec/manage-jobs.js');
      await runJobList(context, thread, options);
    });
}

function waitCommand(context: Context): Command {
  return named(new Command('wait'))
    .description('wait until a command has ended, and end with its exit code')
    .note('Exit code:', [
      ['', 'that of the command, or 128 + n if signal n ended it'],
      ['125', 'our own failure, or that of its sandbox'],
    ])
    .example('ailsd job wait thr_demo cmd_…', 'also from another machine than it was started on')
    .action(async (first: string, second: string | undefined, options: JobOptions) => {
      context.endsWithRemoteCode = true;
      const { runJobWait } = await import('../exec/manage-jobs.js');
      context.exit(await runJobWait(context, first, second, options));
    });
}

function logsCommand(context: Context): Command {
  return named(new Command('logs'))
    .description('print what a command has written: its stdout and stderr to ours')
    .option('-f, --follow', 'go on until it has ended')
    .option('--tail <lines>', 'only the last so many lines of what is there', parseCount)
    .example('ailsd job logs thr_demo cmd_… --follow', 'as it comes')
    .action(async (first: string, second: string | undefined, options: JobLogOptions) => {
      const { runJobLogs } = await import('../exec/manage-jobs.js');
      await runJobLogs(context, first, second, options);
    });
}

function killCommand(context: Context): Command {
  return named(new Command('kill'))
    .description('end a command and all it started: asked first, then made to')
    .example('ailsd job kill thr_demo cmd_…', 'returns when it has ended')
    .action(async (first: string, second: string | undefined, options: JobOptions) => {
      const { runJobKill } = await import('../exec/manage-jobs.js');
      await runJobKill(context, first, second, options);
    });
}

/** The thread comes first, and may be left out. */
function named(command: Command): Command {
  return sandboxOption(command)
    .usage('[options] [thread] <command>')
    .argument('<thread-or-command>', 'which thread; by default the one that is set')
    .argument('[command]', 'which command, as `ailsd exec --detach` or `ailsd job list` names it');
}
