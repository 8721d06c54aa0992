/** `ailsd attach`: a terminal in the thread's sandbox that survives cuts, and ends with the code of what ran in it. */
import { InvalidArgumentError } from 'commander';
import { ID_PATTERN } from '../../protocol/ids.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';
import { startTimeoutMs, timeoutOptions } from '../sessions/options.js';
import { threadArgument, threadIfNamed } from '../sessions/thread-argument.js';

export interface AttachOptions {
  readonly shell?: string;
  readonly observe?: boolean;
  readonly cmd?: string;
  readonly workdir?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly history?: number;
  readonly escapeChar: string;
  readonly reconnect: boolean;
  readonly record?: string;
  readonly sandbox?: string;
  readonly timeout?: number;
  readonly wait: boolean;
}

export function attachCommand(context: Context): Command {
  const command = threadArgument(new Command('attach'))
    .description('open a terminal in the sandbox; it survives cuts, sleep and changes of network')
    .option(
      '--shell <id>',
      'an earlier shell, or new for another one; else the main one',
      parseShell,
    )
    .option('--observe', 'only watch')
    .option('--cmd <command>', 'run this by sh -c in a shell of its own, in place of a login shell')
    .option('-w, --workdir <folder>', 'where a new shell starts')
    .option('-e, --env <name=value>', 'a variable of a new shell; may be repeated', collectVariable)
    .option('--history <lines>', 'so much of what was printed before, above the screen', parseLines)
    .option(
      '--escape-char <character>',
      'begins keys of ailsd, after Enter; none for no such keys',
      parseEscape,
      '~',
    )
    .option('--no-reconnect', 'end when the connection is lost')
    .option('--record <file>', 'write what is seen to a new file, as asciicast v2')
    .note('Keys, after Enter:', [
      ['~.', 'leave; the shell goes on, and `ailsd attach` finds it again'],
      ['~?', 'help; also ~R to draw the screen again, ~T to take the keyboard, ~^Z to suspend'],
    ])
    .example('ailsd attach thr_demo', 'a shell in the sandbox of the thread')
    .example('ailsd attach thr_demo --observe', 'watch without typing')
    .example('ailsd attach --shell new --cmd htop', 'another shell, with a program in it')
    .action(async (thread: string | undefined, options: AttachOptions) => {
      context.endsWithRemoteCode = true;
      const { runAttach } = await import('../terminal/run-attach.js');
      const named = threadIfNamed(context, thread);
      context.exit(
        await runAttach(context, named, { ...options, startTimeoutMs: startTimeoutMs(options) }),
      );
    });
  return timeoutOptions(sandboxOption(command));
}

function parseShell(value: string): string {
  if (ID_PATTERN.test(value)) return value;
  throw new InvalidArgumentError('Name a shell as `ailsd shell list` does, or new.');
}

function parseLines(value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give a number of lines.');
}

/** One key: what takes several bytes cannot be told from a paste. */
function parseEscape(value: string): string {
  if (value === 'none' || /^[\x21-\x7e]$/.test(value)) return value;
  throw new InvalidArgumentError('Give one character that is on every keyboard, or none.');
}

function collectVariable(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = value.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=value.');
  return { ...before, [value.slice(0, at)]: value.slice(at + 1) };
}
