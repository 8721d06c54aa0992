/** `ailsd session`: a thread's session, which leads to its sandbox: get, make, look at, keep and let go of it. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';
import { runNegotiate } from '../sessions/negotiate.js';
import {
  type CapabilityOptions,
  capabilityOption,
  type PageOptions,
  pageOptions,
  parseSeconds,
  type TimeoutOptions,
  timeoutOptions,
} from '../sessions/options.js';
import type { SandboxOptions } from '../sessions/session-world.js';
import { threadArgument } from '../sessions/thread-argument.js';

export interface NegotiateCommandOptions extends CapabilityOptions, TimeoutOptions, SandboxOptions {
  readonly ttl?: number;
  readonly agent?: boolean;
  readonly template?: string;
  readonly provider?: string;
  readonly hint?: string;
  readonly createOnly?: boolean;
}

export function sessionCommand(context: Context): Command {
  const command = new Command('session')
    .description('a thread’s session: get, make, look at, keep and let go of it')
    .example('ailsd session ensure thr_demo', 'the session of a thread, made if there is none')
    .example('ailsd session list', 'all of yours');
  const parts = [
    getCommand,
    ensureCommand,
    listCommand,
    infoCommand,
    heartbeatCommand,
    releaseCommand,
  ];
  for (const part of parts) command.addCommand(part(context));
  return command;
}

function getCommand(context: Context): Command {
  return negotiation(new Command('get'))
    .description('print where a thread’s sandbox is, with a token for it; never makes one')
    .example('ailsd session get thr_demo', 'where it is, and until when')
    .example('ailsd session get thr_demo --json > access.json', 'with the token, for --sandbox')
    .action((thread: string | undefined, options: NegotiateCommandOptions) =>
      runNegotiate(context, 'get', thread, options),
    );
}

function ensureCommand(context: Context): Command {
  return negotiation(new Command('ensure'))
    .option('--create-only', 'fail if the thread has one already')
    .option('--template <name>', 'what a new sandbox is made from')
    .option('--provider <name>', 'where a new sandbox should run')
    .option('--hint <sandbox>', 'a sandbox to use again if it can be')
    .description('print where a thread’s sandbox is; makes one if there is none')
    .example('ailsd session ensure thr_demo', 'any number of callers get the same one')
    .example(
      'ailsd session ensure thr_demo --cap fs:ro --ttl 5m --json',
      'with a token that only reads',
    )
    .action((thread: string | undefined, options: NegotiateCommandOptions) =>
      runNegotiate(
        context,
        options.createOnly === true ? 'create_only' : 'ensure',
        thread,
        options,
      ),
    );
}

function negotiation(command: Command): Command {
  const withThread = threadArgument(command)
    .option('--ttl <time>', 'how long the token is to live: 1m to 15m', parseSeconds)
    .option('--agent', 'what an agent gets, and not what a person does');
  return timeoutOptions(sandboxOption(capabilityOption(withThread, 'what the token is to allow')));
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .description('list your sessions')
    .example('ailsd session list', 'thread, state, sandbox, and until when each is kept')
    .example('ailsd session list --all --json', 'for a script')
    .action(async (options: PageOptions) => {
      const { runSessionList } = await import('../sessions/manage-session.js');
      await runSessionList(context, options);
    });
}

function infoCommand(context: Context): Command {
  return threadArgument(new Command('info'))
    .description('look at a thread’s session; gives nobody a token')
    .example('ailsd session info thr_demo', 'its state, its sandbox and its time limits')
    .action(async (thread: string | undefined) => {
      const { runSessionInfo } = await import('../sessions/manage-session.js');
      await runSessionInfo(context, thread);
    });
}

function heartbeatCommand(context: Context): Command {
  return threadArgument(new Command('heartbeat'))
    .description('keep a thread’s sandbox for a full idle timeout more')
    .example('ailsd session heartbeat thr_demo', 'until when it is kept')
    .action(async (thread: string | undefined) => {
      const { runHeartbeat } = await import('../sessions/manage-session.js');
      await runHeartbeat(context, thread);
    });
}

function releaseCommand(context: Context): Command {
  return threadArgument(new Command('release'))
    .description('let go of a thread’s session; its sandbox ends when nothing else holds it')
    .example('ailsd session release thr_demo', 'its files are gone then')
    .action(async (thread: string | undefined) => {
      const { runRelease } = await import('../sessions/manage-session.js');
      await runRelease(context, thread);
    });
}
