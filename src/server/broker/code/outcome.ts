/** How a call ended, in the words of `execute_code`. */
import { AilsdError } from '../../../protocol/errors.js';
import type { InvocationId, SessionId } from '../../../protocol/ids.js';
import { CODE_ERRORS, type CodeAnswer } from '../../../protocol/shapes/code.js';
import type { ExitStatus } from '../../store/code-calls.js';
import type { QuotaDimension } from '../../store/quotas.js';
import type { CommandEnd } from './command.js';

export interface Outcome {
  readonly exitStatus: ExitStatus;
  readonly exitCode?: number | undefined;
  /** Absent when it is `ok`. */
  readonly message?: string | undefined;
  readonly breach?: { readonly dimension: QuotaDimension; readonly resetsAtMs: number } | undefined;
  readonly durationMs: number;
  readonly stdout: ShownOutput;
  readonly stderr: ShownOutput;
}

export interface ShownOutput {
  readonly text: string;
  /** All that was written, before anything was taken out or cut. */
  readonly bytes: number;
  readonly isTruncated: boolean;
}

export const NOTHING: ShownOutput = { text: '', bytes: 0, isTruncated: false };

/** Of a call for which nothing of the caller's ran. */
export function notRun(exitStatus: 'provisioning' | 'error', message: string): Outcome {
  return { exitStatus, message, durationMs: 0, stdout: NOTHING, stderr: NOTHING };
}

export function capExceeded(dimension: QuotaDimension, resetsAtMs: number): Outcome {
  const [limit] = dimension === 'tenant_daily' ? ['daily cap'] : ['hourly cap'];
  const message = `the ${limit} on calls is reached (${dimension}); it resets at ${timeOf(resetsAtMs)}`;
  return {
    exitStatus: 'cap_exceeded',
    message,
    breach: { dimension, resetsAtMs },
    durationMs: 0,
    stdout: NOTHING,
    stderr: NOTHING,
  };
}

export function statusOf(end: CommandEnd): Pick<Outcome, 'exitStatus' | 'exitCode' | 'message'> {
  const { exitCode } = end;
  if (end.isTimedOut)
    return { exitStatus: 'timeout', exitCode, message: 'the code ran out of time' };
  if (end.isOom) return { exitStatus: 'oom', exitCode, message: 'the code ran out of memory' };
  if (exitCode === 0) return { exitStatus: 'ok', exitCode };
  const how = end.signal === undefined ? `with exit status ${exitCode ?? 1}` : `by ${end.signal}`;
  return { exitStatus: 'error', exitCode, message: `the code ended ${how}` };
}

/** The words of an error that a caller may read. */
export function wordsOf(thrown: unknown): string {
  return thrown instanceof AilsdError ? thrown.message : 'something went wrong at the server';
}

export function toCodeAnswer(
  outcome: Outcome,
  ids: { readonly invocationId: InvocationId; readonly sessionId: SessionId | undefined },
): CodeAnswer {
  const { stdout, stderr, exitStatus, breach } = outcome;
  const known = {
    stdout: stdout.text,
    stderr: stderr.text,
    duration_ms: Math.max(0, Math.round(outcome.durationMs)),
    invocation_id: ids.invocationId,
    ...(ids.sessionId && { session_id: ids.sessionId }),
    stdout_bytes: stdout.bytes,
    stderr_bytes: stderr.bytes,
    stdout_truncated: stdout.isTruncated,
    stderr_truncated: stderr.isTruncated,
  };
  if (exitStatus === 'ok') return { ok: true, exit_status: 'ok', ...known };
  return {
    ok: false,
    error: CODE_ERRORS[exitStatus],
    error_message: outcome.message ?? '',
    exit_status: exitStatus,
    ...known,
    ...(breach && { dimension: breach.dimension, resets_at: timeOf(breach.resetsAtMs) }),
  };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
