/** `ailsd dev`: a server, a user, a sandbox and a shell in it, on this machine, for as long as the shell is open. */
import { InvalidArgumentError } from 'commander';
import { isThreadId, type ThreadId } from '../../protocol/ids.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';

export interface DevOptions {
  readonly thread: ThreadId;
  readonly keep?: boolean;
}

export function devCommand(context: Context): Command {
  return new Command('dev')
    .argument('[command...]', 'what to run in place of a shell; put -- before it')
    .option('--thread <id>', 'the thread whose sandbox to use', parseThread, parseThread('dev'))
    .option('--keep', 'keep server, login and files for the next time')
    .description('try everything on this machine: a server, a sandbox, and a shell in it')
    .note('With --json:', [
      ['', 'prints one line with url, thread and env, and serves until it is ended (SIGTERM)'],
    ])
    .example('ailsd dev', 'a shell in a sandbox of your own; leaving it cleans up')
    .example('ailsd dev -- uname -a', 'one command in it, and its exit code')
    .example('ailsd dev --json', 'for a script: prints how to talk to it')
    .action(async (command: readonly string[], options: DevOptions) => {
      const { runDev } = await import('../dev/run-dev.js');
      await runDev(context, command, options);
    });
}

function parseThread(value: string): ThreadId {
  if (isThreadId(value)) return value;
  throw new InvalidArgumentError('A thread id is 1 to 128 of A-Z a-z 0-9 . _ : -');
}
