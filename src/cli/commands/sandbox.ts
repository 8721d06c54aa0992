/** `ailsd sandbox`: sandboxes as things to be listed, looked at, started, stopped, renamed and ended. */
import { Option } from 'commander';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { type PageOptions, pageOptions, parseCount, STATES } from '../sessions/options.js';

export interface SandboxListOptions extends PageOptions {
  readonly state?: string;
  readonly threadId?: string;
}

export interface LogOptions {
  readonly follow?: boolean;
  readonly tail?: number;
}

export function sandboxCommand(context: Context): Command {
  const command = new Command('sandbox')
    .description('sandboxes: list, look at, start, stop, rename and end them')
    .example('ailsd sandbox list', 'all of yours')
    .example('ailsd sandbox why thr_demo', 'who keeps it alive, until when, and what happens then');
  const parts = [
    listCommand,
    infoCommand,
    whyCommand,
    startCommand,
    stopCommand,
    removeCommand,
    renameCommand,
    logsCommand,
  ];
  for (const part of parts) command.addCommand(part(context));
  return command;
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .addOption(new Option('--state <state>', 'only those in this state').choices(STATES))
    .option('--thread-id <thread>', 'only those of this thread')
    .description('list your sandboxes')
    .example('ailsd sandbox list --state active', 'those that run now')
    .example('ailsd sandbox list --all --json', 'for a script')
    .action(async (options: SandboxListOptions) => {
      const { runSandboxList } = await import('../sessions/manage-sandbox.js');
      await runSandboxList(context, options);
    });
}

function infoCommand(context: Context): Command {
  return sandboxArgument(new Command('info'))
    .description('look at a sandbox')
    .example('ailsd sandbox info thr_demo', 'by its thread, or by its id')
    .action(async (sandbox: string | undefined) => {
      const { runSandboxInfo } = await import('../sessions/manage-sandbox.js');
      await runSandboxInfo(context, sandbox);
    });
}

function whyCommand(context: Context): Command {
  return sandboxArgument(new Command('why'))
    .description('print who keeps a sandbox alive, until when, and what happens then')
    .example('ailsd sandbox why thr_demo', 'before wondering about the bill')
    .action(async (sandbox: string | undefined) => {
      const { runWhy } = await import('../sessions/why.js');
      await runWhy(context, sandbox);
    });
}

function startCommand(context: Context): Command {
  return sandboxArgument(new Command('start'))
    .description('start a sandbox that is stopped or suspended')
    .example('ailsd sandbox start thr_demo', 'with the files it had')
    .action(async (sandbox: string | undefined) => {
      const { runSandboxStart } = await import('../sessions/manage-sandbox.js');
      await runSandboxStart(context, sandbox);
    });
}

function stopCommand(context: Context): Command {
  return sandboxArgument(new Command('stop'))
    .description('stop a sandbox: its files stay, its processes go')
    .example('ailsd sandbox stop thr_demo', 'the next session starts it again')
    .action(async (sandbox: string | undefined) => {
      const { runSandboxStop } = await import('../sessions/manage-sandbox.js');
      await runSandboxStop(context, sandbox);
    });
}

function removeCommand(context: Context): Command {
  return sandboxArgument(new Command('rm'))
    .description('end a sandbox and everything in it, its files too')
    .example('ailsd sandbox rm sb_01hx', 'for good')
    .action(async (sandbox: string | undefined) => {
      const { runSandboxRemove } = await import('../sessions/manage-sandbox.js');
      await runSandboxRemove(context, sandbox);
    });
}

function renameCommand(context: Context): Command {
  return new Command('rename')
    .argument('<sandbox>', 'its id, or its thread')
    .argument('<name>', 'what people shall see it called')
    .description('give a sandbox another name')
    .example('ailsd sandbox rename thr_demo "Release notes"', 'for lists')
    .action(async (sandbox: string, name: string) => {
      const { runSandboxRename } = await import('../sessions/manage-sandbox.js');
      await runSandboxRename(context, sandbox, name);
    });
}

function logsCommand(context: Context): Command {
  return sandboxArgument(new Command('logs'))
    .option('-f, --follow', 'go on as new lines come, until Ctrl-C')
    .option('--tail <lines>', 'only so many of the last lines', parseCount)
    .description('print a sandbox’s own log')
    .example('ailsd sandbox logs thr_demo --tail 100', 'the last lines')
    .example('ailsd sandbox logs thr_demo -f -o jsonl', 'for a program, as it happens')
    .action(async (sandbox: string | undefined, options: LogOptions) => {
      const { runSandboxLogs } = await import('../sessions/sandbox-logs.js');
      await runSandboxLogs(context, sandbox, options);
    });
}

function sandboxArgument(command: Command): Command {
  return command.argument(
    '[sandbox]',
    'its id (sb_…), or its thread; by default the thread that is set',
  );
}
