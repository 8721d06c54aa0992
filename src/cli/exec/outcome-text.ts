/** What is said about a command's end: to a script as a document and a number, to a person in words. */
import type { CommandOutcome } from '../../client/exec/exec-words.js';
import { isDocument } from '../../client/sessions/call.js';
import type { Outcome } from '../../client/shell/shell-words.js';
import { AilsdError } from '../../protocol/errors.js';
import { EXIT } from '../exit-codes.js';
import { exitCodeOf } from '../terminal/exit-code.js';

/** The remote code unchanged; but a program that was ended for its time has not succeeded, whatever it says. */
export function commandExitCode(outcome: Outcome): number {
  const code = exitCodeOf(outcome);
  return outcome.timedOut && code === EXIT.done ? EXIT.notStarted : code;
}

export function outcomeDocument({ origin, exitCode, signal, timedOut, oom, ...rest }: Ended) {
  return {
    origin,
    exit_code: exitCode ?? null,
    signal: signal ?? null,
    timed_out: timedOut,
    oom,
    stdout_sha256: rest.stdout?.sha256 ?? null,
    stderr_sha256: rest.stderr?.sha256 ?? null,
  };
}

type Ended = Outcome & Partial<Pick<CommandOutcome, 'stdout' | 'stderr'>>;

/** As a sandbox's document has it; what makes no sense in one counts as an end that nobody saw. */
export function outcomeOf(value: unknown): Outcome {
  const { origin, exit_code, signal, timed_out, oom } = isDocument(value) ? value : {};
  return {
    origin: ALL_ORIGINS.find((known) => known === origin) ?? 'transport',
    exitCode: typeof exit_code === 'number' ? exit_code : undefined,
    signal: typeof signal === 'string' ? signal : undefined,
    timedOut: timed_out === true,
    oom: oom === true,
  };
}

const ALL_ORIGINS = ['remote', 'ailsd', 'transport', 'quota', 'lease'] as const;

/** Of a command that never ran, or whose end is not known. */
export function failureOutcome(error: unknown): Outcome {
  const code = error instanceof AilsdError ? error.code : undefined;
  const origin = (code !== undefined && ORIGINS[code]) || 'ailsd';
  return { origin, exitCode: undefined, signal: undefined, timedOut: false, oom: false };
}

const ORIGINS: Readonly<Record<string, Outcome['origin']>> = {
  TRANSPORT_LOST: 'transport',
  QUOTA_EXCEEDED: 'quota',
  RATE_LIMITED: 'quota',
  SESSION_EXPIRED: 'lease',
};

/** For people: only what its own output and code do not tell. */
export function whyEnded({ origin, timedOut, oom }: Outcome): string | undefined {
  if (timedOut) return 'the command was ended because its time was over';
  if (oom) return 'the command was ended because it took more memory than there is';
  if (origin === 'quota') return 'the command was ended by a quota';
  if (origin === 'lease') return 'the command was ended because the time of its sandbox is over';
  if (origin === 'ailsd') return 'the command was ended from outside, not by itself';
  return undefined;
}
