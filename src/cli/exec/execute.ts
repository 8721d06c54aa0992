/** Runs one command in a session that is open, with its streams joined to ours, and says how it ended. */
import { systemClock } from '../../base/clock.js';
import type { CommandOutcome, OutputStream } from '../../client/exec/exec-words.js';
import { type ExecListener, RunningCommand } from '../../client/exec/running-command.js';
import type { Http } from '../../client/http/http.js';
import type { Session } from '../../client/sessions/session.js';
import type { LinkState } from '../../client/socket/link.js';
import { VERSION } from '../../protocol/version.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { terminalSize } from '../terminal/raw-terminal.js';
import { CAPTURE_MAX_BYTES, CapturedStreams } from './captured-streams.js';
import { forwardSignals } from './forward-signals.js';
import type { CommandOptions } from './options.js';
import { commandExitCode, whyEnded } from './outcome-text.js';
import { OwnStreams } from './own-streams.js';
import type { CommandStreams } from './streams.js';
import { TerminalStreams } from './terminal-streams.js';

export interface ExecuteRequest {
  readonly commandId: string;
  readonly argv: readonly string[];
  readonly options: CommandOptions & { readonly tty?: boolean };
  /** Whether there is anything to read for it. */
  readonly hasInput: boolean;
}

export interface Executed {
  /** What we end with. */
  readonly code: number;
  /** Absent when we left before it ended. */
  readonly outcome: CommandOutcome | undefined;
  /** Output that was no longer kept when it could have been sent. */
  readonly missing: Readonly<Record<OutputStream, number>>;
  /** Where a document was asked for. */
  readonly captured: CapturedStreams | undefined;
  readonly durationMs: number;
}

/** After so many tries a cut is worth a word. */
const TRIES_TO_TELL = 6;
/** For a command whose output nobody wants any more to end by itself. */
const GONE_MS = 2_000;
/** As a program that writes into a closed pipe ends: 128 + SIGPIPE. */
const PIPE_EXIT = 141;

export async function execute(
  context: Context,
  { session, http }: { readonly session: Session; readonly http: Http },
  request: ExecuteRequest,
): Promise<Executed> {
  const { options } = request;
  const captured =
    context.output.mode === 'text' ? undefined : new CapturedStreams(request.hasInput);
  const streams = captured ?? streamsFor(context, request);
  using _ = streams;
  const listener = new Listener(context, streams);
  const beganMs = systemClock.monotonic();
  const command = new RunningCommand(
    session,
    {
      clock: systemClock,
      random: Math.random,
      userAgent: `ailsd/${VERSION}`,
      agentFor: (url) => http.agentFor(url),
      trace: (text) => context.trace(text),
    },
    {
      argv: request.argv,
      commandId: request.commandId,
      cwd: options.workdir,
      env: options.env,
      timeoutMs: options.timeout === undefined ? undefined : options.timeout * 1000,
      outputMaxBytes: captured === undefined ? undefined : CAPTURE_MAX_BYTES,
      terminal: options.tty === true ? terminalOf(context) : undefined,
      reconnect: options.reconnect,
      signal: context.signal,
    },
    listener,
  );
  await using running = command;
  listener.command = running;
  using __ = forwardSignals(context.signals, command);
  try {
    const { code, outcome } = await endOf(command, streams);
    const durationMs = Math.round(systemClock.monotonic() - beganMs);
    sayEnd(context, outcome, listener.lost);
    return { code, outcome, missing: listener.lost, captured, durationMs };
  } catch (error) {
    if (context.signals.exitCode !== undefined && command.mayRun) sayLeft(context, command);
    throw error;
  }

  async function endOf(
    command: RunningCommand,
    streams: CommandStreams,
  ): Promise<Pick<Executed, 'code' | 'outcome'>> {
    const first = await Promise.race([command.ended, streams.gone.then(() => 'gone' as const)]);
    if (first === 'gone') return { code: PIPE_EXIT, outcome: await endUnheard(command) };
    if (first.kind === 'exit') {
      return { code: commandExitCode(first.outcome), outcome: first.outcome };
    }
    sayLeft(context, command);
    return { code: EXIT.done, outcome: undefined };
  }
}

/** Here it would be ended by its next write; there it is asked to. */
async function endUnheard(command: RunningCommand): Promise<CommandOutcome | undefined> {
  command.signal('SIGTERM');
  const waiting = new AbortController();
  const late = systemClock.sleep(GONE_MS, waiting.signal).then(
    () => undefined,
    () => undefined,
  );
  const end = await Promise.race([command.ended.catch(() => undefined), late]);
  waiting.abort();
  return end?.kind === 'exit' ? end.outcome : undefined;
}

class Listener implements ExecListener {
  readonly #context: Context;
  readonly #streams: CommandStreams;
  readonly lost = { stdout: 0, stderr: 0 };
  command: RunningCommand | undefined;
  #wasTold = false;

  constructor(context: Context, streams: CommandStreams) {
    this.#context = context;
    this.#streams = streams;
  }

  output(stream: OutputStream, bytes: Uint8Array, end: number): void {
    this.#streams.output(stream, bytes, () => this.command?.consumed(stream, end));
  }

  running(): void {
    if (this.command !== undefined) this.#streams.begin(this.command);
  }

  missing(stream: OutputStream, bytes: number): void {
    this.lost[stream] += bytes;
  }

  room(): void {
    this.#streams.room();
  }

  problem(error: Error): void {
    this.#context.trace(error.message);
  }

  link(state: LinkState): void {
    if (state.kind === 'up') {
      if (this.#wasTold) this.#context.output.notice('the connection is back');
      this.#wasTold = false;
    } else if (state.tries === TRIES_TO_TELL && !this.#wasTold) {
      this.#wasTold = true;
      this.#context.output.notice(`no connection, trying again: ${state.error.message}`);
    }
  }
}

function streamsFor(context: Context, { options, hasInput }: ExecuteRequest): CommandStreams {
  const isJoined = context.io.inputIsTerminal && context.io.out.isTerminal && hasInput;
  return options.tty === true && isJoined ? new TerminalStreams() : new OwnStreams(hasInput);
}

function terminalOf({ environment, io }: Context) {
  const term = environment.variable('TERM');
  return {
    size: io.out.isTerminal ? terminalSize(process.stdout) : { cols: 80, rows: 24 },
    term: term !== undefined && /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/.test(term) ? term : undefined,
  };
}

function sayEnd(
  { output }: Context,
  outcome: CommandOutcome | undefined,
  missing: Executed['missing'],
): void {
  const why = outcome && whyEnded(outcome);
  if (why !== undefined) output.notice(why);
  for (const stream of ['stdout', 'stderr'] as const) {
    if (missing[stream] > 0) output.notice(`${missing[stream]} bytes of its ${stream} are lost`);
  }
}

function sayLeft({ output }: Context, { commandId }: RunningCommand): void {
  output.notice(`left; the command goes on: ailsd job wait ${commandId}, or ailsd job kill`);
}
