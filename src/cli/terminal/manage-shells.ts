/** What `ailsd shell` does: opens the thread's session, asks the sandbox, prints its answer. */
import { decodeUtf8 } from '../../base/bytes.js';
import { type Document, isDocument } from '../../client/sessions/call.js';
import { openSession } from '../../client/sessions/open-session.js';
import { Shells } from '../../client/shell/shells.js';
import type { Capability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import { columns } from '../columns.js';
import type { LogOptions, ShellOptions } from '../commands/shell.js';
import type { Context } from '../context.js';
import { shown, shownValue } from '../sessions/document-text.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { threadIfNamed } from '../sessions/thread-argument.js';
import { castText, parseCast } from './cast-text.js';

export async function runShellList(
  context: Context,
  thread: string | undefined,
  options: ShellOptions,
): Promise<void> {
  const items = await withShells(context, thread, options, 'shell:ro', (shells) =>
    shells.list(context.signal),
  );
  context.output.list(items, () => listText(items, context));
}

export async function runShellKill(
  context: Context,
  first: string | undefined,
  second: string | undefined,
  options: ShellOptions,
): Promise<void> {
  const { thread, shell } = named(first, second);
  if (shell === undefined) {
    throw new AilsdError('USAGE', 'no shell is named', {
      hint: '`ailsd shell list` names them: `ailsd shell kill THREAD SHELL`',
    });
  }
  await withShells(context, thread, options, 'shell', (shells) =>
    shells.kill(shell, context.signal),
  );
  context.output.result({ id: shell, state: 'ending' }, () => '');
}

export async function runShellLog(
  context: Context,
  first: string | undefined,
  second: string | undefined,
  options: LogOptions,
): Promise<void> {
  const { thread, shell } = named(first, second);
  const log = await withShells(context, thread, options, 'shell:ro', async (shells) =>
    shells.log(shell ?? (await latest(shells, context.signal)), context.signal),
  );
  if (options.format === 'asciicast' && context.output.mode === 'text') {
    context.io.out.write(decodeUtf8(log) ?? '');
    return;
  }
  const cast = parseCast(log);
  if (context.output.mode === 'jsonl') {
    const events = cast.events.map(([seconds, kind, data]) => ({ seconds, kind, data }));
    context.output.list(events, () => '');
  } else {
    context.output.result(cast, () => castText(cast));
  }
}

/** With one word, it is the shell if it looks like one. */
function named(
  first: string | undefined,
  second: string | undefined,
): { readonly thread: string | undefined; readonly shell: string | undefined } {
  if (second !== undefined) return { thread: first, shell: second };
  if (first?.startsWith('sh_')) return { thread: undefined, shell: first };
  return { thread: first, shell: undefined };
}

async function withShells<T>(
  context: Context,
  thread: string | undefined,
  options: ShellOptions,
  capability: Capability,
  work: (shells: Shells) => Promise<T>,
): Promise<T> {
  using world = createSessionWorld(context, options);
  await using session = await openSession(world, {
    thread: threadIfNamed(context, thread),
    // What is not there has no shells: looking must not make it.
    mode: 'get',
    capabilities: [capability],
    keepAlive: false,
    signal: context.signal,
  });
  return await work(new Shells(session, await world.http()));
}

async function latest(shells: Shells, signal: AbortSignal): Promise<string> {
  const id = (await shells.list(signal)).at(-1)?.['id'];
  if (typeof id === 'string') return id;
  throw new AilsdError('NOT_FOUND', 'the sandbox has no shell', {
    hint: 'name one that has ended: `ailsd shell log THREAD SHELL`',
  });
}

function listText(items: readonly Document[], { style }: Context): string {
  if (items.length === 0) return 'no shells';
  const head = ['SHELL', 'STATE', 'STARTED', 'SIZE', 'ATTACHED', 'PROGRAM'].map(style.dim);
  const rows = items.map((item) => [
    shown(item, 'id'),
    stateText(item),
    shown(item, 'started_at'),
    `${shown(item, 'cols')}x${shown(item, 'rows')}`,
    viewersText(item),
    shown(item, 'title'),
  ]);
  return columns([head, ...rows]);
}

function stateText(item: Document): string {
  const { outcome } = item;
  const code = isDocument(outcome) ? shownValue(outcome['signal'] ?? outcome['exit_code']) : '';
  return code === '' ? shown(item, 'state') : `${shown(item, 'state')} (${code})`;
}

function viewersText({ viewers }: Document): string {
  if (!Array.isArray(viewers) || viewers.length === 0) return '-';
  return viewers
    .filter(isDocument)
    .map((viewer) => shown(viewer, 'subject') + (viewer['role'] === 'writer' ? '*' : ''))
    .join(' ');
}
