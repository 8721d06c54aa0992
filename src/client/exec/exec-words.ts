/** What is said about a command on this side of the wire. */
import type { Outcome, Size } from '../shell/shell-words.js';

export type OutputStream = 'stdout' | 'stderr';

export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const satisfies readonly OutputStream[];

export interface CommandRequest {
  /** The program and its arguments, never parsed again. */
  readonly argv: readonly string[];
  /** The caller's own name for it: under one name nothing runs twice. */
  readonly commandId: string;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
  /** What is kept and sent of each output; the rest is counted and dropped. */
  readonly outputMaxBytes?: number | undefined;
  /** A terminal of this size, and one stream. */
  readonly terminal?: { readonly size: Size; readonly term: string | undefined } | undefined;
}

/** How one output went. */
export interface OutputSummary {
  /** All that the command wrote. */
  readonly bytes: number;
  /** A limit has cut some of it off. */
  readonly truncated: boolean;
  /** Of all that the command wrote; absent when its end was not seen. */
  readonly sha256: string | undefined;
}

export interface CommandOutcome extends Outcome {
  readonly stdout: OutputSummary;
  readonly stderr: OutputSummary;
}
