/** Sends code to the server and prints what came of it: its output as output, a failure as an error of its own. */
import { existsSync } from 'node:fs';
import { Asker } from '../../client/sessions/asker.js';
import { callRoute, type Document } from '../../client/sessions/call.js';
import type { CodeOptions } from '../commands/code.js';
import type { Context } from '../context.js';
import { escapeLines, escapeText } from '../escape.js';
import { EXIT } from '../exit-codes.js';
import { readInput } from '../read-input.js';
import { shown } from '../sessions/document-text.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { threadOf } from '../sessions/thread-argument.js';

/** The server's bound. */
const CODE_MAX_BYTES = 1024 * 1024;

const LANGUAGE_OF: Readonly<Record<string, string>> = {
  py: 'python',
  js: 'javascript',
  cjs: 'javascript',
  mjs: 'javascript',
  sh: 'bash',
  bash: 'bash',
};

export async function runCode(
  context: Context,
  first: string | undefined,
  second: string | undefined,
  options: CodeOptions,
): Promise<void> {
  const { thread, file } = placesOf(first, second);
  const threadId = threadOf(context, thread);
  const code = readInput(context, file, CODE_MAX_BYTES);
  using world = createSessionWorld(context);
  const answer = await callRoute(new Asker(world), 'executeCode', {
    parameters: {},
    json: {
      thread_id: threadId,
      code,
      language: options.language ?? LANGUAGE_OF[/\.([a-z]+)$/.exec(file)?.[1] ?? ''],
      turn_id: options.turn,
      timeout_ms: options.timeout === undefined ? undefined : options.timeout * 1_000,
    },
    signal: context.signal,
  });
  print(context, answer);
  context.exit(exitOf(answer));
}

/** One name alone is a file if it is one, or `-`; else a thread. */
function placesOf(
  first: string | undefined,
  second: string | undefined,
): { readonly thread: string | undefined; readonly file: string } {
  if (second !== undefined || first === undefined) return { thread: first, file: second ?? '-' };
  const isFile = first === '-' || existsSync(first);
  return isFile ? { thread: undefined, file: first } : { thread: first, file: '-' };
}

function print({ output, io, style }: Context, answer: Document): void {
  if (output.mode !== 'text') {
    output.result(answer, () => '');
    return;
  }
  // To a terminal nothing of a sandbox goes as it is; into a file or a pipe, everything does.
  const text = (key: string, isTerminal: boolean): string => {
    const value = answer[key];
    if (typeof value !== 'string') return '';
    return isTerminal ? escapeLines(value) : value;
  };
  io.out.write(text('stdout', io.out.isTerminal));
  io.err.write(text('stderr', io.err.isTerminal));
  for (const stream of ['stdout', 'stderr'] as const) {
    if (answer[`${stream}_truncated`] !== true) continue;
    const path = `/v1/code/invocations/${shown(answer, 'invocation_id')}/output`;
    output.notice(`${stream} was cut; all of it: ailsd api GET '${path}?stream=${stream}'`);
  }
  if (answer['ok'] === true) return;
  const head = style.bad(`ailsd: ${shown(answer, 'error')}:`);
  io.err.write(`${head} ${escapeText(String(answer['error_message'] ?? ''))}\n`);
}

function exitOf(answer: Document): number {
  if (answer['ok'] === true) return EXIT.done;
  switch (answer['exit_status']) {
    case 'cap_exceeded':
      return EXIT.quota;
    case 'provisioning':
      return EXIT.unavailable;
    default:
      return EXIT.failed;
  }
}
