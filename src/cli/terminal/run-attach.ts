/** Opens the session, joins terminal and shell, and says how it ended. */
import { systemClock } from '../../base/clock.js';
import { openSession } from '../../client/sessions/open-session.js';
import type { Session } from '../../client/sessions/session.js';
import { Shell, type ShellEnd } from '../../client/shell/shell.js';
import type { StartOptions } from '../../client/shell/shell-words.js';
import { AilsdError } from '../../protocol/errors.js';
import { HISTORY_MAX_LINES } from '../../protocol/frame-fields.js';
import type { ThreadId } from '../../protocol/ids.js';
import { VERSION } from '../../protocol/version.js';
import type { AttachOptions } from '../commands/attach.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { EXIT } from '../exit-codes.js';
import { jsonText } from '../output.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { whileStarting } from '../sessions/while-starting.js';
import { Attachment } from './attachment.js';
import { exitCodeOf } from './exit-code.js';
import { notATerminal, terminalSize } from './raw-terminal.js';
import { Recorder } from './recorder.js';

export interface RunAttachOptions extends AttachOptions {
  readonly startTimeoutMs: number | undefined;
}

export async function runAttach(
  context: Context,
  thread: ThreadId | undefined,
  options: RunAttachOptions,
): Promise<number> {
  const { io, signal } = context;
  if (!io.inputIsTerminal || !io.out.isTerminal) throw notATerminal();
  using world = createSessionWorld(context, options);
  await using session = await whileStarting(context, 'Waiting for the sandbox…', () =>
    openSession(world, {
      thread,
      startTimeoutMs: options.startTimeoutMs,
      signal,
      ...(options.observe === true ? { capabilities: ['shell:ro'] } : {}),
    }),
  );
  const observe = mayOnlyWatch(session) || options.observe === true;
  if (observe && options.observe !== true) {
    context.output.notice('the token allows only to watch this shell');
  }
  const term = context.environment.variable('TERM');
  const http = await world.http();
  let end: ShellEnd;
  let shellId: string | undefined;
  {
    // Before the terminal is touched: it may fail.
    using recorder = recorderFor(context, options, term);
    await using attachment = new Attachment({
      escape: options.escapeChar === 'none' ? undefined : options.escapeChar,
      observe,
      quiet: context.quiet,
      clock: systemClock,
      recorder,
    });
    const shell = new Shell(
      session,
      {
        clock: systemClock,
        random: Math.random,
        userAgent: `ailsd/${VERSION}`,
        agentFor: (url) => http.agentFor(url),
        trace: (text) => context.trace(text),
      },
      {
        ...startOptions(options, term),
        observe,
        size: attachment.size,
        reconnect: options.reconnect,
        signal,
      },
      attachment,
    );
    await using _ = shell;
    end = await attachment.join(shell);
    shellId = shell.shellId;
  }
  return sayEnd(context, session, end, shellId);
}

/** Fewer capabilities than asked for is no failure: watching is better than nothing. */
function mayOnlyWatch({ capabilities }: Session): boolean {
  if (capabilities === undefined || capabilities.includes('shell')) return false;
  if (capabilities.includes('shell:ro')) return true;
  throw new AilsdError('CAPABILITY_DENIED', 'the token allows neither a shell nor watching one', {
    details: { capability: 'shell' },
  });
}

function startOptions(
  options: RunAttachOptions,
  term: string | undefined,
): Omit<StartOptions, 'size'> {
  const { shell, cmd, workdir, env, history } = options;
  return {
    clientId: `cl_${crypto.randomUUID()}`,
    // A program of its own needs a shell of its own.
    shellId: shell ?? (cmd === undefined ? undefined : 'new'),
    command: cmd === undefined ? undefined : ['/bin/sh', '-c', cmd],
    cwd: workdir,
    env,
    history: history === undefined ? undefined : Math.min(history, HISTORY_MAX_LINES),
    term: term !== undefined && /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/.test(term) ? term : undefined,
  };
}

function recorderFor(
  context: Context,
  { record }: RunAttachOptions,
  term: string | undefined,
): Recorder | undefined {
  if (record === undefined) return undefined;
  return new Recorder({
    path: record,
    size: terminalSize(process.stdout),
    term,
    clock: systemClock,
    failed: (error) => context.trace(error.message),
  });
}

/** The terminal's bytes went to stdout; so what there is to say about them goes to stderr, whatever its form. */
function sayEnd(
  context: Context,
  session: Session,
  end: ShellEnd,
  shellId: string | undefined,
): number {
  const code = end.kind === 'detached' ? EXIT.done : exitCodeOf(end.outcome);
  if (context.output.mode === 'text') {
    if (end.kind === 'detached') {
      context.io.err.write('\r\n');
      const again = shellId === undefined ? '' : ` --shell ${escapeText(shellId)}`;
      context.output.notice(
        `left; the shell goes on: ailsd attach ${escapeText(session.threadId)}${again}`,
      );
    } else if (end.outcome.origin !== 'remote' || end.outcome.oom) {
      context.output.notice(whyEnded(end.outcome));
    }
    return code;
  }
  const outcome = end.kind === 'detached' ? null : toDocument(end.outcome);
  const document = {
    thread_id: session.threadId,
    shell_id: shellId ?? null,
    ended: end.kind,
    exit_code: code,
    outcome,
  };
  context.io.err.write(`${jsonText(document, false)}\n`);
  return code;
}

type Outcome = Extract<ShellEnd, { kind: 'exit' }>['outcome'];

function whyEnded({ origin, oom }: Outcome): string {
  if (oom) return 'the program was ended because it took more memory than there is';
  if (origin === 'quota') return 'the shell was ended by a quota';
  if (origin === 'lease') return 'the shell was ended because the time of its sandbox is over';
  return 'the shell was ended by the sandbox, not by its program';
}

function toDocument({ origin, exitCode, signal, timedOut, oom }: Outcome) {
  return { origin, exit_code: exitCode ?? null, signal: signal ?? null, timed_out: timedOut, oom };
}
