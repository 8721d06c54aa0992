/** The thread a command is about: named on the command line, or by AILSD_THREAD, `.ailsd.json` or the profile. */
import { AilsdError } from '../../protocol/errors.js';
import { isThreadId, type ThreadId } from '../../protocol/ids.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';

export function threadArgument(command: Command): Command {
  return command.argument('[thread]', 'which thread; by default the one that is set');
}

export function threadOf(context: Context, given: string | undefined): ThreadId {
  const thread = threadIfNamed(context, given);
  if (thread !== undefined) return thread;
  throw new AilsdError('USAGE', 'no thread is named', {
    hint: 'name one, set AILSD_THREAD, or run `ailsd config set thread THREAD`',
  });
}

/** Where access is given from outside, that names its thread. */
export function threadIfNamed(
  { settings }: Context,
  given: string | undefined,
): ThreadId | undefined {
  const thread = given ?? settings.find('thread')?.value;
  if (thread === undefined || isThreadId(thread)) return thread;
  throw new AilsdError('USAGE', 'that is not a thread id', {
    details: { field: 'thread_id' },
    hint: 'a thread id is 1 to 128 of A-Z a-z 0-9 . _ : -',
  });
}
