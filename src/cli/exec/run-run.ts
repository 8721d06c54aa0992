/** `run`: the steps of it one after the other, the last of them whatever happened before; each with how long it took. */
import { systemClock } from '../../base/clock.js';
import { parseThreadId, type ThreadId } from '../../protocol/ids.js';
import type { RunOptions } from '../commands/run.js';
import type { Context } from '../context.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { execute } from './execute.js';
import { resultDocument } from './result-document.js';
import { newCommandId, openForCommands } from './run-exec.js';
import { Status } from './status.js';

interface Step {
  readonly name: 'ensure' | 'exec' | 'release';
  readonly duration_ms: number;
}

export async function runRun(
  context: Context,
  argv: readonly string[],
  options: RunOptions,
): Promise<number> {
  const commandId = newCommandId();
  const status = new Status(context, commandId, options.statusFile);
  return status.around(async () => {
    using world = createSessionWorld(context);
    const steps: Step[] = [];
    const { template, startTimeout } = options;
    const thread = options.thread ?? ownThread();
    const opened = await step(steps, 'ensure', () =>
      openForCommands(context, world, { thread, template, startTimeout }),
    );
    await using session = opened;
    status.at(session);
    const request = { commandId, argv, options, hasInput: options.stdin };
    try {
      const http = await world.http();
      const executed = await step(steps, 'exec', () =>
        execute(context, { session, http }, request),
      );
      status.ended(executed.code, executed.outcome);
      await letGo();
      if (executed.captured !== undefined) {
        const command = resultDocument(session, request, executed);
        const { threadId, sessionId, sandboxId } = session;
        const place = { thread_id: threadId, session_id: sessionId, sandbox_id: sandboxId };
        const released = options.keep !== true;
        const document = { ...place, exit_code: executed.code, released, steps, command };
        context.output.result(document, () => '');
      }
      return executed.code;
    } catch (error) {
      await letGo();
      throw error;
    }

    async function letGo(): Promise<void> {
      if (options.keep === true) return;
      await step(steps, 'release', () => opened.release());
    }
  });
}

async function step<T>(steps: Step[], name: Step['name'], work: () => Promise<T>): Promise<T> {
  const began = systemClock.monotonic();
  const result = await work();
  steps.push({ name, duration_ms: Math.round(systemClock.monotonic() - began) });
  return result;
}

/** Of this run alone: two jobs at a time must not meet. */
function ownThread(): ThreadId {
  return parseThreadId(`run-${globalThis.crypto.randomUUID()}`);
}
