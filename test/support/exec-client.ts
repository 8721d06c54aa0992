/** Our exec client with everything it tells kept for a test to look at. */
import { concatBytes } from '../../src/base/bytes.js';
import { systemClock } from '../../src/base/clock.js';
import {
  type ExecOptions,
  type ExecSession,
  RunningCommand,
} from '../../src/client/exec/running-command.js';

export interface WatchedCommand extends AsyncDisposable {
  readonly command: RunningCommand;
  readonly missing: { stdout: number; stderr: number };
  /** How often it was said to run. */
  readonly runs: number;
  text(stream: 'stdout' | 'stderr'): string;
  bytes(stream: 'stdout' | 'stderr'): Uint8Array;
  /** Called when there is room for input. */
  onRoom: () => void;
}

export function watchCommand(
  session: ExecSession,
  options: Partial<ExecOptions> & { readonly consume?: boolean } = {},
  random: () => number = Math.random,
): WatchedCommand {
  const chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  const { consume = true, ...start } = options;
  let runs = 0;
  const command: RunningCommand = new RunningCommand(
    session,
    {
      clock: systemClock,
      random,
      userAgent: 'test',
      agentFor: async () => undefined,
      trace: () => undefined,
    },
    { argv: ['true'], commandId: 'cmd_test', ...start },
    {
      output: (stream, bytes, end) => {
        chunks[stream].push(bytes.slice());
        if (consume) command.consumed(stream, end);
      },
      missing: (stream, bytes) => {
        watched.missing[stream] += bytes;
      },
      running: () => {
        runs += 1;
      },
      link: () => undefined,
      problem: () => undefined,
      room: () => watched.onRoom(),
    },
  );
  const watched: WatchedCommand = {
    command,
    missing: { stdout: 0, stderr: 0 },
    get runs() {
      return runs;
    },
    text: (stream) => Buffer.from(concatBytes(chunks[stream])).toString(),
    bytes: (stream) => concatBytes(chunks[stream]),
    onRoom: () => undefined,
    [Symbol.asyncDispose]: () => command[Symbol.asyncDispose](),
  };
  return watched;
}
