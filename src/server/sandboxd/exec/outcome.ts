/** How a command ended and who says so, in the protocol's words. */

import type { CommandRecord } from '../../../protocol/shapes/sandboxd.js';
import type { ProgramEnd } from './program.js';

export type CommandOutcome = NonNullable<CommandRecord['outcome']>;

/** Who ended it, if it was not the program itself. */
export type EndedBy = 'timeout' | 'asked' | 'lease';

export interface Findings {
  readonly end: ProgramEnd;
  readonly by: EndedBy | undefined;
  /** Processes of the sandbox that were ended for want of memory while it ran. */
  readonly memoryKills: number;
  readonly stdoutSha256: string;
  readonly stderrSha256: string;
}

export function toOutcome(findings: Findings): CommandOutcome {
  const { end, by, memoryKills, stdoutSha256, stderrSha256 } = findings;
  const { exitCode, signal } = end;
  return {
    origin: ORIGINS[by ?? 'itself'],
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    ...(signal === undefined ? {} : { signal }),
    timed_out: by === 'timeout',
    // A program that was asked to end may have gone the same way.
    oom: by === undefined && memoryKills > 0 && mayBeKilled(end),
    stdout_sha256: stdoutSha256,
    stderr_sha256: stderrSha256,
  };
}

/** Of a command whose daemon went away under it: its end was not seen. */
export const UNSEEN: CommandOutcome = { origin: 'ailsd', timed_out: false, oom: false };

const ORIGINS = {
  itself: 'remote',
  timeout: 'ailsd',
  asked: 'ailsd',
  lease: 'lease',
} as const satisfies Record<EndedBy | 'itself', CommandOutcome['origin']>;

/** By SIGKILL, itself or the one that it waited for. */
export function mayBeKilled({ exitCode, signal }: ProgramEnd): boolean {
  return signal === 'SIGKILL' || exitCode === KILLED_STATUS;
}

const KILLED_STATUS = 128 + 9;
