/** `exec`: opens the thread's session, runs the command there or leaves it running, and ends with its code. */
import { openSession } from '../../client/sessions/open-session.js';
import type { Session } from '../../client/sessions/session.js';
import type { SessionWorld } from '../../client/sessions/world.js';
import { AilsdError } from '../../protocol/errors.js';
import { newId, type ThreadId } from '../../protocol/ids.js';
import type { ExecOptions } from '../commands/exec.js';
import type { Context } from '../context.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { whileStarting } from '../sessions/while-starting.js';
import { Status } from './status.js';

export async function runExec(
  context: Context,
  thread: ThreadId | undefined,
  argv: readonly string[],
  options: ExecOptions,
): Promise<number> {
  const commandId = newCommandId();
  const status = new Status(context, commandId, options.statusFile);
  return status.around(async () => {
    using world = createSessionWorld(context, options);
    await using session = await openForCommands(context, world, { thread, ...options });
    status.at(session);
    const http = await world.http();
    const request = { commandId, argv, options };
    if (options.detach === true) {
      const { startDetached } = await import('./detach.js');
      await startDetached(context, { session, http }, request);
      status.detached();
      return 0;
    }
    const { execute } = await import('./execute.js');
    // Access that was read from standard input has used that up.
    const hasInput = options.stdin && options.sandbox !== '-';
    const executed = await execute(context, { session, http }, { ...request, hasInput });
    status.ended(executed.code, executed.outcome);
    if (executed.captured !== undefined) {
      const { resultDocument } = await import('./result-document.js');
      context.output.result(resultDocument(session, request, executed), () => '');
    }
    return executed.code;
  });
}

/** Made here and not in the sandbox, so that a start whose answer was lost can be sent again. */
export function newCommandId(): string {
  return newId('command', (bytes) => globalThis.crypto.getRandomValues(bytes));
}

export interface OpenForCommands {
  readonly thread: ThreadId | undefined;
  readonly template?: string | undefined;
  readonly startTimeout?: number | undefined;
  readonly detach?: boolean;
}

export async function openForCommands(
  context: Context,
  world: SessionWorld,
  { thread, template, startTimeout, detach }: OpenForCommands,
): Promise<Session> {
  const session = await whileStarting(context, 'Waiting for the sandbox…', () =>
    openSession(world, {
      thread,
      template,
      capabilities: ['process'],
      startTimeoutMs: startTimeout === undefined ? undefined : startTimeout * 1000,
      keepAlive: detach !== true,
      signal: context.signal,
    }),
  );
  const { capabilities } = session;
  if (capabilities === undefined || capabilities.includes('process')) return session;
  await session[Symbol.asyncDispose]();
  throw new AilsdError('CAPABILITY_DENIED', 'the token does not allow to run commands', {
    details: { capability: 'process' },
  });
}
