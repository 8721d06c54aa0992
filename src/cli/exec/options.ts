/** Options that `exec` and `run` share, and how their values are read. */
import { InvalidArgumentError } from 'commander';
import { collectPairs, parseSeconds } from '../sessions/options.js';
import type { RestCommand } from './rest-command.js';

export interface CommandOptions {
  readonly workdir?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** In seconds. */
  readonly timeout?: number;
  readonly startTimeout?: number;
  readonly stdin: boolean;
  readonly reconnect: boolean;
  readonly statusFile?: string;
}

/** The protocol's bound: a day. */
const TIMEOUT_MAX_SECONDS = 24 * 60 * 60;

export function commandOptions(command: RestCommand): RestCommand {
  command
    .option('-w, --workdir <folder>', 'where it runs')
    .option('-e, --env <name=value>', 'a variable of its own; may be repeated', collectPairs)
    .option('--timeout <time>', 'ends it and all it started after so long', parseTimeout)
    .option(
      '--start-timeout <time>',
      'how long the sandbox may take to start: 120s by default',
      parseSeconds,
    )
    .option('-n, --no-stdin', 'nothing to read for it')
    .option('--no-reconnect', 'end when the connection is lost')
    .option('--status-file <file>', 'write how it ended, and who says so, as JSON');
  return command;
}

function parseTimeout(value: string): number {
  const seconds = parseSeconds(value);
  if (seconds >= 1 && seconds <= TIMEOUT_MAX_SECONDS) return seconds;
  throw new InvalidArgumentError('It must be from 1s to 24h.');
}
