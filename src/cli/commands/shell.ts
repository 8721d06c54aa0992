/** `ailsd shell`: which shells a sandbox has, the end of one, and what one has printed. */
import { Option } from 'commander';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';

export interface ShellOptions {
  readonly sandbox?: string;
}

export interface LogOptions extends ShellOptions {
  readonly format: 'text' | 'asciicast';
}

export function shellCommand(context: Context): Command {
  return new Command('shell')
    .description('list the shells of a sandbox, end one, or read what it has printed')
    .example('ailsd shell list thr_demo', 'what runs, and who is attached')
    .example('ailsd shell log thr_demo', 'what the latest shell has printed')
    .addCommand(listCommand(context))
    .addCommand(killCommand(context))
    .addCommand(logCommand(context));
}

function listCommand(context: Context): Command {
  return sandboxOption(new Command('list'))
    .description('list the shells, also those whose end nobody has seen')
    .argument('[thread]', 'which thread; by default the one that is set')
    .example('ailsd shell list', 'of the thread that is set')
    .action(async (thread: string | undefined, options: ShellOptions) => {
      const { runShellList } = await import('../terminal/manage-shells.js');
      await runShellList(context, thread, options);
    });
}

function killCommand(context: Context): Command {
  return sandboxOption(new Command('kill'))
    .description('end a shell with all its programs')
    .argument('[thread]', 'which thread; by default the one that is set')
    .argument('[shell]', 'which shell, as `ailsd shell list` names it')
    .example('ailsd shell kill thr_demo sh_01', 'asks first, then makes it')
    .action(
      async (first: string | undefined, second: string | undefined, options: ShellOptions) => {
        const { runShellKill } = await import('../terminal/manage-shells.js');
        await runShellKill(context, first, second, options);
      },
    );
}

function logCommand(context: Context): Command {
  return sandboxOption(new Command('log'))
    .description('print what a shell has printed, also one that has ended')
    .argument('[thread]', 'which thread; by default the one that is set')
    .argument('[shell]', 'which shell; by default the latest')
    .addOption(
      new Option('--format <format>', 'as plain text, or the recording itself')
        .choices(['text', 'asciicast'])
        .default('text'),
    )
    .example('ailsd shell log thr_demo | grep error', 'search it')
    .example('ailsd shell log thr_demo --format asciicast > demo.cast', 'for asciinema')
    .action(async (first: string | undefined, second: string | undefined, options: LogOptions) => {
      const { runShellLog } = await import('../terminal/manage-shells.js');
      await runShellLog(context, first, second, options);
    });
}
