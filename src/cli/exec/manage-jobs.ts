/** What `ailsd job` does: opens the thread's session, asks the sandbox, prints its answer. */
import { systemClock } from '../../base/clock.js';
import { Commands } from '../../client/exec/commands.js';
import type { Document } from '../../client/sessions/call.js';
import { openSession } from '../../client/sessions/open-session.js';
import type { Capability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import { ID_PATTERN } from '../../protocol/ids.js';
import type { JobListOptions, JobLogOptions, JobOptions } from '../commands/job.js';
import type { Context } from '../context.js';
import { shown, shownValue } from '../sessions/document-text.js';
import { printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { threadIfNamed } from '../sessions/thread-argument.js';
import { commandExitCode, outcomeOf, whyEnded } from './outcome-text.js';
import { printLogs } from './print-logs.js';

/** Whoever may run commands may learn how they went; so may whoever may read. */
const LOOKING = ['fs:ro', 'process'] as const satisfies readonly Capability[];

export async function runJobList(
  context: Context,
  thread: string | undefined,
  options: JobListOptions,
): Promise<void> {
  const columns = [
    { heading: 'COMMAND', cell: (item: Document) => shown(item, 'id') },
    { heading: 'STATE', cell: stateText },
    { heading: 'STARTED', cell: (item: Document) => shown(item, 'started_at') },
    { heading: 'TOOK', cell: tookText },
    { heading: 'WHAT', cell: (item: Document) => shown(item, 'argv') },
  ];
  await withCommands(context, thread, options, LOOKING, (commands) =>
    printPages(context, options, columns, (query) => commands.list(query, context.signal)),
  );
}

export async function runJobWait(
  context: Context,
  first: string,
  second: string | undefined,
  options: JobOptions,
): Promise<number> {
  const { thread, id } = named(first, second);
  const state = await withCommands(context, thread, options, LOOKING, (commands) =>
    commands.wait(id, context.signal),
  );
  const outcome = outcomeOf(state['outcome']);
  context.output.result(state, () => '');
  const why = whyEnded(outcome);
  if (why !== undefined) context.output.notice(why);
  return commandExitCode(outcome);
}

export async function runJobLogs(
  context: Context,
  first: string,
  second: string | undefined,
  { follow = false, tail, ...options }: JobLogOptions,
): Promise<void> {
  const { thread, id } = named(first, second);
  const { signal } = context;
  await withCommands(context, thread, options, LOOKING, (commands) =>
    printLogs(context, commands.logs(id, { follow, tail, signal }), follow),
  );
}

export async function runJobKill(
  context: Context,
  first: string,
  second: string | undefined,
  options: JobOptions,
): Promise<void> {
  const { thread, id } = named(first, second);
  const state = await withCommands(context, thread, options, ['process'], async (commands) => {
    await commands.kill(id, context.signal);
    return commands.get(id, context.signal);
  });
  context.output.result(state, () => '');
}

/** With one word, it is the command. */
function named(
  first: string,
  second: string | undefined,
): { readonly thread: string | undefined; readonly id: string } {
  const [thread, id] = second === undefined ? [undefined, first] : [first, second];
  if (ID_PATTERN.test(id)) return { thread, id };
  throw new AilsdError('USAGE', 'that is not the id of a command', {
    hint: '`ailsd job list` names them',
  });
}

async function withCommands<T>(
  context: Context,
  thread: string | undefined,
  options: JobOptions,
  capabilities: readonly Capability[],
  work: (commands: Commands) => Promise<T>,
): Promise<T> {
  using world = createSessionWorld(context, options);
  await using session = await openSession(world, {
    thread: threadIfNamed(context, thread),
    // What is not there has run nothing: looking must not make it.
    mode: 'get',
    capabilities,
    keepAlive: false,
    signal: context.signal,
  });
  const http = await world.http();
  return await work(new Commands(session, { http, clock: systemClock, random: Math.random }));
}

function stateText(item: Document): string {
  if (item['state'] === 'running') return 'running';
  const { exitCode, signal, origin, timedOut } = outcomeOf(item['outcome']);
  const how = signal ?? (exitCode === undefined ? origin : exitCode);
  return `ended (${shownValue(how)}${timedOut ? ', time over' : ''})`;
}

function tookText({ duration_ms: durationMs }: Document): string {
  return typeof durationMs === 'number' ? `${(durationMs / 1000).toFixed(1)} s` : '';
}
