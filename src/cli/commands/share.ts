/** `ailsd share`: lets others into a thread's sandbox, with some capabilities and for some time. */
import { Option } from 'commander';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import {
  type CapabilityOptions,
  capabilityOption,
  type PageOptions,
  pageOptions,
  parseSeconds,
} from '../sessions/options.js';
import { threadArgument } from '../sessions/thread-argument.js';

export interface ShareAddOptions extends CapabilityOptions {
  readonly agent?: boolean;
  readonly for?: number;
}

export interface InviteOptions {
  readonly endpoint: string;
  readonly room?: string;
  readonly elevated?: boolean;
}

export function shareCommand(context: Context): Command {
  const command = new Command('share')
    .description('let others into a thread’s sandbox')
    .example('ailsd share add ben thr_demo --cap shell:ro --for 2h', 'ben may watch, for two hours')
    .example('ailsd share list thr_demo', 'who was let in');
  for (const part of [addCommand, listCommand, removeCommand, inviteCommand]) {
    command.addCommand(part(context));
  }
  return command;
}

function addCommand(context: Context): Command {
  const command = threadArgument(
    new Command('add').argument(
      '<account>',
      'who is let in: the id that `ailsd whoami` shows them',
    ),
  )
    .option('--agent', 'it is an agent, and no person')
    .option(
      '--for <time>',
      'for how long: 2h, 3d; by default as long as the session',
      parseSeconds,
    );
  return capabilityOption(command, 'what they may do; by default watch and read')
    .description('let a person or an agent in; they use a login of their own')
    .example('ailsd share add ben thr_demo', 'ben may watch shells and read files')
    .example(
      'ailsd share add ben thr_demo --cap fs:rw,shell --for 8h',
      'ben may do everything, today',
    )
    .example('ailsd share add agent-7 thr_demo --agent --cap process', 'an agent may run commands')
    .action(async (account: string, thread: string | undefined, options: ShareAddOptions) => {
      const { runShareAdd } = await import('../sessions/share.js');
      await runShareAdd(context, account, thread, options);
    });
}

function listCommand(context: Context): Command {
  return pageOptions(threadArgument(new Command('list')))
    .description('list who was let in')
    .example('ailsd share list thr_demo', 'who, with what, until when')
    .action(async (thread: string | undefined, options: PageOptions) => {
      const { runShareList } = await import('../sessions/share.js');
      await runShareList(context, thread, options);
    });
}

function removeCommand(context: Context): Command {
  return threadArgument(new Command('rm').argument('<grant>', 'which one: see `ailsd share list`'))
    .description('take it back; tokens that came of it end within two seconds')
    .example('ailsd share rm grant_01hx thr_demo', 'and they are out')
    .action(async (grant: string, thread: string | undefined) => {
      const { runShareRemove } = await import('../sessions/share.js');
      await runShareRemove(context, grant, thread);
    });
}

function inviteCommand(context: Context): Command {
  return threadArgument(new Command('invite'))
    .addOption(
      new Option('--endpoint <name>', 'what it is for')
        .choices(['computer', 'execute'])
        .default('computer'),
    )
    .option('--room <room>', 'which room it opens; by default the thread. * is for admins')
    .option('--elevated', 'let it ask for elevation, which is for admins')
    .description('print an invite: good once, within a minute')
    .example('ailsd share invite thr_demo', 'for a shell in the browser')
    .example(
      'ailsd share invite thr_demo --endpoint execute --json',
      'for a program that runs code',
    )
    .action(async (thread: string | undefined, options: InviteOptions) => {
      const { runInvite } = await import('../sessions/invite.js');
      await runInvite(context, thread, options);
    });
}
