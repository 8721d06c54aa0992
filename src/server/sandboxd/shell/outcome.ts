/** How a shell's program ended, in the protocol's words. */
import { constants } from 'node:os';
import type { ShellServerFrame } from '../../../protocol/shell-frames.js';
import type { PtyExit } from './pty.js';

type ExitFrame = Extract<ShellServerFrame, { type: 'exit' }>;

export type ShellOutcome = Omit<ExitFrame, 'type' | 'offset'>;

/** `endedBy`: who ended it, if it was not the program itself. */
export function toOutcome(
  { exitCode, signal }: PtyExit,
  endedBy: ShellOutcome['origin'] | undefined,
): ShellOutcome {
  const common = { origin: endedBy ?? 'remote', timed_out: false, oom: false } as const;
  if (signal === 0) return { ...common, exit_code: exitCode };
  return { ...common, signal: signalName(signal) };
}

export function signalName(number: number): string {
  const known = Object.entries(constants.signals).find(([, value]) => value === number);
  return known?.[0] ?? `SIGRT${number}`;
}
